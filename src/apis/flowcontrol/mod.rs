//! The group `flowcontrol.apiserver.k8s.io/v1`: priority and fairness.

pub mod flow_schema;
pub mod priority_level_configuration;

mod common;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] =
    &[&flow_schema::FLOW_SCHEMAS, &priority_level_configuration::PRIORITY_LEVEL_CONFIGURATIONS];
