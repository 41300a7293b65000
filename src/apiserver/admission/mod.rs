//! Admission: what is filled in and refused before an object is written (`k8s.io/apiserver/pkg/admission`).
//! Next: src/apiserver/registry/store.rs
//!
//! In comes what is to be done to which object; plugins change it (`admit`), then, when nothing changes it
//! any more, look at it once again (`validate`, called by the registry last before the write). One file per
//! plugin. It reads other objects through the registry. Only two plugins write: NamespaceAutoProvision, and
//! ResourceQuota, which counts what it admits.

mod operation;
pub mod plugin;

pub mod own;
pub mod plugins;

pub mod chain;

pub mod config;
pub mod reinvocation;

mod lister;
mod tolerations;

mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;

mod node_declared_feature_validator;
mod node_restriction;
mod policy_params;
mod rbac_escalation;

mod limit_ranger;
mod pod_security;
mod resource_quota;
mod service_account;

mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod default_toleration_seconds;
mod extended_resource_toleration;
mod image_policy_webhook;
mod initial_resources;
mod limit_pod_hard_anti_affinity_topology;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod priority;
mod runtime_class;

mod always_pull_images;
mod event_rate_limit;
mod initializers;
mod owner_references_permission_enforcement;
mod taint_nodes_by_condition;

mod default_class;
mod default_storage_class;
mod persistent_volume_claim_resize;
mod storage_object_in_use_protection;

mod default_ingress_class;
mod deny_service_external_ips;

mod always;

mod cel;
mod policy;
mod webhook;

mod metrics;

pub use crate::authorizer::Authorizer;
pub use chain::{Admission, ValidatingPhase};
pub use config::{AdmissionOptions, BadAdmissionConfig};
pub use metrics::AdmissionMetrics;
pub use operation::Operation;
pub use plugin::forbidden;
pub use plugin::{AdmissionPlugin, Attributes, Initializer};
