//! Drafts: stages while units are still folded into them.

use std::collections::HashMap;

use super::stage::{StageKind, StageOutcome};
use super::units::Unit;
use crate::lane::Lane;
use crate::parts::{ComparedCount, FitRefusal, NodeScore};
use crate::recorded::StepId;
use crate::step::Step;

/// Mentioned in the order of their first mention, and how often each was mentioned.
#[derive(Clone, Debug, Default)]
pub(super) struct Mentioned {
    order: Vec<(String, usize)>,
    places: HashMap<String, usize>,
}

impl Mentioned {
    pub(super) fn add(&mut self, name: &str) {
        if let Some(place) = self.places.get(name) {
            self.order[*place].1 += 1;
            return;
        }
        self.places.insert(name.to_owned(), self.order.len());
        self.order.push((name.to_owned(), 1));
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.order.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// The first so many, and whether there are more.
    pub(super) fn shown(&self, most: usize) -> String {
        let first: Vec<&str> = self.iter().take(most).map(|(name, _)| name).collect();
        let more = if self.len() > most { ", ..." } else { "" };
        first.join(", ") + more
    }

    /// As `node-1 (2), node-2 (1)`; one alone needs no count.
    pub(super) fn counted(&self, most: usize) -> String {
        if self.len() == 1 {
            return self.shown(1);
        }
        let first: Vec<String> =
            self.iter().take(most).map(|(name, count)| format!("{name} ({count})")).collect();
        let more = if self.len() > most { ", ..." } else { "" };
        first.join(", ") + more
    }
}

/// What a stage tells, as far as it is gathered.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// It is said already.
    Said(String),
    /// Components wrote objects, or tried to.
    Wrote(Wrote),
    /// Pods got nodes.
    Placed(Placed),
    /// Pods got none.
    Unplaced(Unplaced),
    /// Kubelets did something to containers.
    Ran(Ran),
    /// Somebody was warned in an Event.
    Warned(Warned),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Wrote {
    pub actors: Mentioned,
    /// As `creates`, `writes the status of`.
    pub verb: String,
    pub resource: String,
    pub targets: Mentioned,
    /// What was not so before, as the end of the sentence.
    pub news: String,
    pub compared: Option<ComparedCount>,
    /// The status of a refusal, else 0.
    pub code: u16,
    /// What was said of it, without the names of the objects.
    pub whys: Mentioned,
    /// And with them.
    pub whole_whys: Mentioned,
    /// The most often that one was tried again, and the last delay.
    pub retries: (u32, u64),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Placed {
    pub pods: Mentioned,
    pub nodes: Mentioned,
    pub feasible: u32,
    pub asked: u32,
    pub table: Vec<NodeScore>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Unplaced {
    pub pods: Mentioned,
    pub feasible: u32,
    pub asked: u32,
    pub refusals: Vec<FitRefusal>,
    /// The event's words, which say it where no plugin's are known.
    pub message: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    pub nodes: Mentioned,
    pub pods: Mentioned,
    pub addresses: Mentioned,
    pub images: Mentioned,
    pub created: Mentioned,
    pub started: Mentioned,
    /// As `main ends with exit code 3`.
    pub exits: Mentioned,
    pub stopped: usize,
    /// Whether one ended with something else than 0.
    pub has_failed: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Warned {
    pub component: String,
    pub reason: String,
    pub objects: Mentioned,
    /// The last one's words.
    pub message: String,
}

/// A stage that may still grow.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// What has the same one for the same cause is the same stage.
    pub key: String,
    pub kind: StageKind,
    pub lane: Lane,
    pub component: String,
    pub outcome: StageOutcome,
    pub is_write: bool,
    pub cause: Option<usize>,
    pub count: usize,
    pub at: u64,
    pub until: u64,
    pub steps: Vec<StepId>,
    pub what: What,
    pub notes: Vec<String>,
    pub details: Vec<String>,
}

impl Draft {
    /// Of a unit, of which it tells all.
    pub(super) fn of(unit: &Unit<'_>, key: String, kind: StageKind, component: &str, what: What) -> Draft {
        let first = unit.first();
        Draft {
            key,
            kind,
            lane: Lane::of(component),
            component: component.to_owned(),
            outcome: StageOutcome::Done,
            is_write: false,
            cause: None,
            count: 0,
            at: first.at_microseconds,
            until: first.at_microseconds,
            steps: Vec::new(),
            what,
            notes: Vec::new(),
            details: Vec::new(),
        }
    }

    /// Whether all these are among the objects that it tells of.
    pub(super) fn is_about(&self, names: &[&str]) -> bool {
        let told = match &self.what {
            What::Said(_) => return true,
            What::Wrote(wrote) => &wrote.targets,
            What::Placed(placed) => &placed.pods,
            What::Unplaced(unplaced) => &unplaced.pods,
            What::Ran(ran) => &ran.pods,
            What::Warned(warned) => &warned.objects,
        };
        names.iter().all(|name| told.has(name))
    }

    /// Takes a unit in.
    pub(super) fn take(&mut self, unit: &Unit<'_>) {
        self.count += 1;
        self.add_steps(unit);
    }

    /// Takes a unit's steps in, which is a part of what it tells.
    pub(super) fn add_steps(&mut self, unit: &Unit<'_>) {
        self.at = self.at.min(unit.first().at_microseconds);
        self.until = self.until.max(unit.until());
        self.is_write |= unit.steps.iter().any(|step| matches!(step.step, Step::Stored { .. }));
        self.steps.extend(unit.steps.iter().map(|step| step.id));
    }
}
