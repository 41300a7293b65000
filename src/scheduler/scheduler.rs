//! `Scheduler`: the parts of kube-scheduler and what keeps them going.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::backoff::PodBackoff;
use super::cache::Cache;
use super::config::merge::merge;
use super::config::{KubeSchedulerConfiguration, Profile};
use super::event_handlers::{NodeHandler, OTHER_RESOURCES, OtherHandler, PodHandler};
use super::extender::{Dial, Extenders};
use super::framework::plugin_numbers::PluginNumbers;
use super::framework::pod_info::PodInfo;
use super::framework::preempting::Preempting;
use super::framework::profiles::Profiles;
use super::framework::runtime::Framework;
use super::metrics::SchedulerMetrics;
use super::metrics_page::SchedulerPage;
use super::options::SchedulerOptions;
use super::own::OwnPlugins;
use super::parts::{MAX_WRITES, SchedulerParts};
use super::plugins::{PluginHandle, claims_made, make_all};
use super::queue::SchedulingQueue;
use super::schedule_one::{Attempts, Cursor};
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::kind::Kind;
use apis::views::pod;
use client_go::component::ComponentContext;

/// How often pods are looked for that have waited too long.
const FLUSH_PERIOD: Duration = Duration::from_secs(30);

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
        Scheduler::with_options(context, &SchedulerOptions::default(), &OwnPlugins::default())
    }

    /// A scheduler that is told something, with plugins of the user's beside the others; extenders it can ask
    /// none.
    pub fn with_options(
        context: ComponentContext,
        options: &SchedulerOptions,
        own: &OwnPlugins,
    ) -> Scheduler {
        Scheduler::with_extenders(context, options, own, None)
    }

    /// A scheduler that reaches its extenders by `dial`.
    pub fn with_extenders(
        context: ComponentContext,
        options: &SchedulerOptions,
        own: &OwnPlugins,
        dial: Option<Dial>,
    ) -> Scheduler {
        let config = options.scheduler_config.clone().unwrap_or_default();
        let config = config.ignoring_what_extenders_manage();
        // Pods that have ended take no room: to this watch they are gone.
        let running = FieldSelector::parse("status.phase!=Succeeded,status.phase!=Failed");
        let running = running.expect("the text is a field selector");
        let pods = context.informers.informer_for(&PODS, "", running);
        let nodes = context.informers.informer(&NODES);
        let plugin_numbers = Arc::new(PluginNumbers::new(context.clock.clone()));
        let preempting = Preempting::new(pods.lister());
        let profiles = Arc::new(make_profiles(&context, &config, own, (&plugin_numbers, &preempting)));
        let backoff = PodBackoff {
            initial: Duration::from_secs(config.pod_initial_backoff_seconds),
            most: Duration::from_secs(config.pod_max_backoff_seconds),
        };
        let parts = Arc::new(SchedulerParts {
            queue: SchedulingQueue::new(profiles.clone(), context.clock.clone())
                .trying_again_after(options.pod_max_in_unschedulable_pods_duration)
                .backing_off(backoff),
            cache: Cache::default(),
            pods: pods.lister(),
            preempting,
            metrics: SchedulerMetrics::default(),
            plugin_numbers,
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            extenders: Extenders::new(&config.extenders, dial),
            profiles,
            context,
        });
        parts.context.metrics.add("scheduler", Arc::new(SchedulerPage(Arc::downgrade(&parts))));
        nodes.add_handler(NodeHandler { parts: parts.clone() });
        pods.add_handler(PodHandler { parts: parts.clone() });
        for (kind, resource) in OTHER_RESOURCES {
            let informer = parts.context.informers.informer(kind);
            informer.add_handler(OtherHandler { parts: parts.clone(), resource });
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
        let is_waiting = |pod: &Object| {
            pod::node_name(pod).is_empty()
                && self.parts.profiles.has(&pod::scheduler_name(pod))
                && !self.parts.cache.has_pod(&pod.metadata.uid)
        };
        for pod in self.parts.pods.all().into_iter().filter(|pod| is_waiting(pod)) {
            self.parts.queue.recover(Arc::new(PodInfo::new(pod)));
        }
    }

    async fn flush_queue(self) {
        loop {
            self.parts.queue.wait_for_leftover().await;
            self.parts.context.clock.sleep(FLUSH_PERIOD).await;
            self.parts.queue.flush_leftover();
        }
    }
}

/// One framework for each profile. What was configured was looked at when it was read.
fn make_profiles(
    context: &ComponentContext,
    config: &KubeSchedulerConfiguration,
    own: &OwnPlugins,
    (numbers, preempting): (&Arc<PluginNumbers>, &Preempting),
) -> Profiles {
    let lister = |kind: &Arc<Kind>| context.informers.informer(kind).lister();
    let claims_made = Arc::new(claims_made::family());
    context.metrics.add("scheduler-claims", claims_made.clone());
    let (clock, entropy) = (&context.clock, &context.entropy);
    let handle = PluginHandle { lister: &lister, clock, entropy, claims_made: &claims_made, preempting };
    let make = |profile: &Profile| {
        let merged = merge(profile, &[]).expect("a configuration is checked when it is read");
        let plugins = make_all(profile, &merged, &handle).expect("arguments are checked when they are read");
        let framework = Framework::with_orders(profile.name(), plugins, merged.orders);
        let mut framework = framework.with_own(own.make(context)).timed_by(numbers);
        framework.percentage_of_nodes_to_score =
            profile.percentage_of_nodes_to_score.or(config.percentage_of_nodes_to_score);
        framework
    };
    let mut frameworks = config.profiles.iter().map(make);
    let first = frameworks.next().unwrap_or_else(|| make(&Profile::default()));
    Profiles::new(first, frameworks.collect())
}
