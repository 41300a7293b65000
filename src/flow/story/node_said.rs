//! `NodesSaid`: what a write of a node's status says that the one before it did not say. A kubelet tells of
//! each condition that is another one by an Event, and writes it then; of a kubelet that is silent its
//! node-controller writes.

use std::collections::{BTreeMap, BTreeSet};

use super::target::RequestTarget;

/// By which Events a kubelet tells that its node is unwell, and that it is well again; and what it is then.
const CONDITIONS: &[(&str, &str, &str)] = &[
    ("NodeNotReady", "NodeReady", "not ready"),
    ("NodeHasInsufficientMemory", "NodeHasSufficientMemory", "under MemoryPressure"),
    ("NodeHasDiskPressure", "NodeHasNoDiskPressure", "under DiskPressure"),
    ("NodeHasInsufficientPID", "NodeHasSufficientPID", "under PIDPressure"),
];

/// What a kubelet says of its node by such an Event, and whether that is so now.
pub(super) fn condition(reason: &str) -> Option<(&'static str, bool)> {
    let found = CONDITIONS.iter().find(|(unwell, well, _)| *unwell == reason || *well == reason);
    found.map(|(unwell, _, what)| (*what, *unwell == reason))
}

/// What the kubelets have said of their nodes so far.
#[derive(Default)]
pub(super) struct NodesSaid {
    /// Nodes, and what is wrong with them.
    unwell: BTreeMap<String, BTreeSet<&'static str>>,
    /// Nodes whose kubelets say nothing.
    silent: BTreeSet<String>,
    /// What was told and is not written yet, by node.
    untold: BTreeMap<String, NodeNews>,
}

/// How a node is other than before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NodeNews {
    /// As the end of a sentence about the node.
    pub words: String,
    /// Whether something is wrong with it that was not.
    pub is_bad: bool,
}

impl NodesSaid {
    /// A kubelet has told of its node by an Event. That it begins well is no news.
    pub(super) fn told(&mut self, node: &str, reason: &str) {
        let Some((what, is_bad)) = condition(reason) else { return };
        let said = self.unwell.entry(node.to_owned()).or_default();
        let is_news = if is_bad { said.insert(what) } else { said.remove(what) };
        if !is_news {
            return;
        }
        let news = self.untold.entry(node.to_owned()).or_default();
        if is_bad {
            news.add(what, true);
        } else {
            let again = what.strip_prefix("not ").map(|what| format!("{what} again"));
            news.add(&again.unwrap_or_else(|| format!("no longer {what}")), false);
        }
    }

    /// Who writes something: how the node is other than before, if it is a node's status and it is.
    pub(super) fn written(&mut self, user: &str, target: &RequestTarget<'_>) -> Option<NodeNews> {
        let node = target.name;
        if target.resource != "nodes" || target.subresource != "status" {
            return None;
        }
        if user.ends_with(":node-controller") {
            let words = ", whose kubelet says nothing any more".to_owned();
            return self.silent.insert(node.to_owned()).then_some(NodeNews { words, is_bad: true });
        }
        if user.strip_prefix("system:node:") != Some(node) {
            return None;
        }
        let mut news = self.untold.remove(node).unwrap_or_default();
        if self.silent.remove(node) {
            news.add("heard of again", false);
        }
        Some(news).filter(|news| !news.words.is_empty())
    }
}

impl NodeNews {
    fn add(&mut self, what: &str, is_bad: bool) {
        self.words += if self.words.is_empty() { ", which is " } else { " and " };
        self.words += what;
        self.is_bad |= is_bad;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handwritten::Handwritten;
    use crate::step::{Step, WriteOperation};
    use crate::story::tests::{contains, printed, request};

    const CONTROLLER: &str = "system:serviceaccount:kube-system:node-controller";

    #[test]
    fn what_is_news_of_a_node_is_told_once() {
        let mut said = NodesSaid::default();
        let target = || RequestTarget::of("/api/v1/nodes/n1/status").unwrap();
        let written = |said: &mut NodesSaid, user: &str| {
            said.written(user, &target()).map(|news| (news.words, news.is_bad)).unwrap_or_default()
        };
        let kubelet = "system:node:n1";
        let nothing = (String::new(), false);
        said.told("n1", "NodeReady");
        assert_eq!(written(&mut said, kubelet), nothing, "it begins well");
        said.told("n1", "NodeNotReady");
        said.told("n1", "NodeHasDiskPressure");
        said.told("n2", "NodeNotReady");
        let bad = (", which is not ready and under DiskPressure".to_owned(), true);
        assert_eq!(written(&mut said, kubelet), bad);
        assert_eq!(written(&mut said, kubelet), nothing, "it says so again");
        said.told("n1", "NodeHasNoDiskPressure");
        said.told("n1", "NodeReady");
        let well = (", which is no longer under DiskPressure and ready again".to_owned(), false);
        assert_eq!(written(&mut said, kubelet), well);
        assert_eq!(
            written(&mut said, CONTROLLER),
            (", whose kubelet says nothing any more".to_owned(), true)
        );
        assert_eq!(written(&mut said, "system:node:n2"), nothing, "of another node it knows nothing");
        assert_eq!(written(&mut said, kubelet), (", which is heard of again".to_owned(), false));
        let other = RequestTarget::of("/api/v1/nodes/n1").unwrap();
        assert_eq!(said.written(CONTROLLER, &other), None);
    }

    /// Of heartbeats there is one line, whatever lies between them.
    #[test]
    fn a_write_that_makes_a_node_unwell_has_a_line_of_its_own() {
        let record = Handwritten::new();
        let asked = request(&record, None, "", "create", "/api/v1/nodes");
        let stored = |cause, revision, operation| {
            let (resource, namespace, name) = ("nodes".into(), "".into(), "n1".into());
            let uid = None;
            record.step(cause, Step::Stored { resource, namespace, name, revision, operation, uid, bytes: 1 })
        };
        stored(asked, 1, WriteOperation::Create);
        let beat = |revision| {
            let asked = request(&record, None, "system:node:n1", "patch", "/api/v1/nodes/n1/status");
            stored(asked, revision, WriteOperation::Update);
        };
        let event = |reason: &str| {
            let (component, object, reason) = ("kubelet".into(), "n1".into(), reason.into());
            let (message, warning, host) = ("".into(), false, None);
            record.step(None, Step::EventRecorded { component, object, reason, message, warning, host });
        };
        beat(2);
        beat(3);
        for revision in [4, 7] {
            event("NodeNotReady");
            beat(revision);
            beat(revision + 1);
            event("NodeReady");
            beat(revision + 2);
        }
        let unwell = "nodes n1, which is not ready\n";
        let well = "nodes n1, which is ready again\n";
        let text = printed(&record.flow.trace("nodes", "", "n1"));
        contains(&text, &["writes the status of nodes n1, 4 times\n", unwell, well, unwell, well]);
    }
}
