//! The group `flowcontrol.apiserver.k8s.io/v1`: priority and fairness.

pub mod flow_schema;
pub mod priority_level_configuration;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] =
    &[&flow_schema::FLOW_SCHEMAS, &priority_level_configuration::PRIORITY_LEVEL_CONFIGURATIONS];

/// Who makes the objects that every server has: the part of priority and fairness that does so upstream.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
