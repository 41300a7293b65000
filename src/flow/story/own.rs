//! Which objects are those of a story: its subject, and what was made of it. A story also tells of others,
//! as of a pod that was looked at again since this one made room.

use std::collections::{BTreeMap, BTreeSet};

use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::trace::{Trace, TraceStep};
use golang::object_key::object_key;

/// The keys of the subject and of what its controllers made of it.
pub(super) struct OwnObjects<'a> {
    trace: &'a Trace,
    resource: &'a str,
    key: &'a str,
    made: BTreeSet<String>,
}

impl<'a> OwnObjects<'a> {
    pub(super) fn of(trace: &'a Trace) -> OwnObjects<'a> {
        let (resource, key) = trace.subject.split_once(' ').unwrap_or_default();
        let mut own = OwnObjects { trace, resource, key, made: BTreeSet::new() };
        let by_id: BTreeMap<StepId, &TraceStep> = trace.steps.iter().map(|step| (step.id, step)).collect();
        for step in &trace.steps {
            if let Step::Stored { namespace, name, operation: WriteOperation::Create, .. } = &step.step
                && reconciled(step, &by_id).is_some_and(|of| own.has(of))
            {
                own.made.insert(object_key(namespace, name));
            }
        }
        own
    }

    /// Whether the object is the subject, or was made because of it.
    pub(super) fn has(&self, key: &str) -> bool {
        let is_inside = || key.strip_prefix(self.key).is_some_and(|rest| rest.starts_with('/'));
        // Who made it is not remembered any more, but it was called after its owner.
        let is_called_after = || key.strip_prefix(self.key).is_some_and(|rest| rest.starts_with('-'));
        self.trace.is_of_everything()
            || key == self.key
            || self.made.contains(key)
            || (self.resource == "namespaces" && is_inside())
            || (self.trace.begins_forgotten && self.resource != "pods" && is_called_after())
    }

    /// Whether the story is a pod's, of which nothing is made.
    pub(super) fn is_of_pod(&self) -> bool {
        self.resource == "pods"
    }

    /// Whether the story is this object's, or everybody's.
    pub(super) fn is_subject(&self, resource: &str, key: &str) -> bool {
        self.trace.is_of_everything() || (self.resource == resource && self.key == key)
    }
}

/// The key whose reconcile wrote something.
fn reconciled<'a>(written: &'a TraceStep, by_id: &BTreeMap<StepId, &'a TraceStep>) -> Option<&'a str> {
    let mut at = written;
    loop {
        // A cause that comes later than its effect is a watch that was faster than the writer: no write's.
        at = by_id.get(&at.cause.filter(|cause| *cause < at.id)?)?;
        match &at.step {
            Step::ReconcileStarted { key, .. } => return Some(key),
            Step::Stored { .. } => return None,
            _ => {}
        }
    }
}
