//! The core group, `v1`.

pub mod binding;
pub mod bootstrap_token;
pub mod component_status;
pub mod config_map;
pub mod endpoints;
pub mod event;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod node_labels;
pub mod persistent_volume;
pub mod persistent_volume_claim;
pub mod pod;
pub mod pod_template;
pub mod replication_controller;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;
mod service_traffic;
mod service_validation;
pub mod volume_sources;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &namespace::NAMESPACES,
    &node::NODES,
    &pod::PODS,
    &pod_template::POD_TEMPLATES,
    &replication_controller::REPLICATION_CONTROLLERS,
    &service::SERVICES,
    &endpoints::ENDPOINTS,
    &config_map::CONFIG_MAPS,
    &secret::SECRETS,
    &service_account::SERVICE_ACCOUNTS,
    &event::EVENTS,
    &persistent_volume::PERSISTENT_VOLUMES,
    &persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS,
    &limit_range::LIMIT_RANGES,
    &resource_quota::RESOURCE_QUOTAS,
    &binding::BINDINGS,
    &component_status::COMPONENT_STATUSES,
];
