//! `PodNetwork`: the way from the apiserver to pods, which no socket of the machine leads to (upstream's
//! egress selector for `cluster`). The apiserver knows no network; whoever runs it hands it a [`PodDialer`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};

use futures::future::BoxFuture;
use tokio::io::DuplexStream;

/// Connects to pods.
pub trait PodDialer: Send + Sync {
    /// Whether an address is a pod's: any other is the machine's to find.
    fn has(&self, address: IpAddr) -> bool;

    /// Connects to a port of a pod.
    ///
    /// # Errors
    /// What a kernel would say, after the time that it would take.
    fn dial(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<DuplexStream>>;
}

/// Where pods are reached, once somebody has said so; until then nothing is a pod's address. Cloning shares
/// it.
#[derive(Clone, Default)]
pub struct PodNetwork(Arc<OnceLock<Weak<dyn PodDialer>>>);

impl PodNetwork {
    /// From now on, and for as long as the dialer is there, pods are reached by it. The first one stays.
    pub fn join(&self, dialer: Weak<dyn PodDialer>) {
        let _ = self.0.set(dialer);
    }

    /// Who connects to an address; none when it is not a pod's.
    pub(super) fn dialer_to(&self, address: IpAddr) -> Option<Arc<dyn PodDialer>> {
        self.0.get()?.upgrade().filter(|dialer| dialer.has(address))
    }
}
