//! Whose values stand in the causal record, and who is told them: the record of a cluster may be read by
//! somebody who may not read every object in it.
//!
//! The rule: values of an object are for those who may `get` all objects of its resource where it is. Whoever
//! may not still sees that a field changed, and not from what to what.

use std::collections::BTreeMap;

use http::Method;

use super::info::RequestInfo;
use apimachinery::wire::MayRead;
use flow::{Flow, StepId, TraceStep};

/// What somebody must be able to read to be told of values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValuePlace {
    /// The group; empty for the core group.
    pub group: String,
    /// The plural.
    pub resource: String,
    /// Empty for cluster-scoped resources.
    pub namespace: String,
}

impl ValuePlace {
    /// That of the request that a step is part of; none where that is forgotten.
    pub fn of_step(flow: &Flow, step: Option<StepId>) -> Option<ValuePlace> {
        let path = flow.asked_path(step)?;
        let info = RequestInfo::new(&Method::GET, &path, "").ok()?;
        let RequestInfo { group, resource, namespace, is_resource_request, .. } = info;
        is_resource_request.then_some(ValuePlace { group, resource, namespace })
    }

    /// Whether somebody is told of them.
    pub async fn is_readable(&self, MayRead(may_read): &MayRead) -> bool {
        may_read(&self.group, &self.resource, &self.namespace).await
    }
}

/// Takes the values out of these steps that somebody may not read, or whose place is forgotten.
pub async fn hide_unreadable(flow: &Flow, steps: &mut [TraceStep], may_read: &MayRead) {
    for (place, found) in value_places(flow, steps) {
        let is_readable = match &place {
            Some(place) => place.is_readable(may_read).await,
            None => false,
        };
        if !is_readable {
            found.into_iter().for_each(|at| steps[at].step.hide_values());
        }
    }
}

/// Which of these steps tell values, by where. Under none are those of which that is forgotten.
fn value_places(flow: &Flow, steps: &[TraceStep]) -> BTreeMap<Option<ValuePlace>, Vec<usize>> {
    let mut places: BTreeMap<Option<ValuePlace>, Vec<usize>> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.step.has_values()) {
        places.entry(ValuePlace::of_step(flow, step.cause)).or_default().push(at);
    }
    places
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use clock::Clock;
    use flow::{FieldFromTo, Step};

    #[tokio::test]
    async fn values_are_of_the_resource_that_was_asked_for() {
        let flow = Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH));
        let values = || Step::Validated {
            plugins: None,
            changed: vec![FieldFromTo { path: "spec.a".into(), from: None, to: Some("1".into()) }],
        };
        let path = "/apis/example.com/v1/namespaces/n/things/a".into();
        let asked = flow.record(None, Step::RequestReceived { user: "".into(), verb: "update".into(), path });
        flow.record(asked.cause(), Step::VALIDATED);
        flow.record(asked.cause(), values());
        flow.record(None, values());
        let mut steps = flow.since(StepId::NONE, 9).steps;
        let places = value_places(&flow, &steps);
        let (group, resource, namespace) = ("example.com".into(), "things".into(), "n".into());
        let thing = ValuePlace { group, resource, namespace };
        let wanted = BTreeMap::from([(None, vec![3]), (Some(thing), vec![2])]);
        assert_eq!(places, wanted);
        let may_read = |may: bool| MayRead(Arc::new(move |_, _, _| Box::pin(async move { may })));
        hide_unreadable(&flow, &mut steps, &may_read(true)).await;
        assert!(steps[2].step.has_values());
        assert!(!steps[3].step.has_values(), "whose they are is forgotten");
        hide_unreadable(&flow, &mut steps, &may_read(false)).await;
        assert_eq!(steps[2].words(), "validated, changes spec.a");
        assert!(!steps[2].step.has_values());
    }
}
