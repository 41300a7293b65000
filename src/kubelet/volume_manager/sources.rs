//! What a kubelet fetches for a pod: the ConfigMaps and Secrets that it names, tokens of its service
//! account, the services of its namespace (`pkg/kubelet/configmap`, `secret`, `token`).
//!
//! A pod that names none is never asked about. What every pod has, its own token and the cluster's
//! certificate, is fetched only for containers that are known to look at files.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::secret::SECRETS;
use apis::core::service::SERVICES;
use apis::core::service_account::SERVICE_ACCOUNTS;
use apis::kind::Kind;
use apis::views::pod_detail::{ContainerDetail, KeyedSource, PodDetail, TokenSource, Volume};
use client_go::client::Client;

/// The volume that every pod is given, and that nobody has to wait for here.
const API_ACCESS: &str = "kube-api-access-";
/// A token's life in seconds, when nobody says.
const TOKEN_SECONDS: i64 = 3600;

/// One thing to be fetched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A ConfigMap of the pod's namespace.
    ConfigMap(String),
    /// A Secret of the pod's namespace.
    Secret(String),
    /// A token for an audience, with its life in seconds.
    Token(String, i64),
    /// The services of the pod's namespace and the apiserver's own.
    Services,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Found {
    /// A ConfigMap or a Secret.
    Object(Arc<Keyed>),
    /// The token.
    Token(String),
    /// The services.
    Services(Vec<Arc<Object>>),
    /// Nothing, and why, as the kubelet says it.
    Missing(String),
}

/// The values of a ConfigMap or a Secret by their keys, shared by all files that are made of them.
pub type Keys = BTreeMap<String, Arc<Vec<u8>>>;

/// A ConfigMap or a Secret, of which the values are decoded once.
#[derive(Debug)]
pub struct Keyed {
    object: Arc<Object>,
    keys: OnceLock<Keys>,
}

impl Keyed {
    /// Its keys with their values.
    pub fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| keys(&self.object))
    }
}

impl Found {
    /// A ConfigMap or a Secret.
    pub fn object(object: Arc<Object>) -> Found {
        Found::Object(Arc::new(Keyed { object, keys: OnceLock::new() }))
    }
}

/// What was fetched for a pod.
pub type Sources = BTreeMap<Source, Found>;

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
}

/// All that a pod needs; `looks_around` when one of its containers looks at files and variables that
/// every pod has.
pub fn wanted(detail: &PodDetail, looks_around: bool) -> Vec<Source> {
    let mut wanted = Vec::new();
    for volume in &detail.spec.volumes {
        if looks_around || !volume.name.starts_with(API_ACCESS) {
            of_volume(volume, &mut wanted);
        }
    }
    detail.containers().for_each(|container| of_variables(container, &mut wanted));
    if looks_around {
        wanted.push(Source::Services);
    }
    wanted.sort();
    wanted.dedup();
    wanted
}

/// The source that a token volume is fetched as.
pub fn token(source: &TokenSource) -> Source {
    Source::Token(source.audience.clone(), source.expiration_seconds.unwrap_or(TOKEN_SECONDS))
}

/// Whether volumes of a pod do without a source that is missing.
pub fn is_optional(detail: &PodDetail, source: &Source) -> bool {
    let projections = |volume: &Volume| -> Vec<(Source, Option<bool>)> {
        let map = |it: &KeyedSource| (Source::ConfigMap(it.name.clone()), it.optional);
        let secret = |it: &KeyedSource| (Source::Secret(it.name.clone()), it.optional);
        let projected = volume.projected.iter().flat_map(|projected| &projected.sources);
        let projected: Vec<_> = projected
            .flat_map(|it| it.config_map.iter().map(map).chain(it.secret.iter().map(secret)))
            .collect();
        volume.config_map.iter().map(map).chain(volume.secret.iter().map(secret)).chain(projected).collect()
    };
    let mut all = detail.spec.volumes.iter().flat_map(projections).filter(|(own, _)| own == source);
    all.all(|(_, optional)| optional == Some(true))
}

fn of_volume(volume: &Volume, wanted: &mut Vec<Source>) {
    let config_map = volume.config_map.iter().map(|source| Source::ConfigMap(source.name.clone()));
    let secret = volume.secret.iter().map(|source| Source::Secret(source.name.clone()));
    wanted.extend(config_map.chain(secret));
    for source in volume.projected.iter().flat_map(|projected| &projected.sources) {
        wanted.extend(source.config_map.iter().map(|source| Source::ConfigMap(source.name.clone())));
        wanted.extend(source.secret.iter().map(|source| Source::Secret(source.name.clone())));
        wanted.extend(source.service_account_token.iter().map(token));
    }
}

fn of_variables(container: &ContainerDetail, wanted: &mut Vec<Source>) {
    for source in container.env.iter().filter_map(|variable| variable.value_from.as_deref()) {
        let name = |kind: &str| source[kind]["name"].as_str().map(str::to_owned);
        wanted.extend(name("configMapKeyRef").map(Source::ConfigMap));
        wanted.extend(name("secretKeyRef").map(Source::Secret));
    }
    for source in &container.env_from {
        wanted.extend(source.config_map_ref.iter().map(|source| Source::ConfigMap(source.name.clone())));
        wanted.extend(source.secret_ref.iter().map(|source| Source::Secret(source.name.clone())));
    }
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
        let answer = client.create_subresource(&SERVICE_ACCOUNTS, namespace, account, "token", body).await;
        match answer.map(|answer| answer["status"]["token"].as_str().map(str::to_owned)) {
            Ok(token) => Found::Token(token.unwrap_or_default()),
            Err(Status { message, .. }) => Found::Missing(format!("failed to fetch token: {message}")),
        }
    }
}

fn keys(object: &Object) -> Keys {
    use base64::Engine;
    let tree = object.to_value();
    let decode = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
    };
    let members = |name: &str| tree[name].as_object().cloned().unwrap_or_default();
    let mut keys = Keys::new();
    for (key, value) in members("data") {
        // Only the values of a Secret are encoded.
        let value = if tree["type"].is_string() {
            decode(&value)
        } else {
            value.as_str().unwrap_or_default().as_bytes().to_vec()
        };
        keys.insert(key, Arc::new(value));
    }
    keys.extend(members("binaryData").iter().map(|(key, value)| (key.clone(), Arc::new(decode(value)))));
    keys
}
