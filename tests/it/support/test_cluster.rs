//! The cluster that expectations are held against: ours, or the real one when that is asked for.

use kubarium::apimachinery::wire::ApiService;
use kubarium::cluster::Components;
use kubarium::{Cluster, Config};

use super::upstream::{self, ControlPlane};

/// A cluster of either kind.
pub(crate) enum TestCluster {
    /// kubarium, in this process.
    Ours(Box<Cluster>),
    /// etcd, kube-apiserver and the others, each a process.
    Real(Box<ControlPlane>),
}

impl TestCluster {
    /// Starts one with all components and so many nodes, or none of them. None when the real one is asked for
    /// and its folder has no components: then that is said.
    pub(crate) async fn start(nodes: Option<u32>, what: &str) -> Option<TestCluster> {
        let Some(bin) = upstream::asked() else {
            let components = if nodes.is_some() { Components::ALL } else { Components::NONE };
            let config = Config::new().components(components).nodes(nodes.unwrap_or(0));
            return Some(TestCluster::Ours(Box::new(Cluster::start(config).await.unwrap())));
        };
        if nodes.is_some() && !upstream::has_components(&bin) {
            eprintln!("not asked: {what}: no controllers and scheduler in {}", bin.display());
            return None;
        }
        Some(TestCluster::Real(Box::new(ControlPlane::start(&bin, nodes).await)))
    }

    /// Starts one of ours with all components, whose objects are in an etcd, below a word of their own.
    pub(crate) async fn on_etcd(nodes: u32, etcd: &str, prefix: &str) -> TestCluster {
        let mut config = Config::new().components(Components::ALL).nodes(nodes);
        config.apiserver.etcd.servers = vec![etcd.to_owned()];
        config.apiserver.etcd.prefix = prefix.to_owned();
        TestCluster::Ours(Box::new(Cluster::start(config).await.unwrap()))
    }

    /// The apiserver, in the name of an administrator.
    pub(crate) fn service(&self) -> ApiService {
        match self {
            TestCluster::Ours(cluster) => cluster.service(),
            TestCluster::Real(plane) => plane.service(),
        }
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        if let TestCluster::Ours(cluster) = self {
            cluster.stop().await;
        }
    }
}
