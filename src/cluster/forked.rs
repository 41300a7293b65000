//! Forks as their parent knows them: what can be made, asked and ended, without knowing what a cluster is.

use std::collections::BTreeMap;

use futures::future::{BoxFuture, join_all};
use sync::Mutex;

use super::config::{Access, Config};
use super::origin::Origin;
use super::start_error::StartError;
use super::stocked::Stock;
use apimachinery::status::Status;

/// Starts a cluster that goes on from an origin.
pub(super) type Starter =
    fn(Config, Origin) -> BoxFuture<'static, Result<Box<dyn ForkedCluster>, StartError>>;

/// A cluster that is the fork of another.
pub(super) trait ForkedCluster: Send {
    /// How to reach it.
    fn access(&self) -> Option<Access>;
    /// Where it stands.
    fn resource_version(&self) -> u64;
    /// Its objects.
    fn stock(&self) -> BoxFuture<'static, Result<Stock, Status>>;
    /// Ends it in order.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The forks that a cluster keeps by name, for whoever reaches it over HTTP; they end with it. One without a
/// cluster is being made.
#[derive(Default)]
pub(super) struct NamedForks(pub(super) Mutex<BTreeMap<String, Option<Box<dyn ForkedCluster>>>>);

impl NamedForks {
    /// Ends all of them.
    pub(super) async fn stop(&self) {
        let forks = std::mem::take(&mut *self.0.lock());
        join_all(forks.into_values().flatten().map(|fork| fork.stop())).await;
    }
}
