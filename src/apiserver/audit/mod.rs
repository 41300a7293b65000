//! The audit log (`k8s.io/apiserver/pkg/audit`): who did what, when, and what came of it.
//!
//! In come requests, and what is gathered while they are worked on; out go events, to a file or a webhook.
//! What is told is the policy's to say. It must not know a kind or a verb, and it costs nothing when off.

pub mod config;
pub mod options;
pub mod policy;

mod event;
mod request;

mod backend;
mod log;

mod metrics;

pub use super::audit_context::{AuditContext, Level};
pub use backend::{AuditMode, BatchConfig};
pub use config::{AuditConfig, LogBackend, WebhookConfig};
pub use log::LogConfig;
pub use options::AuditOptions;
pub use request::{Audit, Telling};
