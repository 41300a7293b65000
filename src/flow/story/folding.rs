//! `Folding`: the drafts of a story, while its units are told one after the other.

use std::collections::{BTreeMap, HashMap};

use super::draft::{Draft, What};
use super::node_said::NodesSaid;
use super::stage::StageKind;
use super::units::Unit;
use crate::step::Step;
use crate::trace::Trace;

/// What comes round with other objects each time, as a rollout that goes on pod by pod, is told by itself so
/// often; what comes later is one stage with the last of these.
const MAX_ROUNDS: usize = 5;

/// The drafts so far, and where what comes of each unit is to hang.
pub(super) struct Folding<'a> {
    pub trace: &'a Trace,
    pub units: &'a [Unit<'a>],
    pub children: Vec<Vec<usize>>,
    pub is_folded: bool,
    pub drafts: Vec<Draft>,
    /// Of a unit that was told: the draft that is the cause of what comes of it, if there is one.
    pub anchors: Vec<Option<Option<usize>>>,
    pub by_key: HashMap<(Option<usize>, String), usize>,
    pub events: BTreeMap<String, usize>,
    pub idle_reconciles: usize,
    pub nodes: NodesSaid,
}

impl<'a> Folding<'a> {
    /// A key as it is told: in the namespace that the story is about anyway, its name.
    pub(super) fn told<'k>(&self, key: &'k str) -> &'k str {
        let about = self.trace.subject.split_once(' ').map_or("", |(_, key)| key);
        let namespace = about.split_once('/').map_or("", |(namespace, _)| namespace);
        match key.split_once('/') {
            Some((of, name)) if of == namespace => name,
            _ => key,
        }
    }

    pub(super) fn parent(&self, at: usize) -> Option<&'a Unit<'a>> {
        self.units[at].parent.map(|parent| &self.units[parent])
    }

    /// The draft for a unit: one that is there already, when it tells the same; else a new one. The key says
    /// what is done, and the names are those of the objects to which it is done.
    pub(super) fn draft(
        &mut self,
        unit: &Unit<'_>,
        (key, names): (String, &[&str]),
        kind: StageKind,
        (component, cause): (&str, Option<usize>),
        what: impl FnOnce() -> What,
    ) -> usize {
        let known = self.known(cause, &key, names);
        let at = known.unwrap_or_else(|| {
            self.drafts.push(Draft { cause, ..Draft::of(unit, key.clone(), kind, component, what()) });
            self.by_key.insert((cause, key), self.drafts.len() - 1);
            self.drafts.len() - 1
        });
        self.drafts[at].take(unit);
        at
    }

    /// One that tells the same for the same reason, or that led to this one: then it has come round. What is
    /// done to other objects is another act, also where the first one led to it.
    fn known(&self, cause: Option<usize>, key: &str, names: &[&str]) -> Option<usize> {
        if !self.is_folded {
            return None;
        }
        if let Some(known) = self.by_key.get(&(cause, key.to_owned())) {
            return Some(*known);
        }
        // A status is written again because of what has happened since: that is to be told in its place.
        let is_status = key.contains(" status ");
        let mut rounds = Vec::new();
        let mut before = cause;
        while let Some(at) = before {
            let draft = &self.drafts[at];
            if draft.key == key {
                if draft.is_about(names) && (!is_status || Some(at) == cause) {
                    return Some(at);
                }
                rounds.push(at);
            }
            before = draft.cause;
        }
        rounds.first().copied().filter(|_| rounds.len() >= MAX_ROUNDS)
    }

    /// Whether an attempt of the scheduler came to nothing, for whatever reason.
    pub(super) fn has_failed_event(&self, at: usize) -> bool {
        let is_it = |step: &Step| {
            let Step::EventRecorded { reason, .. } = step else { return false };
            &**reason == "FailedScheduling"
        };
        self.children[at].iter().any(|child| is_it(&self.units[*child].first().step))
    }

    /// Of a sync that ends a pod: the draft that says that its kubelet drives it out. Both follow upon what
    /// the kubelet has heard last of the pod.
    pub(super) fn driven_out(&self, at: usize) -> Option<usize> {
        let unit = &self.units[at];
        let Step::PodWorkerSync { pod, state, .. } = &unit.first().step else { return None };
        let beside = self.children[unit.parent.filter(|_| &**state == "terminating")?].iter();
        let told = beside.rev().filter(|beside| **beside < at).find(|beside| {
            let step = &self.units[**beside].first().step;
            let Step::EventRecorded { object, reason, .. } = step else { return false };
            object == pod && matches!(&**reason, "Evicted" | "Preempting")
        });
        self.anchors[*told?].flatten()
    }

    pub(super) fn has_refused_child(&self, at: usize) -> bool {
        self.children[at].iter().any(|child| self.units[*child].refusal().is_some())
    }
}

#[cfg(test)]
mod tests;
