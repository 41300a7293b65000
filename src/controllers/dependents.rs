//! Which owners a change of a pod, or of another dependent, concerns: what the workloads' controllers put
//! into their queues.

use serde::de::DeserializeOwned;

use super::controller::{Change, Enqueue, Key, controller_key, owner_keys};
use super::expectations::Expectations;
use apimachinery::labels::{LabelSelector, Selector};
use apimachinery::object::Object;
use apis::kind::Builtin;
use client_go::lister::Lister;

/// What maps pods to their owners. The change that an owner's round waited for counts at once, others are
/// gathered for a moment: many pods become ready one after the other.
pub(crate) fn of_pods(
    expectations: &Expectations,
    owner: &'static Builtin,
    adopters: impl Fn(&Object) -> Vec<Key> + Send + Sync + 'static,
) -> impl Fn(&Change<'_>, &Enqueue) + Send + Sync + 'static {
    let expectations = expectations.clone();
    move |change, enqueue| {
        if observe(&expectations, change) {
            controller_key(change.object(), owner).into_iter().for_each(|key| enqueue.now(key));
        } else {
            owner_keys(change, owner, &adopters).into_iter().for_each(|key| enqueue.batched(key));
        }
    }
}

/// What maps the owners to themselves; one that is gone expects nothing any more.
pub(crate) fn of_owner(
    expectations: &Expectations,
) -> impl Fn(&Change<'_>, &Enqueue) + Send + Sync + 'static + use<> {
    let expectations = expectations.clone();
    move |change, enqueue| {
        if let Change::Deleted(owner) = change {
            expectations.forget(&owner.metadata.uid);
        }
        enqueue.now(change.object().key());
    }
}

/// The keys of the owners of a namespace whose selector matches an orphan: they may adopt it.
pub(crate) fn adopters<View>(
    owners: &Lister,
    orphan: &Object,
    selector: fn(&View) -> &LabelSelector,
) -> Vec<Key>
where
    View: DeserializeOwned + Send + Sync + 'static,
{
    let selects = |owner: &Object| {
        let selector = selector(&owner.view::<View>()).selector();
        selector.is_ok_and(|selector| !selector.is_everything() && selector.matches(&orphan.metadata.labels))
    };
    let candidates = owners.list(&orphan.metadata.namespace, &Selector::everything());
    candidates.into_iter().filter(|owner| selects(owner)).map(|owner| owner.key()).collect()
}

/// Tells the expectations what a change of a pod shows. True when a round that waited may begin now.
fn observe(expectations: &Expectations, change: &Change<'_>) -> bool {
    let pod = change.object();
    let Some(owner) = pod.controller() else { return false };
    if change.is_removal() {
        return expectations.deletion_observed(&owner.uid, &pod.metadata.uid);
    }
    matches!(change, Change::Added(_)) && expectations.creation_observed(&owner.uid)
}
