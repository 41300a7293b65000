//! Fetching what a pod needs, in its node's name: from the apiserver whenever it is wanted.

use std::sync::Arc;

use serde_json::json;

use super::bound_token::BoundToken;
use super::claims;
use super::devices::{self, DeviceClaim};
use super::sources::{Found, Source, Sources};
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::secret::SECRETS;
use apis::core::service::SERVICES;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::kind::Kind;
use client_go::client::Client;

/// Whom the sources of a pod are fetched for.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The sources that are wanted.
    pub wanted: Vec<Source>,
    /// The pod's namespace, name, uid and service account.
    pub namespace: String,
    /// See [`Fetch::namespace`].
    pub name: String,
    /// See [`Fetch::namespace`].
    pub uid: Arc<str>,
    /// See [`Fetch::namespace`].
    pub service_account: String,
    /// The node that it is on.
    pub node: String,
    /// The devices that it claims.
    pub devices: Vec<DeviceClaim>,
}

impl Fetch {
    /// Asks for all of it, in the node's name.
    pub async fn perform(&self, client: &Client) -> Sources {
        let mut sources = Sources::new();
        for source in &self.wanted {
            sources.insert(source.clone(), self.fetch(client, source).await);
        }
        sources
    }

    async fn fetch(&self, client: &Client, source: &Source) -> Found {
        match source {
            Source::ConfigMap(name) => self.object(client, &CONFIG_MAPS, "configmap", name).await,
            Source::Secret(name) => self.object(client, &SECRETS, "secret", name).await,
            Source::Claim(claim) => claims::fetch(client, &self.namespace, claim, &self.node).await,
            Source::Devices => {
                let pod = (self.namespace.as_str(), self.name.as_str(), &*self.uid);
                devices::prepare(client, pod, &self.devices).await
            }
            Source::Token(audience, seconds) => self.token(client, audience, *seconds).await,
            Source::Services => {
                let own = client.list(&SERVICES, &self.namespace, &ListOptions::default()).await;
                let mut services = own.map(|list| list.items.to_vec()).unwrap_or_default();
                if self.namespace != "default" {
                    services.extend(client.get(&SERVICES, "default", "kubernetes").await);
                }
                Found::Services(services)
            }
        }
    }

    async fn object(&self, client: &Client, kind: &Kind, singular: &str, name: &str) -> Found {
        match client.get(kind, &self.namespace, name).await {
            Ok(object) => Found::object(object),
            Err(status) if status.is_not_found() => Found::Missing(format!("{singular} {name:?} not found")),
            Err(status) => Found::Missing(status.message),
        }
    }

    async fn token(&self, client: &Client, audience: &str, seconds: i64) -> Found {
        let audiences: Vec<&str> =
            Some(audience).filter(|audience| !audience.is_empty()).into_iter().collect();
        let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": &*self.uid});
        let spec = json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound});
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let (namespace, account) = (&self.namespace, &self.service_account);
        match client.create_subresource(&SERVICE_ACCOUNTS, namespace, account, "token", body).await {
            Ok(answer) => Found::Token(BoundToken::of(&answer)),
            Err(Status { message, .. }) => Found::Missing(format!("failed to fetch token: {message}")),
        }
    }
}
