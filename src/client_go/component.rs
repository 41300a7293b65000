//! `ComponentContext`: what a component gets, and none gets more.

use std::sync::Arc;

use super::client::Client;
use super::event_recorder::{EventBroadcaster, EventRecorder};
use super::informer_factory::SharedInformerFactory;
use super::metrics::ComponentMetrics;
use super::shared_informer::{HandlerRegistration, ResourceEventHandler, SharedInformer};
use super::shown_gates::ShownGates;
use super::tasks::Tasks;
use super::workqueue::{QueueKey, WorkQueue};
use apimachinery::feature_gates::FeatureGates;
use apis::kind::Kind;
use clock::Clock;
use entropy::Entropy;
use sync::Mutex;

/// Everything that a controller, the scheduler or a kubelet needs of the cluster. Cloning shares it.
#[derive(Clone)]
pub struct ComponentContext {
    /// The component's name, as flow and logs call it: `kube-controller-manager`, `kubelet/node-1`.
    pub component: Arc<str>,
    /// Asks the apiserver in the component's name.
    pub client: Client,
    /// Caches, shared by all parts of the component.
    pub informers: Arc<SharedInformerFactory>,
    /// Tells people; [`EventRecorder::named`] for a part of the component.
    pub recorder: EventRecorder,
    /// The cluster's clock.
    pub clock: Clock,
    /// The cluster's random numbers.
    pub entropy: Entropy,
    /// What it counts of itself.
    pub metrics: Arc<ComponentMetrics>,
    /// What it runs.
    pub tasks: Tasks,
    /// What the component as a whole runs: these, if it is no part.
    whole: Tasks,
    /// The handlers that end with this part; none of a whole component, whose informers end. Bound: one for
    /// each call of [`ComponentContext::handle`].
    handlers: Option<Arc<Mutex<Vec<PartHandler>>>>,
}

/// A handler, and the informer that tells it.
type PartHandler = (Arc<SharedInformer>, HandlerRegistration);

impl ComponentContext {
    /// A component that has not begun. `source` and `host` are what its Events say of their origin:
    /// `default-scheduler` and nothing, `kubelet` and the node.
    pub fn new(
        component: &str,
        (source, host): (&str, &str),
        client: Client,
        clock: Clock,
        entropy: Entropy,
    ) -> ComponentContext {
        let clock = clock.named(component);
        let metrics = Arc::new(ComponentMetrics::default());
        let client = client.counted(metrics.requests());
        let tasks = Tasks::new(clock.clone(), entropy.clone());
        let broadcaster = EventBroadcaster::new(client.clone(), clock.clone(), entropy.clone());
        let recorder = broadcaster.recorder(source, host);
        broadcaster.start(&tasks);
        let factory = SharedInformerFactory::new(client.clone(), component, clock.clone(), entropy.clone());
        let component = client.flow().name(component);
        let (informers, whole, handlers) = (Arc::new(factory), tasks.clone(), None);
        ComponentContext {
            component,
            client,
            informers,
            recorder,
            clock,
            entropy,
            metrics,
            tasks,
            whole,
            handlers,
        }
    }

    /// It goes by these gates, which its metrics tell.
    #[must_use]
    pub fn with_gates(self, gates: &FeatureGates) -> ComponentContext {
        self.metrics.add("feature gates", Arc::new(ShownGates(gates.clone())));
        self
    }

    /// A part of the component that can be stopped by itself: it shares the caches, and has tasks and
    /// handlers of its own.
    pub fn part(&self) -> ComponentContext {
        ComponentContext { tasks: self.tasks.part(), handlers: Some(Arc::default()), ..self.clone() }
    }

    /// Tells a handler what happens to the objects of a kind, until this stops.
    pub fn handle(
        &self,
        kind: &Arc<Kind>,
        handler: impl ResourceEventHandler + 'static,
    ) -> HandlerRegistration {
        let informer = self.informers.informer(kind);
        let registration = informer.add_handler(handler);
        if let Some(handlers) = &self.handlers {
            handlers.lock().push((informer, registration.clone()));
        }
        registration
    }

    /// Starts every informer that is not running, for all parts of the component.
    pub fn start_informers(&self) {
        self.informers.start(&self.whole);
    }

    /// Ends the component: its tasks, and what its informers and their handlers hold of each other. Of a part
    /// its own tasks and handlers end.
    pub fn stop(&self) {
        self.tasks.stop();
        let Some(handlers) = &self.handlers else { return self.informers.shutdown() };
        let handlers = std::mem::take(&mut *handlers.lock());
        handlers.iter().for_each(|(informer, registration)| informer.remove_handler(registration));
    }

    /// A work queue with the default rate limiter of controllers; `name` is the controller's.
    pub fn work_queue<K: QueueKey>(&self, name: &str) -> WorkQueue<K> {
        self.work_queue_counted_as(name, name)
    }

    /// A work queue whose metrics have another name.
    pub fn work_queue_counted_as<K: QueueKey>(&self, name: &str, counted_as: &str) -> WorkQueue<K> {
        let counts = self.metrics.queue(counted_as, &self.clock);
        let (clock, flow) = (self.clock.clone(), self.client.flow().clone());
        let queue = WorkQueue::counted(name, &self.component, clock, flow, counts.clone());
        self.metrics.follow(counted_as, counts, queue.state());
        queue
    }
}
