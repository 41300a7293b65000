//! `/openapi/v2` and `/openapi/v3` (`kube-openapi/pkg/handler`, `handler3`): the documents of what is
//! served, made when they are first asked for and again when kinds come or go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::Endpoints;
use super::discovery::response_kind;
use super::query::Query;
use super::response::compress;
use crate::apimachinery::accept::accepted;
use crate::apimachinery::openapi::{self, ServedResource, ServedSubresource};
use crate::apimachinery::schema::Schemas;
use crate::apimachinery::wire::{ApiResponse, text_response};
use crate::apis::apiextensions::published;
use crate::apis::kind::{Kind, Subresource};
use crate::apis::scale::scale_of;
use crate::apiserver::aggregator::Remote;

const JSON: &str = "application/json";
/// gnostic's protobuf, as clients ask for it of old and of late, and as it is answered.
const PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// The documents of one state of the scheme.
#[derive(Default)]
pub(crate) struct OpenApi(Mutex<Option<Arc<Documents>>>);

struct Documents {
    generation: u64,
    /// As `v1.36.2`.
    release: String,
    served: Vec<ServedResource>,
    schemas: Arc<Schemas>,
    v2: OnceLock<(Bytes, String)>,
    v2_protobuf: OnceLock<Bytes>,
    /// By path, as `apis/apps/v1`: the hash, and the document when somebody asked for it.
    v3: BTreeMap<String, (String, OnceLock<Bytes>)>,
}

/// Answers at `/openapi/...`; `segments` are what stands behind it. The documents of remote groups are in the
/// index, and are those servers' to give.
pub(super) fn respond(
    server: &Endpoints,
    segments: &[&str],
    remotes: &[Arc<Remote>],
    query: &Query,
    headers: &HeaderMap,
) -> ApiResponse {
    let documents = server.openapi.current(server);
    match segments {
        ["v2"] => respond_v2(&documents, headers),
        ["v3"] => respond_index(&documents, headers, remotes),
        ["v3", path @ ..] => respond_v3(server, &documents, &path.join("/"), query, headers),
        _ => text_response(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn respond_v2(documents: &Documents, headers: &HeaderMap) -> ApiResponse {
    let wants_protobuf =
        accepted(headers).first().is_some_and(|best| PROTOBUF.contains(&best.media_type.as_str()));
    let (json, hash) = documents.v2();
    match wants_protobuf {
        true => write(headers, PROTOBUF[1], documents.v2_protobuf(), hash),
        false => write(headers, JSON, json.clone(), hash),
    }
}

fn respond_index(documents: &Documents, headers: &HeaderMap, remotes: &[Arc<Remote>]) -> ApiResponse {
    let of_remote = |remote: &Arc<Remote>| {
        let resources = remote.resources()?.to_string();
        Some((openapi::v3_path(&remote.group, &remote.version), openapi::hash(resources.as_bytes())))
    };
    let remotes: Vec<(String, String)> = remotes.iter().filter_map(of_remote).collect();
    let own = documents.v3.iter().map(|(path, (hash, _))| (path.as_str(), hash.as_str()));
    let all = own.chain(remotes.iter().map(|(path, hash)| (path.as_str(), hash.as_str())));
    let index = openapi::v3_index(all).to_string();
    let hash = openapi::hash(index.as_bytes());
    write(headers, JSON, index.into(), &hash)
}

/// With the right hash the answer may be kept for ever; with a wrong one the client is sent to the right one.
fn respond_v3(
    server: &Endpoints,
    documents: &Documents,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> ApiResponse {
    let Some((hash, _)) = documents.v3.get(path) else {
        return text_response(StatusCode::NOT_FOUND, "404 page not found\n");
    };
    let given = query.text("hash");
    if given.is_some_and(|given| given != hash) {
        let mut response = text_response(StatusCode::MOVED_PERMANENTLY, "");
        let location = format!("/openapi/v3/{path}?hash={hash}");
        response.headers_mut().insert(LOCATION, HeaderValue::from_str(&location).expect("plain text"));
        return response;
    }
    let mut response = write(headers, JSON, documents.v3(path), hash);
    if given.is_some() {
        let in_a_year = server.clock.now() + chrono::TimeDelta::days(365);
        let expires = in_a_year.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let answer = response.headers_mut();
        answer.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        answer.insert(EXPIRES, HeaderValue::from_str(&expires).expect("plain text"));
    }
    response
}

fn write(headers: &HeaderMap, media_type: &'static str, body: Bytes, hash: &str) -> ApiResponse {
    let etag = format!("\"{hash}\"");
    let mut response = ApiResponse::default();
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let answer = response.headers_mut();
    answer.insert(ETAG, HeaderValue::from_str(&etag).expect("a hash is plain text"));
    answer.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer.append(VARY, HeaderValue::from_static("Accept"));
    if known == Some(&etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let body = compress(headers, answer, body);
    *response.body_mut() = body.into();
    response
}

impl OpenApi {
    fn current(&self, server: &Endpoints) -> Arc<Documents> {
        let mut current = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let generation = server.scheme.generation();
        match &*current {
            Some(documents) if documents.generation == generation => documents.clone(),
            _ => current.insert(Arc::new(Documents::new(generation, server))).clone(),
        }
    }
}

impl Documents {
    fn new(generation: u64, server: &Endpoints) -> Documents {
        let served: Vec<ServedResource> = server.scheme.all().iter().map(|kind| served(kind)).collect();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for resource in &served {
            *texts.entry(openapi::v3_path(&resource.group, &resource.version)).or_default() +=
                &format!("{resource:?}");
        }
        // What is in a document follows from the resources and from this version of the program.
        let release = version_of(&server.version.git_version).to_owned();
        let hashed = |text: String| {
            let text = format!("{}{text}", server.version.git_version);
            (openapi::hash(text.as_bytes()), OnceLock::new())
        };
        texts.extend(openapi::v3_roots(&served).into_iter().map(|path| (path.clone(), path)));
        let v3 = texts.into_iter().map(|(path, text)| (path, hashed(text))).collect();
        let (v2, v2_protobuf) = Default::default();
        Documents { generation, release, served, schemas: server.schemas.clone(), v2, v2_protobuf, v3 }
    }

    fn v2(&self) -> &(Bytes, String) {
        self.v2.get_or_init(|| {
            let bytes = Bytes::from(openapi::v2(&self.served, &self.schemas, &self.release).to_string());
            let hash = openapi::hash(&bytes);
            (bytes, hash)
        })
    }

    fn v2_protobuf(&self) -> Bytes {
        let make = || {
            let document: Value = serde_json::from_slice(&self.v2().0).expect("we wrote JSON");
            openapi::v2_protobuf(&document).into()
        };
        self.v2_protobuf.get_or_init(make).clone()
    }

    fn v3(&self, path: &str) -> Bytes {
        let Some((_, document)) = self.v3.get(path) else { return Bytes::new() };
        let group_version = match path.split('/').collect::<Vec<_>>()[..] {
            ["api", version] => Some(("", version)),
            ["apis", group, version] => Some((group, version)),
            _ => None,
        };
        let make = || {
            let (served, schemas, release) = (&self.served, &self.schemas, &self.release);
            let document = match group_version {
                Some((group, version)) => openapi::v3_group(group, version, served, schemas, release),
                None => openapi::v3_root(path, served, schemas, release).unwrap_or_default(),
            };
            document.to_string().into()
        };
        document.get_or_init(make).clone()
    }
}

/// The release without build metadata.
fn version_of(git_version: &str) -> &str {
    git_version.split('+').next().unwrap_or_default()
}

fn served(kind: &Kind) -> ServedResource {
    let version = &kind.group_version;
    let can_list = kind.verbs.iter().any(|verb| &**verb == "list");
    ServedResource {
        group: version.group.to_string(),
        version: version.version.to_string(),
        kind: kind.kind.to_string(),
        list_kind: can_list.then(|| kind.list_kind.to_string()),
        plural: kind.plural.to_string(),
        singular: kind.singular.to_string(),
        namespaced: kind.namespaced,
        verbs: kind.verbs.iter().map(ToString::to_string).collect(),
        subresources: kind.subresources.iter().map(|subresource| served_below(kind, *subresource)).collect(),
        definition: kind.definition.to_string(),
        list_definition: can_list.then(|| format!("{}List", kind.definition)),
        schema: kind.custom.as_ref().map(|custom| with_selectable(kind, published::v2(&custom.openapi()))),
        schema_v3: kind.custom.as_ref().map(|custom| with_selectable(kind, published::v3(&custom.openapi()))),
    }
}

fn with_selectable(kind: &Kind, mut schema: Value) -> Value {
    let fields = kind.selectable.iter().map(|field| json!({"fieldPath": &*field.name}));
    if !kind.selectable.is_empty() {
        schema["x-kubernetes-selectable-fields"] = fields.collect();
    }
    schema
}

fn served_below(kind: &Kind, subresource: Subresource) -> ServedSubresource {
    let (group, version, name) = response_kind(kind, subresource);
    let definition = match subresource {
        Subresource::Scale => scale_of(kind).1,
        Subresource::Binding => "io.k8s.api.core.v1.Binding".into(),
        Subresource::Eviction => "io.k8s.api.policy.v1.Eviction".into(),
        Subresource::Token => "io.k8s.api.authentication.v1.TokenRequest".into(),
        Subresource::Log | Subresource::Exec | Subresource::Attach => String::new(),
        Subresource::PortForward | Subresource::Proxy => String::new(),
        Subresource::Rollback => format!("{}Rollback", kind.definition),
        _ => kind.definition.to_string(),
    };
    let verbs = subresource.verbs().iter().map(ToString::to_string).collect();
    ServedSubresource { name: subresource.name().into(), group, version, kind: name, definition, verbs }
}
