//! `Inside`: what is within a running cluster, shared by whoever holds the cluster and by its handles over
//! HTTP.

use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use super::component_health::HealthOfAll;
use super::components::RunningComponents;
use super::config::Config;
use super::data_plane::DataPlane;
use super::forked::{NamedForks, Starter};
use super::interceptors::Interceptors;
use super::origin::SigningKeys;
use super::sent_spans::SentSpans;
pub(super) use super::serving::{ADMIN, MASTERS};
use super::snapshot::{Snapshot, SnapshotError};
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiService;
use apis::scheme::Scheme;
use apiserver::filters::interceptor::on_behalf_of;
use apiserver::post_start_hooks::PostStartHooks;
use apiserver::server::Server;
use apiserver::shutdown::Shutdown;
use apiserver::storage::{ByteStore, Storage};
use apiserver::traffic::Traffic;
use client_go::client::Client;
use clock::Clock;
use faults::ComponentSwitch;
use flow::{Exchanges, Flow, KeepsExchanges};
use handles::HandleCall;
use ui::Guests;

/// The test kit; what begins so is known to `faults` and `witness`.
const KIT: &str = "kubarium:handles";

/// A running cluster without its port. What a handle does, it does to this.
pub(crate) struct Inside {
    pub(super) running: RunningComponents,
    pub(super) service: ApiService,
    pub(super) scheme: Arc<Scheme>,
    pub(super) clock: Clock,
    pub(super) flow: Flow,
    pub(super) kv: ByteStore,
    pub(super) data_plane: Arc<DataPlane>,
    pub(super) interceptors: Interceptors,
    /// Who asks for what.
    pub(super) traffic: Traffic,
    pub(super) for_handles: ForHandles,
    pub(super) storage: Storage,
    pub(super) keys: SigningKeys,
    /// What it was made from.
    pub(super) config: Config,
    pub(super) forks: NamedForks,
    /// The resourceVersion of what it began with.
    pub(super) began_at: u64,
    /// Starts forks.
    pub(super) starter: Starter,
    /// How far its start has come.
    pub(super) hooks: PostStartHooks,
    /// How far its end has come.
    pub(super) shutdown: Shutdown,
}

/// What the handles of one cluster hold between two calls.
#[derive(Default)]
pub(super) struct ForHandles {
    pub(super) time: OwnTime,
    pub(super) page: OpenPage,
    pub(super) spans: SentSpans,
    /// What came of asking components how they are.
    pub(super) health: HealthOfAll,
    /// With `--keep-bodies`.
    pub(super) _keeps: Option<KeepsExchanges>,
    /// True when the cluster ends: what tells without end does, too.
    pub(super) ending: watch::Sender<bool>,
}

impl ForHandles {
    /// With headers and bodies of writes, if they are to be kept whoever asks.
    pub(super) fn keeping(flow: &Flow, keep_bodies: bool) -> ForHandles {
        let _keeps = flow.exchanges().filter(|_| keep_bodies).map(Exchanges::ask);
        ForHandles { _keeps, ..ForHandles::default() }
    }

    /// Ends what would go on for ever, and the page.
    pub(super) async fn end(&self) {
        self.ending.send_replace(true);
        self.spans.flushed(&self.time.real).await;
        self.page.close().await;
    }
}

/// The page that shows the cluster: closed until it is asked for.
#[derive(Default)]
pub(super) struct OpenPage {
    pub(super) guests: Guests,
    pub(super) server: Mutex<Option<Server>>,
}

impl OpenPage {
    /// Nobody reaches it any more.
    pub(super) async fn close(&self) {
        if let Some(server) = self.server.lock().await.take() {
            server.stop().await;
        }
    }
}

/// What is waited by for the cluster as a whole.
pub(super) struct OwnTime {
    /// For what is waited for in real time, whatever the cluster's is.
    pub(super) real: Clock,
    /// One steps the clock at a time.
    pub(super) stepping: Mutex<()>,
}

impl Default for OwnTime {
    fn default() -> OwnTime {
        OwnTime { real: Clock::real(), stepping: Mutex::default() }
    }
}

impl Inside {
    /// Whether it has begun to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.shutdown.has_begun()
    }

    /// The cluster as it is at one resourceVersion.
    pub(super) fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        let nodes = (self.config.nodes, self.config.kubelet.max_pods);
        Ok(Snapshot::new(self.kv.own("a snapshot")?.image()?, self.keys.to_pem(), self.clock.now(), nodes))
    }

    /// In the name of an administrator.
    pub(super) fn client(&self) -> Client {
        let admin = Arc::new(UserInfo::authenticated(ADMIN, &[MASTERS]));
        Client::new(self.service.clone(), admin, self.clock.clone(), self.flow.clone())
    }

    /// In the name of the test kit itself, whom no fault hits that does not name it, and who is not seen.
    pub(super) fn kit(&self) -> Client {
        self.client().acting_as(UserInfo::authenticated(KIT, &[MASTERS]))
    }

    /// The test kit with no more rights than those of the user for whom it asks: a handle that somebody may
    /// call shows them nothing that they may not read.
    pub(super) fn kit_for(&self, user: &UserInfo) -> Client {
        if user.is_member_of(MASTERS) { self.kit() } else { self.client().acting_as(on_behalf_of(user)) }
    }
}

/// Refuses whoever may not do everything anyway, since `what` the handle gives lets one do everything.
///
/// # Errors
/// 403 for others than `system:masters`, whatever RBAC says of the path.
pub(super) fn for_masters(call: &HandleCall, what: &str) -> Result<(), Status> {
    if call.user.is_member_of(MASTERS) {
        return Ok(());
    }
    let text = format!(
        "User {:?} is not in the group {MASTERS}, and {what}: no ClusterRole grants that",
        call.user.name
    );
    Err(Status::failure(403, "Forbidden", text))
}

impl ComponentSwitch for Inside {
    fn check(&self, name: &str) -> Result<(), String> {
        self.running.check(name).map_err(|error| error.to_string())
    }

    fn stop(&self, name: &str) -> Result<bool, String> {
        self.running.stop(name).map_err(|error| error.to_string())
    }

    fn start(&self, name: &str) {
        if !self.is_stopping() {
            // It was stopped by that name.
            let _ = self.running.start(name);
        }
    }

    fn end_cut_watches(&self) {
        self.storage.end_cut_watches();
    }

    fn revision(&self) -> u64 {
        self.kv.seen_revision()
    }

    fn compact_revision(&self) -> u64 {
        self.kv.compact_revision()
    }
}
