//! FlowSchemas and priority levels as they are configured at one moment
//! (`util/flowcontrol.configController`).

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use sync::RwLock;

use super::level::PriorityLevel;
use super::metrics::FlowStats;
use super::queue_set::Queuing;
use super::rules::FlowSchemaSpec;
use super::spec::PriorityLevelSpec;

/// The group of FlowSchemas and levels.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// All that requests are told apart by, at one moment.
#[derive(Default)]
pub(super) struct FlowConfiguration {
    /// In the order in which they are asked. Bound: the objects of the kind.
    pub(super) schemas: Vec<Arc<FlowSchema>>,
    pub(super) levels: BTreeMap<String, Arc<LevelConfiguration>>,
}

/// A FlowSchema whose level is there.
pub struct FlowSchema {
    /// Its uid.
    pub header: HeaderValue,
    /// Where its requests go.
    pub level: Arc<LevelConfiguration>,
    pub(super) name: Arc<str>,
    pub(super) spec: FlowSchemaSpec,
    pub(super) stats: Arc<FlowStats>,
}

/// A priority level as it is configured.
pub struct LevelConfiguration {
    /// Its uid.
    pub header: HeaderValue,
    /// Its requests.
    pub requests: Arc<PriorityLevel>,
    pub(super) spec: PriorityLevelSpec,
    pub(super) queuing: Queuing,
    /// What one request may take; 0 is any number.
    pub(super) max_seats: usize,
    /// Whether its object is gone and only its requests are left.
    pub(super) is_quiescing: bool,
}

/// The configuration of now, which the follower replaces.
pub(super) type Current = Arc<RwLock<Arc<FlowConfiguration>>>;
