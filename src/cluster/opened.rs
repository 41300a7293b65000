//! What of a cluster is open on the host beside its apiserver.

use std::net::SocketAddr;

use super::Cluster;
use super::config::Config;
use super::publishing::{Publishing, PublishingParts};
use super::start_error::StartError;

impl Cluster {
    /// Opens ports of Services on the host, if it is to.
    pub(super) async fn publish(&mut self) -> Result<(), StartError> {
        let inside = &self.inside;
        let Config { publish, clock, entropy, .. } = &inside.config;
        if publish.is_empty() {
            return Ok(());
        }
        let parts = PublishingParts {
            network: self.network(),
            kubelets: inside.data_plane.kubelets(),
            client: inside.client(),
            clock: clock.clone(),
            entropy: entropy.clone(),
        };
        self.publishing = Some(Publishing::begin(publish, parts).await?);
        Ok(())
    }

    /// The ports of the host that were asked for by their numbers ([`Config::publish`]), each with where it
    /// leads.
    pub fn published(&self) -> &[(SocketAddr, String)] {
        self.publishing.as_ref().map(Publishing::fixed).unwrap_or_default()
    }
}
