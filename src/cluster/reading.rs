//! Reading clusters and snapshots as a whole: exports and differences, and what a cluster lets be seen of
//! itself.

use super::Cluster;
use super::difference::SnapshotDiff;
use super::export::{self, Export};
use super::origin::Origin;
use super::snapshot::Snapshot;
use super::stock::ExportError;
use super::stocked::Stock;
use faults::Faults;
use network::Network;

impl Cluster {
    /// What goes wrong on purpose.
    pub fn faults(&self) -> &Faults {
        &self.inside.interceptors.faults
    }

    /// What connects its pods, for a program that wants to reach one, or to make it harder.
    pub fn network(&self) -> Network {
        self.inside.data_plane.network()
    }

    /// What the data dir had lost, if the cluster was started all the same ([`super::Config::recover`]).
    pub fn recovery(&self) -> Option<&etcd::Recovery> {
        self.inside.kv.own("a recovery").ok()?.recovery()
    }

    /// Its objects at one resourceVersion, as YAML that `kubectl apply` takes: without status and what else
    /// the server writes, namespaces and definitions of custom kinds first. Secrets are among them.
    ///
    /// # Errors
    /// [`ExportError`]
    pub async fn export(&self, what: Export) -> Result<String, ExportError> {
        Ok(export::manifest(self.inside.stock().await?, what))
    }
}

impl Snapshot {
    /// Its objects, as [`Cluster::export`] has them.
    ///
    /// # Errors
    /// [`ExportError`], as when it is of a cluster that encrypts what it stores.
    pub async fn export(&self, what: Export) -> Result<String, ExportError> {
        Ok(export::manifest(self.stock().await?, what))
    }

    /// What is different in another: what its cluster has and this one's has not was added. Leases, Events,
    /// what every cluster has, times of heartbeats and what only says how something was written are compared
    /// with `all` alone.
    ///
    /// # Errors
    /// [`ExportError`], as when a snapshot is of a cluster that encrypts what it stores.
    pub async fn diff(&self, other: &Snapshot, all: bool) -> Result<SnapshotDiff, ExportError> {
        Ok(SnapshotDiff::between(&self.stock().await?, &other.stock().await?, all))
    }

    /// Of a cluster that is made of it, and in which nothing happens.
    async fn stock(&self) -> Result<Stock, ExportError> {
        let (config, origin) = Origin::at_rest(self.clone()).await?;
        let cluster = Cluster::begin(config, Some(origin)).await?;
        let stock = cluster.inside.collect().await;
        cluster.stop().await;
        Ok(stock?)
    }
}
