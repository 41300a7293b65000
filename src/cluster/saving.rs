//! Saving a cluster to a file, and starting one from it.

use std::path::Path;

use super::Cluster;
use super::config::Config;
use super::snapshot::{Snapshot, SnapshotError};
use super::start_error::StartError;
use client_go::Client;

impl Cluster {
    /// For who looks into it afterwards: in the name of the test kit itself, whom no fault hits that does not
    /// name it.
    pub(crate) fn kit(&self) -> Client {
        self.inside.kit()
    }

    /// The whole cluster as it is at one resourceVersion, whoever writes meanwhile.
    ///
    /// # Errors
    /// What the store says.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        self.inside.snapshot()
    }

    /// Writes a snapshot of it to a file, which [`Cluster::load`] and `kubarium up --snapshot` take.
    ///
    /// # Errors
    /// What the store or the file system says.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SnapshotError> {
        self.snapshot()?.write(path.as_ref())
    }

    /// Starts a cluster from a file that [`Cluster::save`] wrote: in memory, without a port, with real time.
    /// [`Config::snapshot`] is for all else.
    ///
    /// # Errors
    /// [`StartError::Snapshot`] for the file, nothing of which is loaded then.
    pub async fn load(path: impl AsRef<Path>) -> Result<Cluster, StartError> {
        Cluster::start(Config::new().snapshot(Snapshot::read(path.as_ref())?)).await
    }
}
