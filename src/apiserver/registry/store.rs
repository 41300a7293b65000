//! `Registry`: reads and writes for every kind (`registry.Store`).
//! Next: src/apiserver/storage/store.rs

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use super::{Change, Validating};
use crate::apimachinery::list::List;
use crate::apimachinery::object::Object;
use crate::apimachinery::options::{DeleteOptions, ListOptions};
use crate::apimachinery::status::Status;
use crate::apimachinery::watch::WatchEvent;
use crate::apis::kind::Kind;
use crate::apis::scheme::Scheme;
use crate::apiserver::request::RequestContext;
use crate::apiserver::storage::Storage;
use crate::clock::Clock;
use crate::entropy::Entropy;

/// Reads and writes objects of every kind. Cloning shares it.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    storage: Storage,
    scheme: Arc<Scheme>,
    clock: Clock,
    entropy: Entropy,
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
pub enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Object>),
    /// It waits for finalizers or for its grace period; this is how it stands.
    Pending(Arc<Object>),
}

impl Registry {
    /// Over a storage; `entropy` draws uids and name suffixes.
    pub fn new(storage: Storage, scheme: Arc<Scheme>, clock: Clock, entropy: Entropy) -> Registry {
        Registry(Arc::new(Inner { storage, scheme, clock, entropy }))
    }

    /// One object. `resource_version`: unset is the newest, `0` is any, else at least this.
    ///
    /// # Errors
    /// 404; 504 when `resource_version` has not been reached.
    pub async fn get(
        &self,
        kind: &Arc<Kind>,
        _namespace: &str,
        name: &str,
        _resource_version: Option<&str>,
    ) -> Result<Arc<Object>, Status> {
        let _ = (&self.0.storage, &self.0.scheme, &self.0.clock, &self.0.entropy);
        Err(Status::not_found(&kind.group_resource(), name))
    }

    /// Objects of a namespace, or of all when it is empty.
    ///
    /// # Errors
    /// 400 and 422 for options that do not go together; 410 when the revision is gone; 504 when it is to come.
    pub async fn list(
        &self,
        _kind: &Arc<Kind>,
        _namespace: &str,
        _options: &ListOptions,
    ) -> Result<List, Status> {
        Ok(List::complete(vec![], 1))
    }

    /// What happens to the objects of a namespace, or of all when it is empty. Ends after
    /// `options.timeout_seconds`, if that is set, and when the receiver falls too far behind.
    ///
    /// # Errors
    /// As [`Registry::list`]; a revision that is gone is an error event.
    pub async fn watch(
        &self,
        _kind: &Arc<Kind>,
        _namespace: &str,
        _options: &ListOptions,
    ) -> Result<mpsc::Receiver<WatchEvent>, Status> {
        Ok(mpsc::channel(1).1)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// 409 when the name is taken; 422 when it is invalid; what `validating` says.
    pub async fn create(
        &self,
        _ctx: &RequestContext,
        _kind: &Arc<Kind>,
        _namespace: &str,
        _new: Value,
        _validating: &dyn Validating,
    ) -> Result<Arc<Object>, Status> {
        Err(Status::internal("not served yet"))
    }

    /// Changes an object, or creates it where the kind or the caller (server-side apply) allows that; says whether it did.
    ///
    /// A `resourceVersion` in what `change` returns must be the current one; without one the change is tried
    /// until it gets through.
    ///
    /// # Errors
    /// 404; 409 when it was changed meanwhile; 422; what `change` and `validating` say.
    #[expect(clippy::too_many_arguments, reason = "upstream's Update has as many")]
    pub async fn update(
        &self,
        _ctx: &RequestContext,
        kind: &Arc<Kind>,
        _namespace: &str,
        name: &str,
        _part: Part,
        _change: &dyn Change,
        _validating: &dyn Validating,
        _create_if_missing: bool,
    ) -> Result<(Arc<Object>, bool), Status> {
        Err(Status::not_found(&kind.group_resource(), name))
    }

    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// 404; 409 when a precondition fails; what `validating` says.
    pub async fn delete(
        &self,
        _ctx: &RequestContext,
        kind: &Arc<Kind>,
        _namespace: &str,
        name: &str,
        _options: &DeleteOptions,
        _validating: &dyn Validating,
    ) -> Result<Deleted, Status> {
        Err(Status::not_found(&kind.group_resource(), name))
    }

    /// Deletes what `list_options` select; answers with what was deleted.
    ///
    /// # Errors
    /// The first that a delete meets, other than 404.
    pub async fn delete_collection(
        &self,
        _ctx: &RequestContext,
        _kind: &Arc<Kind>,
        _namespace: &str,
        _delete_options: &DeleteOptions,
        _list_options: &ListOptions,
        _validating: &dyn Validating,
    ) -> Result<List, Status> {
        Ok(List::complete(vec![], 1))
    }

    /// `pods/binding`: assigns a pod to a node. `binding` is a `v1` Binding.
    ///
    /// # Errors
    /// 404; 409 when the pod is bound or being deleted.
    pub async fn bind(
        &self,
        _ctx: &RequestContext,
        _namespace: &str,
        _name: &str,
        _binding: &Value,
        _validating: &dyn Validating,
    ) -> Result<(), Status> {
        Err(Status::internal("not served yet"))
    }

    /// `pods/eviction`: deletes a pod unless its disruption budget forbids. `eviction` is a `policy/v1` Eviction.
    ///
    /// # Errors
    /// 404; 429 when the budget is spent.
    pub async fn evict(
        &self,
        _ctx: &RequestContext,
        _namespace: &str,
        _name: &str,
        _eviction: &Value,
        _validating: &dyn Validating,
    ) -> Result<(), Status> {
        Err(Status::internal("not served yet"))
    }

    /// `scale` of a workload as an `autoscaling/v1` Scale.
    ///
    /// # Errors
    /// 404.
    pub async fn get_scale(
        &self,
        kind: &Arc<Kind>,
        _namespace: &str,
        name: &str,
    ) -> Result<Arc<Object>, Status> {
        Err(Status::not_found(&kind.group_resource(), name))
    }

    /// Changes the replicas of a workload; `change` gets and returns a Scale.
    ///
    /// # Errors
    /// As [`Registry::update`].
    pub async fn update_scale(
        &self,
        _ctx: &RequestContext,
        kind: &Arc<Kind>,
        _namespace: &str,
        name: &str,
        _change: &dyn Change,
        _validating: &dyn Validating,
    ) -> Result<Arc<Object>, Status> {
        Err(Status::not_found(&kind.group_resource(), name))
    }
}
