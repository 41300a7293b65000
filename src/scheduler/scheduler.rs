//! `Scheduler`: the parts of kube-scheduler and what keeps them going.
//! Next: scheduler/schedule_one.rs

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::cache::Cache;
use super::event_handlers::{NodeHandler, PodHandler, VOLUME_RESOURCES, VolumeHandler};
use super::framework::pod_info::PodInfo;
use super::framework::runtime::Framework;
use super::plugins::default_plugins;
use super::queue::SchedulingQueue;
use super::schedule_one::Cursor;
use apimachinery::fields::FieldSelector;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::kind::Kind;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The name of the only profile: what pods have as `spec.schedulerName` that leave the choice to the server.
pub const SCHEDULER_NAME: &str = "default-scheduler";
/// How often pods are looked for that have waited too long.
const FLUSH_PERIOD: Duration = Duration::from_secs(30);
/// Bindings and reports of failures that are on their way at once; at the bound the next attempt waits.
const MAX_WRITES: usize = 100;

/// The scheduler. Cloning shares it.
#[derive(Clone)]
pub struct Scheduler {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) context: ComponentContext,
    pub(super) framework: Arc<Framework>,
    pub(super) queue: SchedulingQueue,
    pub(super) cache: Cache,
    pub(super) pods: Lister,
    pub(super) writes: Arc<Semaphore>,
}

impl Scheduler {
    /// A scheduler with the default plugins, which hears of pods and nodes once its context's informers are
    /// started. The context is its own: its client asks as `system:kube-scheduler`, its recorder is
    /// `default-scheduler`.
    pub fn new(context: ComponentContext) -> Scheduler {
        // Pods that have ended take no room: to this watch they are gone.
        let running = FieldSelector::parse("status.phase!=Succeeded,status.phase!=Failed");
        let running = running.expect("the text is a field selector");
        let pods = context.informers.informer_for(&PODS, "", running);
        let nodes = context.informers.informer(&NODES);
        let lister = |kind: &Arc<Kind>| context.informers.informer(kind).lister();
        let framework = Arc::new(Framework::new(default_plugins(&lister, &context.clock)));
        let shared = Arc::new(Shared {
            queue: SchedulingQueue::new(framework.clone(), context.clock.clone()),
            cache: Cache::default(),
            pods: pods.lister(),
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            framework,
            context,
        });
        nodes.add_handler(NodeHandler { shared: shared.clone() });
        pods.add_handler(PodHandler { shared: shared.clone() });
        for (kind, resource) in VOLUME_RESOURCES {
            let informer = shared.context.informers.informer(kind);
            informer.add_handler(VolumeHandler { shared: shared.clone(), resource });
        }
        Scheduler { shared }
    }

    /// Starts everything as tasks of its context.
    pub fn start(&self) {
        let context = &self.shared.context;
        context.informers.start(&context.tasks);
        let scheduler = self.clone();
        context.tasks.supervise("kube-scheduler: schedule pods", move || scheduler.clone().schedule_pods());
        let scheduler = self.clone();
        context.tasks.supervise("kube-scheduler: flush queue", move || scheduler.clone().flush_queue());
    }

    /// Nothing is scheduled before all pods and nodes are known: a node looks empty until its pods are.
    async fn schedule_pods(self) {
        self.shared.context.informers.wait_for_cache_sync().await;
        self.recover();
        let mut cursor = Cursor::default();
        loop {
            self.schedule_one(&mut cursor).await;
            // A full queue must not keep the thread from everybody else.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// A loop that is restarted after a panic has lost the pod that it was trying.
    fn recover(&self) {
        let is_waiting = |pod: &PodInfo| {
            let spec = &pod.pod.spec;
            spec.node_name.is_empty() && spec.scheduler_name == SCHEDULER_NAME
        };
        let pods = self.shared.pods.all().into_iter().map(|object| Arc::new(PodInfo::new(object)));
        for pod in pods.filter(|pod| is_waiting(pod) && !self.shared.cache.has_pod(pod.uid())) {
            self.shared.queue.recover(pod);
        }
    }

    async fn flush_queue(self) {
        loop {
            self.shared.context.clock.sleep(FLUSH_PERIOD).await;
            self.shared.queue.flush_leftover();
        }
    }
}
