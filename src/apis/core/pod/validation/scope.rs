//! What the parts of a pod's spec must know of the whole.

use std::collections::BTreeMap;

use serde_json::Value;

/// What the parts of a spec must know of the whole.
pub(super) struct PodScope<'a> {
    /// The volumes that are right, by name.
    pub volumes: BTreeMap<&'a str, &'a Value>,
    /// The names of the claims for devices.
    pub claims: Vec<&'a str>,
    pub grace_period_seconds: i64,
    pub restart_policy: &'a str,
    pub uses_host_users: bool,
}
