//! What a kubelet fetches for a pod: the ConfigMaps and Secrets that it names, tokens of its service
//! account, the services of its namespace (`pkg/kubelet/configmap`, `secret`, `token`).
//!
//! A pod that names none is never asked about. What every pod has, its own token and the cluster's
//! certificate, is fetched only for containers that are known to look at files.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::bound_token::BoundToken;
use super::in_use::ClaimedVolume;
use apimachinery::object::Object;
use apis::views::pod_detail::{ContainerDetail, KeyedSource, PodDetail, TokenSource, Volume};

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
    /// The volume behind a claim of the pod's namespace.
    Claim(String),
    /// All devices that the pod claims.
    Devices,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Found {
    /// A ConfigMap or a Secret.
    Object(Arc<Keyed>),
    /// The token.
    Token(BoundToken),
    /// The services.
    Services(Vec<Arc<Object>>),
    /// The volume behind a claim.
    Volume(Arc<ClaimedVolume>),
    /// The devices may be used.
    Prepared(Arc<[PreparedDevice]>),
    /// Nothing, and why, as the kubelet says it.
    Missing(String),
}

/// A device that a driver has prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedDevice {
    /// What the pod calls the claim that it is of.
    pub claim: String,
    /// The request of that claim that it is for; with the alternative that was chosen, `gpu/older`.
    pub request: String,
    /// Its driver, its pool and its name there.
    pub id: [String; 3],
    /// What its driver tells containers that have it.
    pub variables: Vec<(String, String)>,
}

impl PreparedDevice {
    /// Whether it is for a request, or for one of the alternatives of that; no name means any.
    pub(crate) fn is_of(&self, request: &str) -> bool {
        let own = self.request.split('/').next().unwrap_or_default();
        request.is_empty() || request == own || request == self.request
    }
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
    /// The volume behind a claim.
    pub fn volume(&self) -> Option<&ClaimedVolume> {
        match self {
            Found::Volume(volume) => Some(volume),
            _ => None,
        }
    }

    /// A ConfigMap or a Secret.
    pub fn object(object: Arc<Object>) -> Found {
        Found::Object(Arc::new(Keyed { object, keys: OnceLock::new() }))
    }
}

/// What was fetched for a pod.
pub type Sources = BTreeMap<Source, Found>;

/// All that a pod of this name needs, other than devices; `looks_around` when one of its containers looks at
/// files and variables that every pod has.
pub fn wanted(detail: &PodDetail, pod: &str, looks_around: bool) -> Vec<Source> {
    let mut wanted: Vec<Source> =
        detail.spec.volumes.iter().filter_map(|volume| claim(volume, pod)).collect();
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

/// What a volume of a pod of this name claims.
pub fn claim(volume: &Volume, pod: &str) -> Option<Source> {
    let named = volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone());
    let ephemeral = || volume.ephemeral.as_ref().map(|_| format!("{pod}-{}", volume.name));
    named.or_else(ephemeral).map(Source::Claim)
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
