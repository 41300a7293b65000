//! What a terminating namespace waits for, as conditions (`NamespaceConditionUpdater`).

use super::outcome::NamespaceOutcome;
use crate::conditions::{conditions_value, new_condition};
use crate::controller::Reconcile;
use crate::status::update_status;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::core::namespace::NAMESPACES;
use apis::views::meta::{Condition, condition};
use apis::views::namespace::Namespace;

/// Type, reason and message of each while there is nothing to complain of.
const WELL: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// Writes the conditions that follow from `outcome`, if they say something new.
pub(super) async fn write(
    ctx: &Reconcile,
    object: &Object,
    outcome: &NamespaceOutcome,
) -> Result<(), Status> {
    let current = object.view::<Namespace>().status.conditions.clone();
    let new = updated(&current, outcome, ctx.clock.now());
    if new == current {
        return Ok(());
    }
    let put = |status: &mut serde_json::Map<String, serde_json::Value>| {
        status.insert("conditions".into(), conditions_value(&new, false));
    };
    match update_status(&ctx.client, &NAMESPACES, object, put).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn updated(current: &[Condition], outcome: &NamespaceOutcome, now: Time) -> Vec<Condition> {
    let mut conditions = current.to_vec();
    for (condition_type, reason, message) in WELL {
        let mut new = complaint(condition_type, outcome, now)
            .unwrap_or_else(|| new_condition(condition_type, "False", reason, message, now));
        if let Some(old) = condition(current, condition_type).filter(|old| old.status == new.status) {
            new.last_transition_time = old.last_transition_time;
        }
        match conditions.iter_mut().find(|old| old.condition_type == condition_type) {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }
    conditions
}

/// What is left is counted in a round that looks at everything: upstream does not complain of pods, which go
/// first.
fn complaint(condition_type: &str, outcome: &NamespaceOutcome, now: Time) -> Option<Condition> {
    let (reason, message) = match condition_type {
        "NamespaceDeletionDiscoveryFailure" if !outcome.undiscovered.is_empty() => {
            let count = outcome.undiscovered.len();
            let text = undiscovered(&outcome.undiscovered);
            ("DiscoveryFailed", format!("Discovery failed for some groups, {count} failing: {text}"))
        }
        "NamespaceDeletionContentFailure" if !outcome.failures.is_empty() => {
            let mut texts: Vec<String> = outcome.failures.iter().map(ToString::to_string).collect();
            texts.sort();
            let (count, texts) = (texts.len(), texts.join(", "));
            (
                "ContentDeletionFailed",
                format!("Failed to delete all resource types, {count} remaining: {texts}"),
            )
        }
        "NamespaceContentRemaining" if !outcome.waits_for_pods && !outcome.remaining.is_empty() => {
            let text = |(resource, count): (&apimachinery::gvk::GroupResource, &usize)| {
                format!("{}.{} has {count} resource instances", resource.resource, resource.group)
            };
            let texts = sorted(outcome.remaining.iter().map(text));
            ("SomeResourcesRemain", format!("Some resources are remaining: {texts}"))
        }
        "NamespaceFinalizersRemaining" if !outcome.waits_for_pods && !outcome.finalizers.is_empty() => {
            let text =
                |(finalizer, count): (&String, &usize)| format!("{finalizer} in {count} resource instances");
            let texts = sorted(outcome.finalizers.iter().map(text));
            let message = format!("Some content in the namespace has finalizers remaining: {texts}");
            ("SomeFinalizersRemain", message)
        }
        _ => return None,
    };
    Some(new_condition(condition_type, "True", reason, &message, now))
}

/// `ErrGroupDiscoveryFailed`
pub(super) fn undiscovered(groups: &[String]) -> String {
    let groups = sorted(groups.iter().cloned());
    format!("unable to retrieve the complete list of server APIs: {groups}")
}

fn sorted(texts: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::gvk::GroupResource;
    use chrono::DateTime;

    #[test]
    fn what_remains_is_said_in_upstreams_words() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let mut outcome = NamespaceOutcome::default();
        outcome.remaining.insert(GroupResource::new("", "pods"), 2);
        outcome.finalizers.insert("example.com/wait".into(), 1);
        let first = updated(&[], &outcome, at(1));
        let message =
            |conditions: &[Condition], name: &str| condition(conditions, name).unwrap().message.clone();
        assert_eq!(
            message(&first, "NamespaceContentRemaining"),
            "Some resources are remaining: pods. has 2 resource instances"
        );
        assert_eq!(
            message(&first, "NamespaceFinalizersRemaining"),
            "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances"
        );
        outcome.waits_for_pods = true;
        let early = updated(&[], &outcome, at(1));
        assert_eq!(message(&early, "NamespaceContentRemaining"), "All content successfully removed");
        assert!(early.iter().all(|condition| condition.status == "False"));
        let stale = "a.example.com/v1: stale GroupVersion discovery: a.example.com/v1";
        outcome.undiscovered.push(stale.into());
        let failed = updated(&[], &outcome, at(1));
        let text = format!(
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: {stale}"
        );
        assert_eq!(message(&failed, "NamespaceDeletionDiscoveryFailure"), text);
        let last = updated(&first, &NamespaceOutcome::default(), at(2));
        assert_eq!(last.len(), 5);
        assert!(last.iter().all(|condition| condition.status == "False"));
        let transition = |name: &str| condition(&last, name).unwrap().last_transition_time;
        assert_eq!(transition("NamespaceContentRemaining"), Some(at(2)));
        assert_eq!(transition("NamespaceDeletionContentFailure"), Some(at(1)));
    }
}
