//! Whose values stand in the causal record, and who is told them: the record of a cluster may be read by
//! somebody who may not read every object in it.
//!
//! The rule: values of an object are for those who may `get` all objects of its resource where it is. Whoever
//! may not still sees that a field changed, and not from what to what.

use std::collections::BTreeMap;

use http::Method;

use super::info::RequestInfo;
use apimachinery::wire::MayRead;
use flow::{Flow, Step, StepId, TraceStep};

/// What somebody must be able to read to be told of values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ValuePlace {
    group: String,
    resource: String,
    /// Empty for cluster-scoped resources.
    namespace: String,
}

impl ValuePlace {
    /// That of the request that a step is part of; none where that is forgotten.
    fn of_step(flow: &Flow, step: Option<StepId>) -> Option<ValuePlace> {
        let path = flow.asked_path(step)?;
        let info = RequestInfo::new(&Method::GET, &path, "").ok()?;
        let RequestInfo { group, resource, namespace, is_resource_request, .. } = info;
        is_resource_request.then_some(ValuePlace { group, resource, namespace })
    }

    /// That of the values which a step tells: of a cache's entry the object's, of others the request's.
    fn of_told(flow: &Flow, told: &TraceStep) -> Option<ValuePlace> {
        let Step::InformerUpdated { resource, key, .. } = &told.step else {
            return ValuePlace::of_step(flow, told.cause);
        };
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (namespace, _) = key.split_once('/').unwrap_or_default();
        let [group, resource, namespace] = [group, resource, namespace].map(str::to_owned);
        Some(ValuePlace { group, resource, namespace })
    }
}

/// Somebody who reads the record. Each place is asked for once.
pub struct ValueReader<'a> {
    flow: &'a Flow,
    may_read: &'a MayRead,
    /// Bound: the places of what is told in one answer.
    known: BTreeMap<ValuePlace, bool>,
}

impl<'a> ValueReader<'a> {
    /// Somebody, and the record.
    pub fn new(flow: &'a Flow, may_read: &'a MayRead) -> ValueReader<'a> {
        ValueReader { flow, may_read, known: BTreeMap::new() }
    }

    /// Whether the reader is told of values in the request that a step is part of; not where it is forgotten.
    pub async fn may_see(&mut self, step: Option<StepId>) -> bool {
        match ValuePlace::of_step(self.flow, step) {
            Some(place) => self.may_read_at(place).await,
            None => false,
        }
    }

    async fn may_read_at(&mut self, place: ValuePlace) -> bool {
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        let MayRead(may_read) = self.may_read;
        let is_readable = may_read(&place.group, &place.resource, &place.namespace).await;
        self.known.insert(place, is_readable);
        is_readable
    }
}

/// Takes the values out of these steps that somebody may not read, or whose place is forgotten.
pub async fn hide_unreadable(flow: &Flow, steps: &mut [TraceStep], may_read: &MayRead) {
    let mut reader = ValueReader::new(flow, may_read);
    for one in steps.iter_mut().filter(|one| one.step.has_values()) {
        let is_seen = match ValuePlace::of_told(flow, one) {
            Some(place) => reader.may_read_at(place).await,
            None => false,
        };
        if !is_seen {
            one.step.hide_values();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use clock::Clock;
    use flow::{CacheEntry, FieldFromTo};

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
        let (group, resource, namespace) = ("example.com".into(), "things".into(), "n".into());
        let thing = ValuePlace { group, resource, namespace };
        assert_eq!(ValuePlace::of_step(&flow, steps[2].cause), Some(thing));
        assert_eq!(ValuePlace::of_step(&flow, steps[3].cause), None);
        let may_read = |may: bool| MayRead(Arc::new(move |_, _, _| Box::pin(async move { may })));
        hide_unreadable(&flow, &mut steps, &may_read(true)).await;
        assert!(steps[2].step.has_values());
        assert!(!steps[3].step.has_values(), "whose they are is forgotten");
        hide_unreadable(&flow, &mut steps, &may_read(false)).await;
        assert_eq!(steps[2].words(), "validated, changes spec.a");
        assert!(!steps[2].step.has_values());
    }

    #[tokio::test]
    async fn entries_of_caches_are_of_their_own_resource() {
        let flow = Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH));
        for (resource, key) in [("pods", "n/a"), ("deployments.apps", "n/a"), ("nodes", "a")] {
            let mut step = Step::informed("x".into(), resource.into(), key.into(), 7);
            let Step::InformerUpdated { entry, .. } = &mut step else { panic!("it is one") };
            *entry = Some(Box::new(CacheEntry { before: Some(6), indices: vec![] }));
            flow.record(None, step);
        }
        let mut steps = flow.since(StepId::NONE, 9).steps;
        let deployments = |group: &str, resource: &str, namespace: &str| {
            (group, resource, namespace) == ("apps", "deployments", "n")
        };
        let may_read = MayRead(Arc::new(move |group: &str, resource: &str, namespace: &str| {
            let may = deployments(group, resource, namespace);
            Box::pin(async move { may })
        }));
        hide_unreadable(&flow, &mut steps, &may_read).await;
        assert_eq!(steps.iter().map(|one| one.step.has_values()).collect::<Vec<_>>(), [false, true, false]);
    }
}
