//! How a cluster ends: those outside are told, then the components end, then the port, then the store.

use std::net::SocketAddr;
use std::time::Duration;

use super::inside::Inside;
use super::service_families::advertised;
use super::{Cluster, api_endpoints};
use apiserver::server::Server;

/// How long an end waits for an etcd that may be away.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// How long an end waits for requests under way before it closes the port; what is left is waited for a
/// moment more (`server::stopping`), then cut.
const FINISH_WITHIN: Duration = Duration::from_secs(2);
impl Cluster {
    /// Ends it in order: the components, then the port, then the store. Dropping a cluster ends it too, but
    /// does not wait.
    pub async fn stop(self) {
        self.serve_on().await;
        let Cluster { inside, server, _mounted, publishing, etcd, component_ports, .. } = self;
        inside.end_stepping();
        drop(_mounted);
        if let Some(publishing) = publishing {
            publishing.close().await;
        }
        inside.for_handles.end().await;
        inside.forks.stop().await;
        inside.data_plane.stop();
        inside.interceptors.faults.clear();
        inside.running.stop_all();
        inside.running.elections.ended().await;
        inside.leave(server.as_ref().map(Server::address)).await;
        if let Some(server) = server {
            inside.finish_requests().await;
            server.stop().await;
        }
        // Its watches end with the store.
        inside.kv.close().await;
        for server in etcd.into_iter().chain(component_ports.into_iter().map(|(_, server)| server)) {
            server.stop().await;
        }
    }

    /// Whoever asks from outside is told where the server's end has come to: it is not ready, and serves for
    /// as long as they need to hear of it, in real time, as they live.
    async fn serve_on(&self) {
        let (inside, address) = (&self.inside, self.address());
        inside.shutdown.begin();
        let delay = inside.config.apiserver.shutdown.delay;
        if address.is_some() && !delay.is_zero() {
            // Others that share its etcd are asked from now on.
            inside.leave(address).await;
            inside.for_handles.time.real.sleep(delay).await;
        }
        inside.shutdown.refuse_new();
    }
}

impl Inside {
    /// The server at an address ends: others that share its etcd need not wait until that is noticed.
    pub(super) async fn leave(&self, address: Option<SocketAddr>) {
        let address = address.and_then(|bound| advertised(&self.config, bound));
        let Some(address) = address.filter(|_| self.kv.is_shared()) else {
            return;
        };
        let leaving = async {
            let servers = self.storage.remove_master_lease(address).await?;
            api_endpoints::publish(&self.kit(), &servers).await
        };
        match self.clock.timeout_outside(LEAVE_WITHIN, leaving).await {
            Ok(Ok(())) => {}
            Ok(Err(status)) => tracing::debug!(status.message, "the server's address is left to expire"),
            Err(_) => tracing::debug!("the server's address is left to expire"),
        }
    }

    /// Requests under way are finished while the port is open, where what is new is refused.
    pub(super) async fn finish_requests(&self) {
        if self.config.apiserver.shutdown.sends_retry_after {
            let _ = self.for_handles.time.real.timeout(FINISH_WITHIN, self.shutdown.drained()).await;
        }
    }
}
