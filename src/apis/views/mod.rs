//! Views: the fields that components read of an object, parsed once per object and shared.
//!
//! A view reads and is never written back, so that nobody drops a field that they do not know. One view per
//! kind serves all components: [`apimachinery::object::Object::view`] keeps the first one asked for.
//! Every field has a default: an absent field reads as Go's zero value.

pub mod meta;

pub mod controller_revision;
pub mod cron_job;
pub mod daemon_set;
pub mod deployment;
pub mod endpoints;
pub mod horizontal_pod_autoscaler;
pub mod job;
pub mod lease;
pub mod namespace;
pub mod node;
pub mod node_affinity;
pub mod pod;
pub mod pod_answers;
pub mod pod_detail;
pub mod pod_disruption_budget;
pub mod pod_volumes;
pub mod probe;
pub mod rbac;
pub mod replica_set;
pub mod restart_rule;
pub mod service;
pub mod stateful_set;
pub mod toleration;
