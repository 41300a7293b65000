//! Where the graph keeps its nodes: most objects neither own nor are owned, and of those it keeps no more
//! than that they are there.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::graph_node::{GraphNode, GraphUid};
use apimachinery::object::Object;
use apis::kind::Kind;

/// Invariant: a uid is in one of the two at most.
#[derive(Default)]
pub(super) struct GraphNodes {
    /// What has neither owners nor dependents, and is not on its way out. Found by its uid.
    plain: HashSet<PlainNode, RandomState>,
    tied: HashMap<GraphUid, GraphNode, RandomState>,
}

/// The object is that of the informer's cache, which keeps it anyway.
struct PlainNode(Arc<Kind>, Arc<Object>);

impl GraphNodes {
    pub(super) fn has(&self, uid: &str) -> bool {
        self.plain.contains(uid) || self.tied.contains_key(uid)
    }

    /// The next state of an object that is tied to nothing before and after; false where it was tied.
    pub(super) fn refresh(&mut self, kind: &Arc<Kind>, object: &Arc<Object>) -> bool {
        let is_plain = self.plain.contains(&*object.metadata.uid);
        if is_plain {
            self.plain.replace(PlainNode(kind.clone(), object.clone()));
        }
        is_plain
    }

    /// A node as it is now.
    pub(super) fn get(&self, uid: &str) -> Option<GraphNode> {
        self.tied.get(uid).cloned().or_else(|| self.plain.get(uid).map(PlainNode::node))
    }

    /// The node of an object that has owners or dependents, or is on its way out.
    pub(super) fn tied(&self, uid: &str) -> Option<&GraphNode> {
        self.tied.get(uid)
    }

    /// The node of an object that is tied to others from now on; what is not known yet is what `make` says.
    pub(super) fn tie(
        &mut self,
        uid: &str,
        make: impl FnOnce() -> Option<GraphNode>,
    ) -> Option<&mut GraphNode> {
        if !self.tied.contains_key(uid) {
            let plain = self.plain.take(uid).map(|plain| plain.node());
            self.tied.insert(uid.to_owned(), plain.or_else(make)?);
        }
        self.tied.get_mut(uid)
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<GraphNode> {
        let plain = self.plain.take(uid).map(|plain| plain.node());
        plain.or_else(|| self.tied.remove(uid))
    }

    /// Keeps the node of an object, which is not kept just now.
    pub(super) fn put(&mut self, (kind, object): (&Arc<Kind>, &Arc<Object>), node: GraphNode) {
        if node.is_plain() {
            self.plain.insert(PlainNode(kind.clone(), object.clone()));
        } else {
            self.tied.insert(object.metadata.uid.clone(), node);
        }
    }
}

impl PlainNode {
    fn uid(&self) -> &str {
        &self.1.metadata.uid
    }

    fn node(&self) -> GraphNode {
        GraphNode::of(&self.0, &self.1)
    }
}

impl Borrow<str> for PlainNode {
    fn borrow(&self) -> &str {
        self.uid()
    }
}

impl Hash for PlainNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.uid().hash(state);
    }
}

impl PartialEq for PlainNode {
    fn eq(&self, other: &PlainNode) -> bool {
        self.uid() == other.uid()
    }
}

impl Eq for PlainNode {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use apis::core::config_map::CONFIG_MAPS;

    #[test]
    fn an_object_is_kept_in_full_when_it_is_tied_and_found_either_way() {
        let mut nodes = GraphNodes::default();
        let metadata = json!({"name": "n", "namespace": "a", "uid": "u"});
        let object = Arc::new(Object::from_value(&json!({"metadata": metadata}), vec![]).unwrap());
        let put = |nodes: &mut GraphNodes, node| nodes.put((&CONFIG_MAPS, &object), node);
        put(&mut nodes, GraphNode::of(&CONFIG_MAPS, &object));
        assert!(nodes.has("u") && nodes.tied("u").is_none() && nodes.tie("x", || None).is_none());
        assert_eq!(nodes.get("u").unwrap().identity.name, "n");
        nodes.tie("u", || None).unwrap().dependents.insert("d".into());
        assert!(nodes.has("u") && nodes.tied("u").is_some() && nodes.plain.is_empty());
        let tied = nodes.remove("u").unwrap();
        assert!(!nodes.has("u") && tied.dependents.contains("d"));
        put(&mut nodes, tied);
        assert_eq!(nodes.get("u").unwrap().dependents.len(), 1);
        let untied = GraphNode { dependents: Default::default(), ..nodes.remove("u").unwrap() };
        put(&mut nodes, untied);
        assert!(nodes.refresh(&CONFIG_MAPS, &object) && nodes.plain.len() == 1);
        assert!(nodes.tied.is_empty() && nodes.remove("u").is_some() && !nodes.has("u"));
    }
}
