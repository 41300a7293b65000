//! `Kind`: the declaration of one kind in one version, read by every part of the server.

use std::any::Any;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::gated::GatedFields;
use super::quota::measure::{ByNumber, Measure};
use super::selectable::{fill_in_defaults, paths};
use super::strategy::{DefaultStrategy, Strategy};
use super::table::{CellsFn, Column, name_and_created_at};
use apimachinery::gvk::{GroupResource, GroupVersion, GroupVersionKind};
use apimachinery::object::{Malformed, Object};
use apimachinery::time::Time;
use apimachinery::yaml;

pub use super::selectable::{Selectable, read_object};
pub use super::subresource::Subresource;

/// A kind that is declared in the source; made when it is first asked for.
pub type Builtin = LazyLock<Arc<Kind>>;

/// The verbs of an ordinary resource.
pub const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// One kind in one version.
pub struct Kind {
    /// As `apps/v1`.
    pub group_version: GroupVersion,
    /// As `Deployment`.
    pub kind: Arc<str>,
    /// As `DeploymentList`.
    pub list_kind: Arc<str>,
    /// As `deployments`: the path segment, and the name in RBAC rules.
    pub plural: Arc<str>,
    /// As `deployment`.
    pub singular: Arc<str>,
    /// As `deploy`.
    pub short_names: Vec<Arc<str>>,
    /// As `all`.
    pub categories: Vec<Arc<str>>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// In discovery's order; [`ALL_VERBS`] for most.
    pub verbs: Vec<Arc<str>>,
    /// What hangs below an object's path.
    pub subresources: Vec<Subresource>,
    /// The definition's name in OpenAPI: `io.k8s.api.apps.v1.Deployment`.
    pub definition: Arc<str>,
    /// The columns of `kubectl get`.
    pub columns: Vec<Column>,
    /// The cells of a row.
    pub cells: CellsFn,
    /// The fields that field selectors know, beside `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<Selectable>,
    /// Fills in what the server defaults (upstream's `SetObjectDefaults_*`).
    pub defaults: fn(&mut Value),
    /// Fills in since when something is so, of what says it and was sent without: the defaults that a clock
    /// knows.
    pub stamps: fn(&mut Value, Time),
    /// What the server does to it on a write, and what it refuses.
    pub strategy: Arc<dyn Strategy>,
    /// Whether `metadata.generation` counts the changes of everything but metadata and status.
    pub counts_generation: bool,
    /// How long an object lives (Events).
    pub time_to_live: Option<Duration>,
    /// Whether reads of it are answered from a watch cache and not from etcd (upstream's `StorageWithCacher`
    /// and `UndecoratedStorage`).
    pub has_watch_cache: bool,
    /// Those of its objects that a server makes of itself.
    pub bootstrap: Option<&'static StartingObjects>,
    /// Its objects, when they are not kept but told each time.
    pub derived: Option<fn() -> Vec<Value>>,
    /// What clients are warned of, when nobody should use it any more.
    pub deprecated: Option<&'static str>,
    /// How it is kept, when that is not its own form.
    pub stored: Option<StoredAs>,
    /// What a write of the object leaves as it was, when that is not its status alone.
    pub resets: Option<&'static [&'static str]>,
    /// What a write of its status leaves as it was.
    pub status_resets: &'static [&'static str],
    /// Whether labels and the like stay as they were when the status is written
    /// (`metav1.ResetObjectMetaForStatus`).
    pub status_leaves_metadata: bool,
    /// Its fields behind feature gates.
    pub gated: Vec<GatedFields>,
    /// Whether a delete answers with the object (upstream's `ReturnDeletedObject`) and not with a Status.
    pub returns_deleted: bool,
    /// What upstream keeps it under in etcd, when that is not its plural: part of the words of errors.
    pub etcd_key: Option<&'static str>,
    /// The version that upstream keeps it as, when that is an older one with the same fields.
    pub kept_version: Option<&'static str>,
    /// Whether its Scale is of its own version and not `autoscaling/v1`.
    pub has_own_scale: bool,
    /// What a quota measures of it, beside how many there are.
    pub measure: &'static dyn Measure,
    /// Whether it was declared by a CustomResourceDefinition: lists then carry `apiVersion` and `kind` per
    /// item.
    pub is_custom: bool,
    /// What is put together of the others when it is first asked for.
    pub texts: OnceLock<Texts>,
    /// What only a custom kind has: its schema, its conversion.
    pub custom: Option<Arc<dyn CustomKind>>,
}

/// What a declaration knows of what only a custom kind has; who needs more asks
/// [`CustomResource::of`](super::apiextensions::custom_resource::CustomResource::of).
pub trait CustomKind: Any + Send + Sync {
    /// The kind of the storage version, where that is another one.
    fn storage(&self) -> Option<&Arc<Kind>>;

    /// A stored object with the defaults that came after it was stored.
    ///
    /// # Errors
    /// Bytes that are no object.
    fn defaulted(&self, stored: Bytes) -> Result<Bytes, Malformed>;
}

/// Texts that every request needs.
pub struct Texts {
    storage_prefix: Arc<str>,
    resource: Arc<str>,
}

/// Objects that a server makes of itself (upstream's post-start hooks), all of them when one of their kinds
/// is first asked for. Who deletes one gets it back with the next start.
pub struct StartingObjects {
    /// As `rbac`: no two have the same.
    pub name: &'static str,
    /// Who owns their fields.
    pub manager: &'static str,
    /// Their trees, as somebody would send them.
    pub objects: fn() -> Vec<StartingObject>,
}

/// One of them.
pub struct StartingObject {
    /// Its kind.
    pub kind: &'static Builtin,
    /// As it would be sent, without type.
    pub object: Value,
}

impl StartingObjects {
    /// The objects of one kind in a text of ours: YAML, a list of trees.
    pub fn read(kind: &'static Builtin, text: &str) -> Vec<StartingObject> {
        let trees: Vec<Value> = yaml::from_str(text).expect("our own manifests are lists of trees");
        trees.into_iter().map(|object| StartingObject { kind, object }).collect()
    }
}

impl StartingObject {
    /// Empty for cluster-scoped kinds.
    pub fn namespace(&self) -> &str {
        self.object["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    /// As `system:discovery`.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// The storage version of a kind, and the way there and back (upstream's conversion to the hub and from it).
pub struct StoredAs {
    /// The version that is stored.
    pub kind: &'static Builtin,
    /// From this version's form to the stored one.
    pub encode: fn(Value) -> Value,
    /// From the stored form to this version's.
    pub decode: fn(Value) -> Value,
}

impl Kind {
    /// An ordinary namespaced kind with all verbs: name and creation time as columns, nothing defaulted,
    /// nothing refused. `definition` is the part of the OpenAPI name before the kind, as
    /// `io.k8s.api.apps.v1`.
    pub fn builtin(group: &str, version: &str, kind: &str, plural: &str, definition: &str) -> Kind {
        let (columns, cells) = name_and_created_at();
        Kind {
            group_version: GroupVersion::new(group, version),
            kind: kind.into(),
            list_kind: format!("{kind}List").into(),
            plural: plural.into(),
            singular: kind.to_ascii_lowercase().into(),
            short_names: vec![],
            categories: vec![],
            namespaced: true,
            verbs: ALL_VERBS.iter().copied().map(Arc::from).collect(),
            subresources: vec![],
            definition: format!("{definition}.{kind}").into(),
            columns,
            cells,
            selectable: vec![],
            defaults: |_| (),
            stamps: |_, _| (),
            strategy: Arc::new(DefaultStrategy),
            counts_generation: false,
            time_to_live: None,
            has_watch_cache: true,
            bootstrap: None,
            derived: None,
            deprecated: None,
            stored: None,
            resets: None,
            status_resets: &["spec"],
            status_leaves_metadata: false,
            gated: vec![],
            returns_deleted: false,
            etcd_key: None,
            kept_version: None,
            has_own_scale: false,
            measure: &ByNumber,
            is_custom: false,
            texts: OnceLock::new(),
            custom: None,
        }
    }

    /// As `deployments.apps`.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group_version.group.clone(), resource: self.plural.clone() }
    }

    /// As `apps/v1, Kind=Deployment`.
    pub fn gvk(&self) -> GroupVersionKind {
        self.group_version.kind(&self.kind)
    }

    /// As `apps/v1`.
    pub fn api_version(&self) -> String {
        self.group_version.to_string()
    }

    /// As `deployments.apps`: the text of [`Kind::group_resource`].
    pub fn resource(&self) -> &Arc<str> {
        &self.texts().resource
    }

    /// The kind whose form and place in the store its objects have.
    pub fn storage_kind(&self) -> &Kind {
        if let Some(storage) = self.custom.as_ref().and_then(|custom| custom.storage()) {
            return storage;
        }
        self.stored.as_ref().map_or(self, |stored| stored.kind)
    }

    /// As `minions`, `stable.example.com/crontabs`: where upstream keeps its objects in etcd, below
    /// `/registry`.
    pub fn etcd_resource(&self) -> String {
        match self.etcd_key {
            Some(key) => key.to_owned(),
            None if self.is_custom => format!("{}/{}", self.group_version.group, self.plural),
            None => self.plural.to_string(),
        }
    }

    /// Where its objects are kept, as upstream keeps them: `/registry/pods/`, `/registry/services/specs/`.
    pub fn storage_prefix(&self) -> &Arc<str> {
        &self.texts().storage_prefix
    }

    fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| Texts {
            storage_prefix: format!("/registry/{}/", self.storage_kind().etcd_resource()).into(),
            resource: self.group_resource().to_string().into(),
        })
    }

    /// The path of a collection: `/apis/apps/v1/namespaces/NS/deployments`; an empty namespace means all.
    pub fn collection_path(&self, namespace: &str) -> String {
        let GroupVersion { group, version } = &self.group_version;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace {
            namespace if self.namespaced && !namespace.is_empty() => {
                format!("{root}/namespaces/{namespace}/{}", self.plural)
            }
            _ => format!("{root}/{}", self.plural),
        }
    }

    /// The path of an object.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection_path(namespace))
    }

    /// The names of the selectable fields, in the order of [`Object::fields`].
    pub fn field_names(&self) -> Vec<&str> {
        self.selectable.iter().map(|field| &*field.name).collect()
    }

    /// Whether it has `subresource`.
    pub fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }

    /// Reads an object of this kind from its stored bytes, as the write at `revision` left it; 0: it was
    /// never stored.
    ///
    /// # Errors
    /// Bytes that are no object.
    pub fn object(&self, stored: Bytes, revision: u64) -> Result<Object, Malformed> {
        let stored = match &self.custom {
            Some(custom) => custom.defaulted(stored)?,
            None => stored,
        };
        read_object(&self.selectable, stored, revision)
    }

    /// Makes an object of the tree whose bytes these are, which saves the reading.
    ///
    /// # Errors
    /// A tree that is no object.
    pub fn object_of_tree(&self, tree: &Value, stored: Bytes, revision: u64) -> Result<Object, Malformed> {
        let mut object = Object::of_tree(tree, stored, revision, &paths(&self.selectable))?;
        fill_in_defaults(&mut object, &self.selectable);
        Ok(object)
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.gvk())
    }
}
