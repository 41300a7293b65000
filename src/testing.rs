//! What [`crate::test`] stands on: a cluster for the time of one test, on a runtime of its own.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures::FutureExt;

use client_go::client::Client;
use clock::Clock;

use crate::cluster::{Cluster, Config};

/// What a test may ask for as an argument.
pub trait FromCluster {
    /// It, of this cluster.
    fn from_cluster(cluster: &Arc<Cluster>) -> Self;
}

impl FromCluster for Arc<Cluster> {
    fn from_cluster(cluster: &Arc<Cluster>) -> Arc<Cluster> {
        cluster.clone()
    }
}

impl FromCluster for Client {
    fn from_cluster(cluster: &Arc<Cluster>) -> Client {
        cluster.client()
    }
}

impl FromCluster for Clock {
    fn from_cluster(cluster: &Arc<Cluster>) -> Clock {
        cluster.clock().clone()
    }
}

#[cfg(feature = "kube")]
impl FromCluster for kube::Client {
    fn from_cluster(cluster: &Arc<Cluster>) -> kube::Client {
        cluster.kube_client()
    }
}

/// The clock of tests that ask for a stepped one: each begins at the same moment.
pub fn stepped_clock() -> Clock {
    Clock::stepped(START.parse().expect("it is a time"))
}

/// Some Monday morning.
const START: &str = "2024-01-01T08:00:00Z";

/// Runs a test with a cluster, and ends the cluster however the test ends. Port, file and process it has
/// none, so as many run beside each other as there are threads or, with nextest, processes.
///
/// # Panics
/// When the cluster does not start, and as the test does.
pub fn run<T, F: Future<Output = T>>(config: Config, test: impl FnOnce(Arc<Cluster>) -> F) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads for a test").block_on(async {
        let cluster = match Cluster::start(config).await {
            Ok(cluster) => Arc::new(cluster),
            Err(error) => panic!("the cluster of the test does not start: {error}"),
        };
        let outcome = AssertUnwindSafe(test(cluster.clone())).catch_unwind().await;
        // A task that the test has left may still hold it: then it ends when the runtime does.
        if let Some(cluster) = Arc::into_inner(cluster) {
            cluster.stop().await;
        }
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    })
}
