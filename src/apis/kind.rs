//! `Kind`: the declaration of one kind in one version, read by every part of the server.

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::apiextensions::custom_resource::CustomResource;
use super::selectable::{fill_in_defaults, paths};
use super::strategy::{DefaultStrategy, Strategy};
use super::table::{CellsFn, CellsSource, Column, name_and_created_at};
use apimachinery::gvk::{GroupResource, GroupVersion, GroupVersionKind};
use apimachinery::object::{Malformed, Object};
use apimachinery::time::Time;
use apimachinery::yaml;

pub use super::selectable::{Selectable, read_object};

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
    /// What the server does to it on a write, and what it refuses.
    pub strategy: Arc<dyn Strategy>,
    /// Whether `metadata.generation` counts the changes of everything but metadata and status.
    pub counts_generation: bool,
    /// How long an object lives (Events).
    pub time_to_live: Option<Duration>,
    /// Those of its objects that a server makes of itself.
    pub bootstrap: Option<&'static StartingObjects>,
    /// Its objects, when they are not kept but told each time.
    pub derived: Option<fn() -> Vec<Value>>,
    /// What clients are warned of, when nobody should use it any more.
    pub deprecated: Option<&'static str>,
    /// How it is kept, when that is not its own form.
    pub stored: Option<StoredAs>,
    /// Whether it was declared by a CustomResourceDefinition: lists then carry `apiVersion` and `kind` per
    /// item.
    pub is_custom: bool,
    /// What is put together of the others when it is first asked for.
    pub texts: OnceLock<Texts>,
    /// What only a custom kind has: its schema, its conversion.
    pub custom: Option<Arc<CustomResource>>,
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

/// What hangs below an object's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subresource {
    /// `status`: written by whoever observes; shares the object.
    Status,
    /// `scale`: the object as an `autoscaling/v1` Scale.
    Scale,
    /// `pods/log`
    Log,
    /// `pods/binding`: the scheduler's decision.
    Binding,
    /// `pods/eviction`: a delete that respects disruption budgets.
    Eviction,
    /// `pods/ephemeralcontainers`
    EphemeralContainers,
    /// `pods/resize`
    Resize,
    /// `pods/exec`, `pods/attach`, `pods/portforward`: streams, which nothing simulated can serve
    Exec,
    /// See [`Subresource::Exec`].
    Attach,
    /// See [`Subresource::Exec`].
    PortForward,
    /// `pods/proxy`, `services/proxy`, `nodes/proxy`
    Proxy,
    /// `namespaces/finalize`
    Finalize,
    /// `serviceaccounts/token`
    Token,
    /// `certificatesigningrequests/approval`
    Approval,
    /// `deployments/rollback`, in versions of old
    Rollback,
}

impl Subresource {
    /// The path segment.
    pub fn name(self) -> &'static str {
        match self {
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Log => "log",
            Subresource::Binding => "binding",
            Subresource::Eviction => "eviction",
            Subresource::EphemeralContainers => "ephemeralcontainers",
            Subresource::Resize => "resize",
            Subresource::Exec => "exec",
            Subresource::Attach => "attach",
            Subresource::PortForward => "portforward",
            Subresource::Proxy => "proxy",
            Subresource::Finalize => "finalize",
            Subresource::Token => "token",
            Subresource::Approval => "approval",
            Subresource::Rollback => "rollback",
        }
    }

    /// The verbs in discovery.
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Subresource::Status
            | Subresource::Scale
            | Subresource::EphemeralContainers
            | Subresource::Resize
            | Subresource::Approval => &["get", "patch", "update"],
            Subresource::Log => &["get"],
            Subresource::Binding | Subresource::Eviction | Subresource::Token | Subresource::Rollback => {
                &["create"]
            }
            Subresource::Exec | Subresource::Attach | Subresource::PortForward => &["create", "get"],
            Subresource::Proxy => &["create", "delete", "get", "patch", "update"],
            Subresource::Finalize => &["update"],
        }
    }

    /// The kind of its body where that is not the parent's.
    pub fn kind(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Subresource::Scale => Some(("autoscaling", "v1", "Scale")),
            Subresource::Binding => Some(("", "v1", "Binding")),
            Subresource::Eviction => Some(("policy", "v1", "Eviction")),
            Subresource::Token => Some(("authentication.k8s.io", "v1", "TokenRequest")),
            Subresource::Exec => Some(("", "v1", "PodExecOptions")),
            Subresource::Attach => Some(("", "v1", "PodAttachOptions")),
            Subresource::PortForward => Some(("", "v1", "PodPortForwardOptions")),
            _ => None,
        }
    }
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
            strategy: Arc::new(DefaultStrategy),
            counts_generation: false,
            time_to_live: None,
            bootstrap: None,
            derived: None,
            deprecated: None,
            stored: None,
            is_custom: false,
            texts: OnceLock::new(),
            custom: None,
        }
    }

    /// Its objects live outside namespaces.
    pub fn cluster_scoped(mut self) -> Kind {
        self.namespaced = false;
        self
    }

    /// With short names.
    pub fn short(mut self, names: &[&str]) -> Kind {
        self.short_names = names.iter().copied().map(Arc::from).collect();
        self
    }

    /// In categories (`all`).
    pub fn in_categories(mut self, names: &[&str]) -> Kind {
        self.categories = names.iter().copied().map(Arc::from).collect();
        self
    }

    /// With subresources.
    pub fn with(mut self, subresources: &[Subresource]) -> Kind {
        self.subresources = subresources.to_vec();
        self
    }

    /// With only these verbs.
    pub fn only(mut self, verbs: &[&str]) -> Kind {
        self.verbs = verbs.iter().copied().map(Arc::from).collect();
        self
    }

    /// With its own columns; `cells` makes a row of an object, in their order. `now` is for ages.
    pub fn printed(mut self, columns: Vec<Column>, cells: fn(&Object, Time) -> Vec<Value>) -> Kind {
        (self.columns, self.cells) = (columns, CellsSource::Function(cells));
        self
    }

    /// With selectable fields whose path is their name.
    pub fn selectable_by(mut self, names: &[&str]) -> Kind {
        let field = |name: &&str| Selectable {
            name: (*name).into(),
            path: (*name).into(),
            default: "".into(),
            or: None,
        };
        self.selectable.extend(names.iter().map(field));
        self
    }

    /// With a selectable field that lives elsewhere or has a value when it is absent.
    pub fn selectable_as(mut self, name: &str, path: &str, default: &str) -> Kind {
        let (name, path, default) = (name.into(), path.into(), default.into());
        self.selectable.push(Selectable { name, path, default, or: None });
        self
    }

    /// With a selectable field that has the value of another, declared before it, when it is absent.
    pub fn selectable_or(mut self, name: &str, path: &str, other: &str) -> Kind {
        let or = self.selectable.iter().position(|field| &*field.name == other);
        let (name, path) = (name.into(), path.into());
        self.selectable.push(Selectable { name, path, default: "".into(), or });
        self
    }

    /// With defaults.
    pub fn defaulted(mut self, defaults: fn(&mut Value)) -> Kind {
        self.defaults = defaults;
        self
    }

    /// With a strategy of its own.
    pub fn governed_by(mut self, strategy: impl Strategy + 'static) -> Kind {
        self.strategy = Arc::new(strategy);
        self
    }

    /// Counting generations.
    pub fn with_generation(mut self) -> Kind {
        self.counts_generation = true;
        self
    }

    /// Expiring.
    pub fn living_for(mut self, time_to_live: Duration) -> Kind {
        self.time_to_live = Some(time_to_live);
        self
    }

    /// With objects that every server has.
    pub fn starting_with(mut self, objects: &'static StartingObjects) -> Kind {
        self.bootstrap = Some(objects);
        self
    }

    /// Not kept, but told each time.
    pub fn derived(mut self, objects: fn() -> Vec<Value>) -> Kind {
        self.derived = Some(objects);
        self
    }

    /// With a warning for whoever uses it.
    pub fn deprecated(mut self, warning: &'static str) -> Kind {
        self.deprecated = Some(warning);
        self
    }

    /// With the names, subresources, columns and selectable fields of another version of it, whose trees are
    /// alike.
    pub fn looking_like(mut self, other: &Kind) -> Kind {
        self.short_names = other.short_names.clone();
        self.categories = other.categories.clone();
        self.subresources = other.subresources.clone();
        (self.columns, self.cells) = (other.columns.clone(), other.cells.clone());
        self.selectable = other.selectable.clone();
        (self.defaults, self.counts_generation) = (other.defaults, other.counts_generation);
        self
    }

    /// Kept as another version.
    pub fn stored_as(mut self, stored: StoredAs) -> Kind {
        self.stored = Some(stored);
        self
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
        if let Some(storage) = self.custom.as_ref().and_then(|custom| custom.storage.as_deref()) {
            return storage;
        }
        self.stored.as_ref().map_or(self, |stored| stored.kind)
    }

    /// Where its objects are kept: `/registry/pods/`, `/registry/deployments.apps/`.
    pub fn storage_prefix(&self) -> &Arc<str> {
        &self.texts().storage_prefix
    }

    fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| Texts {
            storage_prefix: format!("/registry/{}/", self.storage_kind().group_resource()).into(),
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

    /// The same from the tree whose bytes these are, which saves the reading.
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
