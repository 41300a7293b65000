//! How the apiserver reaches pods: over the cluster's own network, as if it ran on the first node.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::DuplexStream;

use super::kubelet_lookup::Kubelets;
use apiserver::webhook::PodDialer;
use network::{Network, Obstacle, Refusal};

/// The apiserver's lines to pods.
pub(super) struct PodLines {
    network: Network,
    kubelets: Arc<Kubelets>,
}

impl PodLines {
    pub(super) fn new(network: &Network, kubelets: &Arc<Kubelets>) -> Arc<PodLines> {
        Arc::new(PodLines { network: network.clone(), kubelets: kubelets.clone() })
    }

    /// What the apiserver holds of it: no more, since the network holds the apiserver.
    pub(super) fn handle(self: &Arc<PodLines>) -> Weak<dyn PodDialer> {
        let lines: Arc<dyn PodDialer> = self.clone();
        Arc::downgrade(&lines)
    }
}

impl PodDialer for PodLines {
    fn has(&self, address: IpAddr) -> bool {
        self.kubelets.has_pods_at(address)
    }

    /// From the first node, where kubeadm has the control plane: policies and partitions see it there.
    fn dial(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<DuplexStream>> {
        let from = self.kubelets.first_address().unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        async move { self.network.connect(from, to).await.map_err(of_kernel) }.boxed()
    }
}

fn of_kernel(refusal: Refusal) -> io::Error {
    match refusal.obstacle {
        Obstacle::Refused => ErrorKind::ConnectionRefused,
        Obstacle::TimedOut => ErrorKind::TimedOut,
        Obstacle::Unreachable => ErrorKind::HostUnreachable,
    }
    .into()
}
