//! `Trace`: the steps that one object's writes led to, and the steps that led to them.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::step::Step;
use super::{Recorded, StepId};

/// The story of one object, in the order in which it happened. What `/flowz` answers, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trace {
    /// As `deployments.apps default/web`.
    pub subject: String,
    /// Ordered by id.
    pub steps: Vec<TraceStep>,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceStep {
    /// Its number in the cluster's record.
    pub id: StepId,
    /// The step that led to it. One that is not in the trace was not remembered any more, or led elsewhere
    /// too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<StepId>,
    /// Microseconds since the first step of the trace.
    pub at_microseconds: u64,
    /// What happened.
    #[serde(flatten)]
    pub step: Step,
}

/// Builds the trace of an object from a copy of the record whose first step has the id `first`.
pub(super) fn of_object(
    first: u64,
    steps: Vec<Recorded>,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Trace {
    let record = Causes::of(first, steps);
    let mut wanted = BTreeSet::new();
    let writes = record.writes_to(resource, namespace, name);
    for (position, write) in writes.iter().enumerate() {
        // The first write is told from its very beginning, the others from their own request on: what lies
        // before that is part of the first one's story or of another object's.
        let origin = record.origin(*write, position == 0, &mut wanted);
        record.follow(origin, &mut wanted);
    }
    let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    Trace { subject: format!("{resource} {key}"), steps: record.collect(&wanted) }
}

/// The record with its causes, in both directions.
struct Causes {
    first: u64,
    steps: Vec<Recorded>,
    effects: HashMap<u64, Vec<u64>>,
}

impl Causes {
    /// A step that saw a revision is caused by the write that made it. That edge is drawn here and not when
    /// the step is recorded: a watch may deliver a change before the writer was told of its success.
    fn of(first: u64, mut steps: Vec<Recorded>) -> Causes {
        let mut stored = HashMap::new();
        for (id, recorded) in (first..).zip(&steps) {
            if let Step::Stored { revision, .. } = recorded.step {
                stored.insert(revision, id);
            }
        }
        let mut effects: HashMap<u64, Vec<u64>> = HashMap::new();
        for (id, recorded) in (first..).zip(&mut steps) {
            if recorded.cause == StepId::NONE {
                let write = recorded.step.revision_seen().and_then(|revision| stored.get(&revision));
                recorded.cause = StepId(write.copied().unwrap_or_default());
            }
            if recorded.cause != StepId::NONE {
                effects.entry(recorded.cause.0).or_default().push(id);
            }
        }
        Causes { first, steps, effects }
    }

    fn get(&self, id: u64) -> Option<&Recorded> {
        self.steps.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    fn writes_to(&self, wanted_resource: &str, wanted_namespace: &str, wanted_name: &str) -> Vec<u64> {
        let is_write = |recorded: &Recorded| match &recorded.step {
            Step::Stored { resource, namespace, name, .. }
            | Step::Refused { resource, namespace, name, .. } => {
                (&**resource, &**namespace, &**name) == (wanted_resource, wanted_namespace, wanted_name)
            }
            _ => false,
        };
        (self.first..).zip(&self.steps).filter(|(_, recorded)| is_write(recorded)).map(|(id, _)| id).collect()
    }

    /// Walks back from a write to its request, or with `all_the_way` to what nobody caused; what is passed on
    /// the way is wanted. Returns the write's request (or the earliest remembered step of it).
    fn origin(&self, write: u64, all_the_way: bool, wanted: &mut BTreeSet<u64>) -> u64 {
        let mut request = write;
        let mut at = write;
        let mut in_request = true;
        while let Some(recorded) = self.get(at) {
            let seen_before = !wanted.insert(at) && at != write;
            if in_request {
                request = at;
            }
            in_request &= !matches!(recorded.step, Step::RequestReceived { .. });
            if recorded.cause == StepId::NONE || seen_before || !(in_request || all_the_way) {
                break;
            }
            at = recorded.cause.0;
        }
        request
    }

    /// Everything that came of `origin`.
    fn follow(&self, origin: u64, wanted: &mut BTreeSet<u64>) {
        let mut pending = vec![origin];
        let mut followed = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if followed.insert(id) {
                wanted.insert(id);
                pending.extend(self.effects.get(&id).into_iter().flatten());
            }
        }
    }

    fn collect(&self, wanted: &BTreeSet<u64>) -> Vec<TraceStep> {
        let start =
            wanted.first().and_then(|id| self.get(*id)).map(|recorded| recorded.at).unwrap_or_default();
        let step = |id: &u64| {
            let recorded = self.get(*id)?;
            let since = recorded.at.saturating_sub(start).as_micros();
            Some(TraceStep {
                id: StepId(*id),
                cause: recorded.cause.cause(),
                at_microseconds: u64::try_from(since).unwrap_or(u64::MAX),
                step: recorded.step.clone(),
            })
        };
        wanted.iter().filter_map(step).collect()
    }
}
