//! What came of emptying a namespace.

use std::collections::BTreeMap;

use apimachinery::gvk::GroupResource;
use apimachinery::status::Status;

/// What came of a round.
#[derive(Default)]
pub(super) struct NamespaceOutcome {
    /// Groups of other servers that did not say what they have, and why.
    pub undiscovered: Vec<String>,
    /// What could not be deleted, and why.
    pub failures: Vec<Status>,
    /// Whether nothing but the pods was looked at, since they have not gone yet.
    pub waits_for_pods: bool,
    /// How many objects of each resource are left.
    pub remaining: BTreeMap<GroupResource, usize>,
    /// How many of those have each finalizer.
    pub finalizers: BTreeMap<String, usize>,
    /// In about this time the rest should be gone.
    pub estimate_seconds: u64,
}
