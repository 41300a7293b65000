//! What of a cluster is open on the host beside its apiserver.

use std::net::SocketAddr;

use super::Cluster;
use super::config::Config;
use super::inside::{Inside, MASTERS};
use super::publishing::{Publishing, PublishingParts};
use super::service_families::advertised;
use super::start_error::StartError;
use super::{api_endpoints, authentication_trust, cluster_info, etcd_api, legacy_token_tracking};
use apimachinery::user::UserInfo;
use apiserver::post_start_hooks::StartStep;
use apiserver::server::Server;
use apiserver::storage::ByteStore;
use client_go::client::Client;

/// In whose name the apiserver asks itself.
const APISERVER: &str = "system:apiserver";

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

    /// Publishes whom aggregated servers are to believe. They may be pods, which need no port of the host.
    pub(super) async fn tell_aggregated_servers(&self) -> Result<(), StartError> {
        let Inside { config, keys, .. } = &*self.inside;
        let authentication = &config.apiserver.authentication;
        let trust = authentication_trust::data(authentication, keys.authority.certificate_pem())?;
        authentication_trust::publish(&self.as_apiserver(), trust).await?;
        self.inside.hooks.reach(StartStep::TrustPublished);
        Ok(())
    }

    fn as_apiserver(&self) -> Client {
        self.client().acting_as(UserInfo::authenticated(APISERVER, &[MASTERS]))
    }

    /// Publishes what clients have to know of the apiserver, as objects.
    pub(super) async fn tell_clients(&self) -> Result<(), StartError> {
        let Inside { clock, config, storage, .. } = &*self.inside;
        let (authentication, client) = (&config.apiserver.authentication, self.as_apiserver());
        self.tell_aggregated_servers().await?;
        legacy_token_tracking::publish(&client, clock.now()).await?;
        if let Some(access) = self.access().filter(|_| authentication.bootstrap_tokens) {
            cluster_info::publish(&client, &access).await?;
        }
        if let Some(address) = self.address().and_then(|bound| advertised(config, bound)) {
            let servers = storage.renew_master_lease(address).await?;
            api_endpoints::publish(&client, &servers).await?;
        }
        Ok(())
    }

    /// Serves etcd's API, if it is to; and where no port is open but pods run, tells those that need none.
    pub(super) async fn open_beside(&mut self) -> Result<(), StartError> {
        let Inside { clock, config, kv, scheme, .. } = &*self.inside;
        if config.listen.is_none() && config.components.kubelets {
            self.tell_aggregated_servers().await?;
        }
        if let ByteStore::Own(kv) = kv {
            self.etcd = etcd_api::serve_cluster(clock, &config.etcd, (kv, scheme)).await?;
        }
        Ok(())
    }

    /// Where etcd's API is served ([`Config::etcd`]).
    pub fn etcd_addresses(&self) -> Vec<SocketAddr> {
        self.etcd.iter().map(Server::address).collect()
    }
}
