//! The documents of OpenAPI of all that is served: made when they are first asked for, and again when kinds
//! come or go (`kube-openapi/pkg/cached`).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sync::Mutex;

use super::discovery::response_kind;
use crate::aggregator::RemoteDocument;
use apimachinery::schema::Schemas;
use apis::apiextensions::custom_resource::CustomResource;
use apis::apiextensions::published;
use apis::kind::{Kind, Subresource};
use apis::scale::scale_of;
use apis::scheme::Scheme;
use clock::Clock;
use openapi::{self, ServedResource, ServedSubresource};

/// The documents, as they were made last.
pub(crate) struct OpenApi {
    scheme: Arc<Scheme>,
    schemas: Arc<Schemas>,
    clock: Clock,
    /// As `/version` says it.
    git_version: String,
    current: Mutex<Option<Arc<Documents>>>,
}

/// The documents of one state of the scheme.
pub(super) struct Documents {
    generation: u64,
    /// Since when the documents say what they say.
    pub(super) made: DateTime<Utc>,
    git_version: String,
    served: Vec<ServedResource>,
    schemas: Arc<Schemas>,
    /// What is served here and by others, as the hash of both says.
    v2: Mutex<Option<Arc<EncodedOpenApiDocument>>>,
    /// By path, as `apis/apps/v1`.
    pub(super) v3: BTreeMap<String, EncodedOpenApiDocument>,
}

/// One document in the forms that somebody asked for.
pub(super) struct EncodedOpenApiDocument {
    pub(super) hash: String,
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

impl OpenApi {
    /// Of the kinds of this scheme; none is made yet.
    pub(crate) fn new(
        scheme: &Arc<Scheme>,
        schemas: &Arc<Schemas>,
        clock: &Clock,
        git_version: &str,
    ) -> OpenApi {
        OpenApi {
            scheme: scheme.clone(),
            schemas: schemas.clone(),
            clock: clock.clone(),
            git_version: git_version.into(),
            current: Mutex::default(),
        }
    }

    /// The documents of the kinds that are served now.
    pub(super) fn current(&self) -> Arc<Documents> {
        let mut current = self.current.lock();
        let generation = self.scheme.generation();
        match &*current {
            Some(documents) if documents.generation == generation => documents.clone(),
            _ => current.insert(Arc::new(Documents::new(generation, self))).clone(),
        }
    }
}

impl Documents {
    fn new(generation: u64, of: &OpenApi) -> Documents {
        let served: Vec<ServedResource> = of.scheme.all().iter().map(|kind| served(kind)).collect();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for resource in &served {
            *texts.entry(openapi::v3_path(&resource.group, &resource.version)).or_default() +=
                &format!("{resource:?}");
        }
        // What is in a document follows from the resources and from this version of the program.
        let git_version = of.git_version.clone();
        let hashed = |text: String| {
            EncodedOpenApiDocument::new(openapi::hash(format!("{git_version}{text}").as_bytes()))
        };
        texts.extend(openapi::v3_roots(&served).into_iter().map(|path| (path.clone(), path)));
        let v3 = texts.into_iter().map(|(path, text)| (path, hashed(text))).collect();
        let made = of.clock.now();
        let schemas = of.schemas.clone();
        Documents { generation, made, git_version, served, schemas, v2: Mutex::default(), v3 }
    }

    /// The document of everything, anew when others say something new.
    pub(super) fn v2(&self, others: &[RemoteDocument]) -> Arc<EncodedOpenApiDocument> {
        let own = self.v3.values().map(|document| document.hash.as_str());
        let of_others = others.iter().map(|document| document.hash.as_str());
        let parts: Vec<&str> = own.chain(of_others).chain([self.git_version.as_str()]).collect();
        let hash = openapi::hash(parts.concat().as_bytes());
        let mut known = self.v2.lock();
        match &*known {
            Some(document) if document.hash == hash => document.clone(),
            _ => known.insert(Arc::new(EncodedOpenApiDocument::new(hash))).clone(),
        }
    }

    /// All that is served here and by others.
    pub(super) fn make_v2(&self, others: &[RemoteDocument]) -> Value {
        let mut document = openapi::v2(&self.served, &self.schemas, self.release());
        for RemoteDocument { remote, body, .. } in others {
            let other = serde_json::from_slice(body).unwrap_or_default();
            openapi::v2_merge(&mut document, other, &remote.group, &remote.version);
        }
        document
    }

    /// What is served below one path.
    pub(super) fn make_v3(&self, path: &str) -> Value {
        let (served, schemas, release) = (&self.served, &self.schemas, self.release());
        match path.split('/').collect::<Vec<_>>()[..] {
            ["api", version] => openapi::v3_group("", version, served, schemas, release),
            ["apis", group, version] => openapi::v3_group(group, version, served, schemas, release),
            _ => openapi::v3_root(path, served, schemas, release).unwrap_or_default(),
        }
    }

    /// As `v1.36.2`: without build metadata.
    fn release(&self) -> &str {
        self.git_version.split('+').next().unwrap_or_default()
    }
}

impl EncodedOpenApiDocument {
    /// The hash is known before what it is of is made.
    pub(super) fn new(hash: String) -> EncodedOpenApiDocument {
        EncodedOpenApiDocument { hash, json: OnceLock::new(), protobuf: OnceLock::new() }
    }

    /// In the form that is asked for, made once.
    pub(super) fn body(
        &self,
        is_protobuf: bool,
        encode: fn(&Value) -> Vec<u8>,
        make: impl FnOnce() -> Value,
    ) -> Bytes {
        if is_protobuf {
            self.protobuf.get_or_init(|| encode(&make()).into()).clone()
        } else {
            self.json.get_or_init(|| make().to_string().into()).clone()
        }
    }
}

fn served(kind: &Kind) -> ServedResource {
    let version = &kind.group_version;
    let custom = CustomResource::of(kind);
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
        schema: custom.map(|custom| with_selectable(kind, published::v2(&custom.openapi()))),
        schema_v3: custom.map(|custom| with_selectable(kind, published::v3(&custom.openapi()))),
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
