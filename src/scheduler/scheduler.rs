//! `Scheduler`: the parts of kube-scheduler and what keeps them going.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::cache::Cache;
use super::event_handlers::{NodeHandler, PodHandler, VOLUME_RESOURCES, VolumeHandler};
use super::framework::pod_info::PodInfo;
use super::framework::runtime::Framework;
use super::options::SchedulerOptions;
use super::parts::{SCHEDULER_NAME, SchedulerParts};
use super::plugins::default_plugins;
use super::queue::SchedulingQueue;
use super::schedule_one::{Attempts, Cursor};
use apimachinery::fields::FieldSelector;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::kind::Kind;
use client_go::component::ComponentContext;

/// How often pods are looked for that have waited too long.
const FLUSH_PERIOD: Duration = Duration::from_secs(30);
/// Bindings and reports of failures that are on their way at once; at the bound the next attempt waits.
const MAX_WRITES: usize = 100;

/// The scheduler. Cloning shares it.
#[derive(Clone)]
pub struct Scheduler {
    pub(super) parts: Arc<SchedulerParts>,
}

impl Scheduler {
    /// A scheduler with the default plugins, which hears of pods and nodes once its context's informers are
    /// started. The context is its own: its client asks as `system:kube-scheduler`, its recorder is
    /// `default-scheduler`.
    pub fn new(context: ComponentContext) -> Scheduler {
        Scheduler::with_options(context, &SchedulerOptions::default())
    }

    /// A scheduler that is told something.
    pub fn with_options(context: ComponentContext, options: &SchedulerOptions) -> Scheduler {
        // Pods that have ended take no room: to this watch they are gone.
        let running = FieldSelector::parse("status.phase!=Succeeded,status.phase!=Failed");
        let running = running.expect("the text is a field selector");
        let pods = context.informers.informer_for(&PODS, "", running);
        let nodes = context.informers.informer(&NODES);
        let lister = |kind: &Arc<Kind>| context.informers.informer(kind).lister();
        let framework = Arc::new(Framework::new(default_plugins(&lister, &context.clock)));
        let parts = Arc::new(SchedulerParts {
            queue: SchedulingQueue::new(framework.clone(), context.clock.clone())
                .trying_again_after(options.pod_max_in_unschedulable_pods_duration),
            cache: Cache::default(),
            pods: pods.lister(),
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            framework,
            context,
        });
        nodes.add_handler(NodeHandler { parts: parts.clone() });
        pods.add_handler(PodHandler { parts: parts.clone() });
        for (kind, resource) in VOLUME_RESOURCES {
            let informer = parts.context.informers.informer(kind);
            informer.add_handler(VolumeHandler { parts: parts.clone(), resource });
        }
        Scheduler { parts }
    }

    /// Starts everything as tasks of its context.
    pub fn start(&self) {
        let context = &self.parts.context;
        context.informers.start(&context.tasks);
        let scheduler = self.clone();
        context.tasks.supervise("kube-scheduler: schedule pods", move || scheduler.clone().schedule_pods());
        let scheduler = self.clone();
        context.tasks.supervise("kube-scheduler: flush queue", move || scheduler.clone().flush_queue());
    }

    /// Nothing is scheduled before all pods and nodes are known: a node looks empty until its pods are.
    async fn schedule_pods(self) {
        self.parts.context.informers.wait_for_cache_sync().await;
        self.recover();
        let attempts = Attempts::new(self.parts);
        let mut cursor = Cursor::default();
        loop {
            attempts.schedule_one(&mut cursor).await;
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
        let pods = self.parts.pods.all().into_iter().map(|object| Arc::new(PodInfo::new(object)));
        for pod in pods.filter(|pod| is_waiting(pod) && !self.parts.cache.has_pod(pod.uid())) {
            self.parts.queue.recover(pod);
        }
    }

    async fn flush_queue(self) {
        loop {
            self.parts.context.clock.sleep(FLUSH_PERIOD).await;
            self.parts.queue.flush_leftover();
        }
    }
}
