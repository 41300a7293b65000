//! API priority and fairness (`k8s.io/apiserver/pkg/util/flowcontrol`): which level a request belongs to, and
//! when it is its turn.
//!
//! In comes who asks and what for; out goes the FlowSchema that fits, its priority level, and a seat there.
//! FlowSchemas and levels are read when somebody first asks over the wire, and followed by a watch from then
//! on. It must not know what a request does. Levels do not lend each other seats.

pub mod config;

mod follow;
mod level;
mod rules;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use http::HeaderValue;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::apimachinery::user::UserInfo;
use crate::apis::scheme::Scheme;
use crate::apiserver::registry::Registry;
use crate::apiserver::request::RequestInfo;
use crate::clock::Clock;

use config::FlowControlConfig;
use follow::Follower;
pub use level::{PriorityLevel, Seat, Snapshot};
use rules::FlowSchemaSpec;

/// The group of FlowSchemas and levels.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Says for each request where it belongs. Dropped, its watches end.
pub struct FlowControl {
    /// What bounds reads and writes where there are no levels.
    in_flight: Option<[Arc<PriorityLevel>; 2]>,
    follower: Follower,
    clock: Clock,
    followed: OnceCell<JoinHandle<()>>,
}

/// All that requests are told apart by, at one moment.
#[derive(Default)]
pub(in crate::apiserver::flow_control) struct Configuration {
    /// In the order in which they are asked. Bound: the objects of the kind.
    schemas: Vec<FlowSchema>,
    levels: BTreeMap<String, Arc<PriorityLevel>>,
}

struct FlowSchema {
    name: String,
    header: HeaderValue,
    spec: FlowSchemaSpec,
    level: Arc<PriorityLevel>,
}

type Current = Arc<RwLock<Arc<Configuration>>>;

/// Where a request belongs.
pub struct Classification {
    /// The uid of its FlowSchema.
    pub flow_schema: HeaderValue,
    /// Its level.
    pub level: Arc<PriorityLevel>,
    /// What tells its flow from others.
    flow: String,
}

impl FlowControl {
    /// Reads nothing yet.
    pub fn new(
        config: FlowControlConfig,
        registry: &Registry,
        scheme: &Arc<Scheme>,
        clock: &Clock,
    ) -> FlowControl {
        let FlowControlConfig { max_requests, max_mutating_requests, .. } = config;
        let bounds = [("readOnly", max_requests), ("mutating", max_mutating_requests)];
        let in_flight = bounds.map(|(name, most)| PriorityLevel::bounded(name, most));
        FlowControl {
            in_flight: (!config.priority_and_fairness).then_some(in_flight),
            follower: Follower::new(max_requests + max_mutating_requests, registry, scheme, clock),
            clock: clock.clone(),
            followed: OnceCell::new(),
        }
    }

    /// What bounds a request where there are no levels; none where there are.
    pub fn in_flight(&self, info: &RequestInfo) -> Option<&Arc<PriorityLevel>> {
        let [reads, writes] = self.in_flight.as_ref()?;
        Some(if info.is_read_only() { reads } else { writes })
    }

    /// The first FlowSchema that matches; none where even `catch-all` is not served.
    pub async fn classify(&self, user: &UserInfo, info: &RequestInfo) -> Option<Classification> {
        if !self.followed.initialized() {
            // A server that is just asked whether it is there has time for the rest later.
            if is_probe(info) {
                return None;
            }
            self.followed.get_or_init(|| self.follower.start()).await;
        }
        let configuration = self.follower.current();
        let schema = configuration.schemas.iter().find(|schema| schema.spec.matches(user, info))?;
        let flow = match schema.spec.flow_of(user, info) {
            "" => schema.name.clone(),
            flow => format!("{}/{flow}", schema.name),
        };
        Some(Classification { flow_schema: schema.header.clone(), level: schema.level.clone(), flow })
    }

    /// The levels, by name.
    pub async fn levels(&self) -> Vec<Arc<PriorityLevel>> {
        self.followed.get_or_init(|| self.follower.start()).await;
        self.follower.current().levels.values().cloned().collect()
    }

    /// A seat for a request that was classified; none when it is to come again later.
    pub async fn admit(&self, request: &Classification) -> Option<Seat> {
        request.level.acquire(&request.flow, &self.clock).await
    }
}

impl Drop for FlowControl {
    fn drop(&mut self) {
        if let Some(follower) = self.followed.get() {
            follower.abort();
        }
    }
}

fn is_probe(info: &RequestInfo) -> bool {
    let root = info.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    !info.is_resource_request && matches!(root, "healthz" | "livez" | "readyz")
}
