//! `Registry`: reads and writes for every kind (`registry.Store`).
//! Next: src/apiserver/registry/create.rs
//!
//! Reads are here; writes are in `create`, `update` and `deletion`.

use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::mpsc;

use super::bootstrapped::Bootstrapped;
use super::conversion::{CustomResourceConverter, storage_kind};
use super::derived;
use super::service::Allocators;
use crate::authorizer::Authorizer;
use crate::storage::Storage;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::list::List;
use apimachinery::object::{Object, object_key};
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;
use entropy::Entropy;

/// Reads and writes objects of every kind. Cloning shares it.
#[derive(Clone)]
pub struct Registry(pub(super) Arc<RegistryInner>);

pub(super) struct RegistryInner {
    pub(super) storage: Storage,
    pub(super) scheme: Arc<Scheme>,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    pub(super) services: Allocators,
    pub(super) bootstrapped: Bootstrapped,
    pub(super) started: Time,
    /// Set by the apiserver, which knows webhooks. Weak: it reads Services through this registry.
    pub(super) converter: OnceLock<Weak<dyn CustomResourceConverter>>,
    /// Set by the apiserver; until then every gate has its default.
    pub(super) gates: OnceLock<FeatureGates>,
    /// Set by the apiserver, which knows who decides. Weak: RBAC reads roles through this registry.
    pub(super) authorizer: OnceLock<Weak<dyn Authorizer>>,
}

/// Which part of an object an update is about; everything else stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object itself; where there is a `status` subresource, not its status.
    Main,
    /// `status`
    Status,
    /// `finalize` of a namespace: `spec.finalizers`
    Finalize,
    /// `ephemeralcontainers` of a pod
    EphemeralContainers,
    /// `resize` of a pod
    Resize,
    /// `approval` of a certificate signing request
    Approval,
}

/// What became of a delete.
#[derive(Clone, Debug)]
pub enum DeleteOutcome {
    /// It is gone; this was its last state.
    Gone(Arc<Object>),
    /// It waits for finalizers or for its grace period; this is how it stands.
    Pending(Arc<Object>),
}

impl DeleteOutcome {
    /// The object, gone or not.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            DeleteOutcome::Gone(object) | DeleteOutcome::Pending(object) => object,
        }
    }
}

impl Registry {
    /// Over a storage; `entropy` draws uids and name suffixes.
    pub fn new(storage: Storage, scheme: Arc<Scheme>, clock: Clock, entropy: Entropy) -> Registry {
        let services = Allocators::new(clock.clone(), entropy.clone());
        let bootstrapped = Bootstrapped::default();
        let converter = OnceLock::new();
        let gates = OnceLock::new();
        let authorizer = OnceLock::new();
        let started = clock.now();
        let inner = RegistryInner {
            storage,
            scheme,
            clock,
            entropy,
            services,
            bootstrapped,
            started,
            converter,
            gates,
            authorizer,
        };
        Registry(Arc::new(inner))
    }

    /// What its clock says.
    pub(crate) fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// One object. `resource_version`: unset is the newest, `0` is any, else at least this.
    ///
    /// # Errors
    /// 404; 504 when `resource_version` has not been reached.
    pub async fn get(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        resource_version: Option<&str>,
    ) -> Result<Arc<Object>, Status> {
        if kind.derived.is_some() {
            return derived::get(kind, name);
        }
        let key = object_key(if kind.namespaced { namespace } else { "" }, name);
        let found = self.0.storage.get(&storage_kind(kind), &key, resource_version).await?;
        let found = found.ok_or_else(|| Status::not_found(&kind.group_resource(), name))?;
        self.present(kind, found).await
    }

    /// Objects of a namespace, or of all when it is empty.
    ///
    /// # Errors
    /// 400 and 422 for options that do not go together; 410 when the revision is gone; 504 when it is to
    /// come.
    pub async fn list(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<List, Status> {
        if kind.derived.is_some() {
            return derived::list(kind, options);
        }
        self.list_presented(kind, namespace, options).await
    }

    /// Whether nobody has to be asked to know that there is no object of a kind: a look into our own store,
    /// which makes no cache; of an etcd nothing is known.
    pub fn is_known_to_be_empty(&self, kind: &Arc<Kind>) -> bool {
        self.0.storage.is_known_to_be_empty(&storage_kind(kind))
    }

    /// What happens to the objects of a namespace, or of all when it is empty. Ends after
    /// `options.timeout_seconds`, if that is set, and when the receiver falls too far behind.
    ///
    /// # Errors
    /// As [`Registry::list`]; a revision that is gone is an error event.
    pub async fn watch(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        options: &ListOptions,
    ) -> Result<mpsc::Receiver<WatchEvent>, Status> {
        self.watch_presented(kind, namespace, options).await
    }

    /// How many objects there are; no cache is made for the answer.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn count(&self, kind: &Kind) -> Result<usize, Status> {
        self.0.storage.count(kind.storage_kind()).await
    }

    /// Whether other servers write to the store, too.
    pub fn is_shared(&self) -> bool {
        self.0.storage.is_shared()
    }

    /// The revision that the store stands at, as far as that was heard of.
    pub fn revision(&self) -> u64 {
        self.0.storage.revision()
    }

    /// A kind is no longer served: its watches end and its cache goes.
    pub fn forget(&self, kind: &Kind) {
        self.0.storage.forget(kind.storage_kind());
    }

    /// A kind that the registry itself needs.
    pub(super) fn kind(&self, group: &str, version: &str, plural: &str) -> Result<Arc<Kind>, Status> {
        let found = self.0.scheme.resource(group, version, plural);
        found.ok_or_else(|| Status::internal(format!("{plural}.{version}.{group} is not served")))
    }
}
