//! kube-aggregator: groups that somebody else serves, under the same roof.
//!
//! In comes a request that the filters let through; if an APIService says that another server has its group
//! and version, that server is asked in the user's name. The APIServices of local groups are made here too.
//! It must not know how objects are stored, nor who authenticated the user. With no remote APIService it costs
//! one look at an empty map.

mod local;
pub mod priorities;

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::apimachinery::status::Status;
use crate::apis::kind::Kind;
use crate::apis::scheme::Scheme;
use crate::apiserver::registry::Registry;

/// The aggregator of one server.
pub struct Aggregator {
    registry: Registry,
    scheme: Arc<Scheme>,
    /// At which generation of the scheme the local APIServices were in step with it; 0 when they never were.
    synced: Mutex<u64>,
}

impl Aggregator {
    /// Over the registry; asks nobody yet.
    pub fn new(registry: &Registry, scheme: &Arc<Scheme>) -> Aggregator {
        Aggregator { registry: registry.clone(), scheme: scheme.clone(), synced: Mutex::new(0) }
    }

    /// Called before a request for objects of `kind` is answered: APIServices are made when they are asked
    /// for.
    ///
    /// # Errors
    /// The store's.
    pub async fn before(&self, kind: &Kind) -> Result<(), Status> {
        if &*kind.plural != "apiservices" || &*kind.group_version.group != "apiregistration.k8s.io" {
            return Ok(());
        }
        let mut synced = self.synced.lock().await;
        let generation = self.scheme.generation();
        if *synced != generation {
            local::sync(&self.registry, &self.scheme).await?;
            *synced = generation;
        }
        Ok(())
    }
}
