//! The CRD handler (`apiextensions-apiserver/pkg/apiserver/customresource_handler.go` and the controllers
//! that upstream runs beside it in the same process: naming, establishing, finalizing).
//!
//! In comes the watch of CustomResourceDefinitions; out go kinds in the [`Scheme`], conditions on the
//! definitions, and, when one is deleted, the end of its instances. It lives in the apiserver because a kind
//! must be served before its definition says `Established`, which only who serves can know. It must not know
//! HTTP or a client; it reads and writes through the registry. As long as there is no definition it only
//! waits.

mod conditions;
mod conversion;
mod finalizer;
mod identity;
mod naming;
mod owners;
mod sync;

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::registry::{CustomResourceConverter, Registry};
use crate::webhook::{PodNetwork, ServiceResolver};
use apis::scheme::Scheme;
use clock::Clock;
use entropy::Entropy;

use conversion::WebhookConverter;

/// Whether the definitions that there were at the start are served (`crd-informer-synced`).
#[derive(Clone, Debug)]
pub struct DefinitionsSynced(watch::Receiver<bool>);

impl DefinitionsSynced {
    pub(crate) fn is_so(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is so.
    pub(crate) async fn wait(&self) {
        if self.is_so() {
            return;
        }
        // An error means that the handler is gone, and with it the server.
        drop(self.0.clone().wait_for(|synced| *synced).await);
    }
}

/// Serves custom kinds. Dropping it ends its work.
pub struct CrdHandler {
    synced: DefinitionsSynced,
    task: AbortHandle,
    /// The registry knows it only as long as it is here.
    _converter: Arc<dyn CustomResourceConverter>,
}

impl CrdHandler {
    /// Begins to follow the definitions. Needs a tokio runtime.
    pub fn start(
        registry: &Registry,
        scheme: &Arc<Scheme>,
        clock: &Clock,
        entropy: &Entropy,
        pods: &PodNetwork,
    ) -> CrdHandler {
        let resolver = ServiceResolver::new(registry, entropy).over(pods);
        let converter: Arc<dyn CustomResourceConverter> = WebhookConverter::new(resolver, clock, entropy);
        registry.set_converter(Arc::downgrade(&converter));
        let (sender, synced) = watch::channel(false);
        let sync =
            sync::Sync::new(registry.clone(), scheme.clone(), clock.named("apiserver: custom kinds"), sender);
        let synced = DefinitionsSynced(synced);
        CrdHandler { synced, task: clock.spawn(sync.run()).abort_handle(), _converter: converter }
    }

    /// Whether it serves what was defined before, for those who outlive this call.
    pub(crate) fn synced(&self) -> DefinitionsSynced {
        self.synced.clone()
    }

    /// Waits until the definitions that there were at the start are served: after a restart, what is not
    /// known yet may still be.
    pub async fn wait_until_synced(&self) {
        self.synced.wait().await;
    }
}

impl Drop for CrdHandler {
    fn drop(&mut self) {
        self.task.abort();
    }
}
