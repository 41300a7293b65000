//! The group `apps/v1`.

pub mod controller_revision;
pub mod daemon_set;
pub mod deployment;
pub mod replica_set;
pub mod stateful_set;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &deployment::DEPLOYMENTS,
    &replica_set::REPLICA_SETS,
    &stateful_set::STATEFUL_SETS,
    &daemon_set::DAEMON_SETS,
    &controller_revision::CONTROLLER_REVISIONS,
];
