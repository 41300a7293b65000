//! `/openapi/v2` and `/openapi/v3` (`kube-openapi/pkg/handler`, `handler3`): the documents of what is
//! served, made when they are first asked for and again when kinds come or go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use chrono::{DateTime, Months, Utc};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::Endpoints;
use super::content::{Content, empty, put, varying};
use super::discovery::response_kind;
use super::index::pass_on;
use super::query::Query;
use crate::aggregator::{RemoteDocument, RemoteIndex};
use apimachinery::accept::{Accepted, accepted};
use apimachinery::schema::Schemas;
use apimachinery::wire::{ApiResponse, text_response};
use apis::apiextensions::published;
use apis::kind::{Kind, Subresource};
use apis::scale::scale_of;
use openapi::{self, ServedResource, ServedSubresource};

/// The forms in which a document is to be had, the one that the server likes best first: media type as
/// clients name it, as it is answered, and whether it is protobuf.
type Forms = [(&'static str, &'static str, bool); 3];
const V2_FORMS: Forms = [
    ("application/json", "application/json", false),
    ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2_PROTOBUF, true),
    (V2_PROTOBUF, V2_PROTOBUF, true),
];
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_FORMS: Forms = [
    ("application/json", "application/json", false),
    (V3_PROTOBUF, V3_PROTOBUF, true),
    ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", V3_PROTOBUF, true),
];
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/// The documents of one state of the scheme.
#[derive(Default)]
pub(crate) struct OpenApi(Mutex<Option<Arc<Documents>>>);

struct Documents {
    generation: u64,
    /// Since when the documents say what they say.
    made: DateTime<Utc>,
    /// As `v1.36.2`.
    release: String,
    served: Vec<ServedResource>,
    schemas: Arc<Schemas>,
    /// What is served here and by others, as the hash of both says.
    v2: Mutex<Option<Arc<Document>>>,
    /// By path, as `apis/apps/v1`.
    v3: BTreeMap<String, Document>,
}

/// One document in the forms that somebody asked for.
struct Document {
    hash: String,
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

/// Answers at `/openapi/...`; `path` is what stands behind it.
pub(super) async fn respond(server: &Arc<Endpoints>, path: &[&str], request: &Parts) -> ApiResponse {
    match path {
        ["v2"] => respond_v2(server, request).await,
        ["v3"] => respond_index(server, request).await,
        ["v3", path @ ..] => respond_v3(server, request, &path.join("/")).await,
        _ => text_response(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

async fn respond_v2(server: &Endpoints, request: &Parts) -> ApiResponse {
    let documents = server.openapi.current(server);
    let others = server.aggregator.openapi_v2().await;
    let document = documents.v2(&server.version.git_version, &others);
    let Some((media_type, is_protobuf)) = negotiate(&request.headers, &V2_FORMS) else {
        return varying(empty(StatusCode::NOT_ACCEPTABLE), &["Accept-Encoding", "Accept"]);
    };
    let body = document.body(is_protobuf, openapi::v2_protobuf, || documents.make_v2(&others));
    let content = Content { media_type, body, hash: Some(&document.hash), made: documents.made };
    varying(content.compressed(request), &["Accept-Encoding", "Accept"])
}

/// The documents of other servers are in the index, and are theirs to give. Upstream's aggregator lets the
/// media type be guessed, and nobody guesses JSON.
async fn respond_index(server: &Endpoints, request: &Parts) -> ApiResponse {
    let documents = server.openapi.current(server);
    let others = server.aggregator.openapi_v3().await.into_iter().flat_map(|index| index.urls);
    let own =
        documents.v3.iter().map(|(path, document)| (path.clone(), openapi::v3_url(path, &document.hash)));
    let index = Bytes::from(openapi::v3_index(others.chain(own)).to_string());
    let media_type = "text/plain; charset=utf-8";
    Content { media_type, body: index, hash: None, made: server.clock.now() }.plain(request)
}

async fn respond_v3(server: &Arc<Endpoints>, request: &Parts, path: &str) -> ApiResponse {
    let documents = server.openapi.current(server);
    if let Some(document) = documents.v3.get(path) {
        return write_v3(server, request, path, document, documents.made, || documents.make_v3(path));
    }
    let others = server.aggregator.openapi_v3().await;
    match others.into_iter().find(|index| index.urls.contains_key(path)) {
        Some(RemoteIndex { legacy: Some(v2), .. }) => {
            let document = Document::new(v2.hash.clone());
            let convert = || openapi::v2_to_v3(&serde_json::from_slice(&v2.body).unwrap_or_default());
            write_v3(server, request, path, &document, documents.made, convert)
        }
        Some(RemoteIndex { remote, .. }) => pass_on(server, request, &remote).await,
        None => empty(StatusCode::NOT_FOUND),
    }
}

/// With the right hash the answer may be kept for ever; with a wrong one the client is sent to the right one.
fn write_v3(
    server: &Endpoints,
    request: &Parts,
    path: &str,
    document: &Document,
    made: DateTime<Utc>,
    make: impl FnOnce() -> Value,
) -> ApiResponse {
    let query = Query::parse(request.uri.query().unwrap_or_default());
    let Some((media_type, is_protobuf)) = negotiate(&request.headers, &V3_FORMS) else {
        // Of what is no media type at all nothing is said.
        let is_nothing = clauses(&request.headers).is_empty();
        let code = if is_nothing { StatusCode::OK } else { StatusCode::NOT_ACCEPTABLE };
        return varying(empty(code), &["Accept"]);
    };
    let hash = &document.hash;
    let given = query.text("hash").filter(|given| !given.is_empty());
    if given.is_some_and(|given| given != hash) {
        let mut response = varying(empty(StatusCode::MOVED_PERMANENTLY), &["Accept"]);
        put(&mut response, LOCATION, &openapi::v3_url(path, hash));
        put(&mut response, CONTENT_TYPE, media_type);
        put(&mut response, ETAG, &format!("\"{hash}\""));
        return response;
    }
    let body = document.body(is_protobuf, openapi::v3_protobuf, make);
    let content = Content { media_type, body, hash: Some(hash), made };
    let mut response = varying(content.plain(request), &["Accept"]);
    if given.is_some() {
        let now = server.clock.now();
        let in_a_year = now.checked_add_months(Months::new(12)).unwrap_or(now);
        put(&mut response, CACHE_CONTROL, "public, immutable");
        put(&mut response, EXPIRES, &in_a_year.format("%a, %d %b %Y %H:%M:%S UTC").to_string());
    }
    response
}

/// goautoneg's clauses; a client that says nothing reads anything.
fn clauses(headers: &HeaderMap) -> Vec<Accepted> {
    let says_nothing = headers.get(ACCEPT).is_none_or(HeaderValue::is_empty);
    if says_nothing { vec![Accepted::of("*/*")] } else { accepted(headers) }
}

/// The media type of the first form that the best clause takes, and whether it is protobuf.
fn negotiate(headers: &HeaderMap, forms: &Forms) -> Option<(&'static str, bool)> {
    let takes = |clause: &Accepted, form: &str| {
        let (clause, form) = (clause.media_type.split_once('/'), form.split_once('/'));
        let (Some((main, sub)), Some((of_form, name))) = (clause, form) else { return false };
        (main == "*" || main == of_form) && (sub == "*" || sub == name)
    };
    clauses(headers).iter().find_map(|clause| {
        let found = forms.iter().find(|(name, ..)| takes(clause, name));
        found.map(|(_, media_type, is_protobuf)| (*media_type, *is_protobuf))
    })
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
            Document::new(openapi::hash(text.as_bytes()))
        };
        texts.extend(openapi::v3_roots(&served).into_iter().map(|path| (path.clone(), path)));
        let v3 = texts.into_iter().map(|(path, text)| (path, hashed(text))).collect();
        let (made, schemas) = (server.clock.now(), server.schemas.clone());
        Documents { generation, made, release, served, schemas, v2: Mutex::default(), v3 }
    }

    /// The document of everything, anew when others say something new.
    fn v2(&self, git_version: &str, others: &[RemoteDocument]) -> Arc<Document> {
        let own = self.v3.values().map(|document| document.hash.as_str());
        let of_others = others.iter().map(|document| document.hash.as_str());
        let parts: Vec<&str> = own.chain(of_others).chain([git_version]).collect();
        let hash = openapi::hash(parts.concat().as_bytes());
        let mut known = self.v2.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match &*known {
            Some(document) if document.hash == hash => document.clone(),
            _ => known.insert(Arc::new(Document::new(hash))).clone(),
        }
    }

    fn make_v2(&self, others: &[RemoteDocument]) -> Value {
        let mut document = openapi::v2(&self.served, &self.schemas, &self.release);
        for RemoteDocument { remote, body, .. } in others {
            let other = serde_json::from_slice(body).unwrap_or_default();
            openapi::v2_merge(&mut document, other, &remote.group, &remote.version);
        }
        document
    }

    fn make_v3(&self, path: &str) -> Value {
        let (served, schemas, release) = (&self.served, &self.schemas, &self.release);
        match path.split('/').collect::<Vec<_>>()[..] {
            ["api", version] => openapi::v3_group("", version, served, schemas, release),
            ["apis", group, version] => openapi::v3_group(group, version, served, schemas, release),
            _ => openapi::v3_root(path, served, schemas, release).unwrap_or_default(),
        }
    }
}

impl Document {
    fn new(hash: String) -> Document {
        Document { hash, json: OnceLock::new(), protobuf: OnceLock::new() }
    }

    fn body(&self, is_protobuf: bool, encode: fn(&Value) -> Vec<u8>, make: impl FnOnce() -> Value) -> Bytes {
        match is_protobuf {
            true => self.protobuf.get_or_init(|| encode(&make()).into()).clone(),
            false => self.json.get_or_init(|| make().to_string().into()).clone(),
        }
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
