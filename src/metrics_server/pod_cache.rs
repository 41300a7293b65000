//! The pods, as a watch shows them from the first question on: who asks again and again, as autoscalers do,
//! has nobody list them each time. As long as nobody asks nothing is watched.

use std::sync::Arc;

use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::pod::PODS;
use client_go::client::Client;
use client_go::informer_factory::SharedInformerFactory;
use client_go::shared_informer::SharedInformer;
use client_go::tasks::{StopOnDrop, Tasks};
use clock::Clock;
use entropy::Entropy;

/// Who watches, as flow and logs call it.
const COMPONENT: &str = "metrics-server";

/// The pods. Bound: those of the cluster, which the apiserver's cache shares.
pub(super) struct PodCache {
    client: Client,
    factory: SharedInformerFactory,
    informer: Arc<SharedInformer>,
    tasks: Tasks,
    _stops: StopOnDrop,
}

impl PodCache {
    /// Empty, and nobody watches.
    pub(super) fn new(client: Client, clock: Clock, entropy: Entropy) -> PodCache {
        let tasks = Tasks::new(clock.clone(), entropy.clone());
        let factory = SharedInformerFactory::new(client.clone(), COMPONENT, clock, entropy);
        let informer = factory.informer(&PODS);
        PodCache { client, factory, informer, _stops: tasks.stop_on_drop(), tasks }
    }

    /// Those of a namespace that are chosen; until the watch has begun they are asked for.
    pub(super) async fn list(
        &self,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<Vec<Arc<Object>>, Status> {
        if self.is_known() && options.predicate.fields.is_everything() {
            return Ok(self.informer.lister().chosen(namespace, &options.predicate.labels));
        }
        let list = self.client.list(&PODS, namespace, options).await?;
        Ok(list.items.iter().cloned().collect())
    }

    /// One of them.
    pub(super) async fn find(&self, namespace: &str, name: &str) -> Result<Option<Arc<Object>>, Status> {
        if self.is_known() {
            return Ok(self.informer.lister().get(namespace, name));
        }
        self.client.find(&PODS, namespace, name).await
    }

    fn is_known(&self) -> bool {
        let is_known = self.informer.has_synced();
        if !is_known {
            self.factory.start(&self.tasks);
        }
        is_known
    }
}
