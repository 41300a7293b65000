//! `ComponentContext`: what a component gets, and none gets more.

use std::sync::Arc;

use super::client::Client;
use super::event_recorder::{EventBroadcaster, EventRecorder};
use super::informer_factory::SharedInformerFactory;
use super::tasks::Tasks;
use super::workqueue::{QueueKey, WorkQueue};
use clock::Clock;
use entropy::Entropy;

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
    /// What it runs.
    pub tasks: Tasks,
}

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
        let tasks = Tasks::new(clock.clone(), entropy.clone());
        let broadcaster = EventBroadcaster::new(client.clone(), clock.clone(), entropy.clone());
        let recorder = broadcaster.recorder(source, host);
        broadcaster.start(&tasks);
        let factory = SharedInformerFactory::new(client.clone(), component, clock.clone(), entropy.clone());
        let component = client.flow().name(component);
        ComponentContext { component, client, informers: Arc::new(factory), recorder, clock, entropy, tasks }
    }

    /// Ends the component: its tasks, and what its informers and their handlers hold of each other.
    pub fn stop(&self) {
        self.tasks.stop();
        self.informers.shutdown();
    }

    /// A work queue with the default rate limiter of controllers; `name` is the controller's.
    pub fn work_queue<K: QueueKey>(&self, name: &str) -> WorkQueue<K> {
        WorkQueue::new(name, &self.component, self.clock.clone(), self.client.flow().clone())
    }
}
