//! `Folding`: the drafts of a story, while its units are told one after the other.

use std::collections::{BTreeMap, HashMap};

use super::draft::{Draft, What};
use super::stage::StageKind;
use super::units::Unit;
use crate::trace::Trace;

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

    /// The draft for a unit: one that is there already, when it tells the same; else a new one.
    pub(super) fn draft(
        &mut self,
        unit: &Unit<'_>,
        key: String,
        kind: StageKind,
        (component, cause): (&str, Option<usize>),
        what: impl FnOnce() -> What,
    ) -> usize {
        let known = self.known(cause, &key);
        let at = known.unwrap_or_else(|| {
            self.drafts.push(Draft { cause, ..Draft::of(unit, key.clone(), kind, component, what()) });
            self.by_key.insert((cause, key), self.drafts.len() - 1);
            self.drafts.len() - 1
        });
        self.drafts[at].take(unit);
        at
    }

    /// One that tells the same for the same reason, or that led to this one: then it has come round.
    fn known(&self, cause: Option<usize>, key: &str) -> Option<usize> {
        if !self.is_folded {
            return None;
        }
        if let Some(known) = self.by_key.get(&(cause, key.to_owned())) {
            return Some(*known);
        }
        let mut before = cause;
        while let Some(at) = before {
            if self.drafts[at].key == key {
                return Some(at);
            }
            before = self.drafts[at].cause;
        }
        None
    }

    pub(super) fn has_refused_child(&self, at: usize) -> bool {
        self.children[at].iter().any(|child| self.units[*child].refusal().is_some())
    }
}
