//! NamespaceLifecycle: nothing is written into a namespace that is not there, nothing new into one that is
//! going away, and some namespaces stay (`admission/plugin/namespace/lifecycle`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use sync::Mutex;

use super::{AdmissionPlugin, Attributes, Operation, forbidden};
use crate::registry::Registry;
use apimachinery::object::Object;
use apimachinery::status::{Status, StatusCause};
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;

/// These are never deleted. (`kube-node-lease` may be, as upstream.)
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
/// For so long after its deletion a namespace is looked up in the store and not in the cache.
const LIVE_LOOKUP: Duration = Duration::from_secs(30);
/// So many deletions are remembered; at the bound those that ended are forgotten, or else all.
const MAX_LIVE_LOOKUPS: usize = 100;

/// Looks up the namespace of whatever is created or updated.
pub(super) struct NamespaceLifecycle {
    registry: Registry,
    namespaces: Option<Arc<Kind>>,
    clock: Clock,
    live_lookups: Mutex<HashMap<String, Duration>>,
}

impl NamespaceLifecycle {
    /// Reads namespaces through the registry.
    pub(super) fn new(registry: &Registry, scheme: &Scheme, clock: &Clock) -> NamespaceLifecycle {
        let namespaces = scheme.resource("", "v1", "namespaces");
        let live_lookups = Mutex::default();
        NamespaceLifecycle { registry: registry.clone(), namespaces, clock: clock.clone(), live_lookups }
    }

    async fn check(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        if is_namespace(attributes) {
            return self.check_namespace(attributes);
        }
        let Some(kind) = self.namespaces.as_ref().filter(|_| attributes.operation != Operation::Delete)
        else {
            return Ok(());
        };
        let namespace = self.find(kind, attributes.namespace).await?;
        if attributes.operation == Operation::Create && is_terminating(kind, &namespace) {
            return Err(terminating(attributes));
        }
        Ok(())
    }

    fn check_namespace(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        if attributes.operation != Operation::Delete {
            return Ok(());
        }
        if IMMORTAL.contains(&attributes.name) {
            let resource = attributes.kind.group_resource();
            return Err(Status::forbidden(&resource, attributes.name, "this namespace may not be deleted"));
        }
        let mut lookups = self.live_lookups.lock();
        if lookups.len() >= MAX_LIVE_LOOKUPS {
            lookups.retain(|_, until| *until > self.clock.elapsed());
        }
        if lookups.len() >= MAX_LIVE_LOOKUPS {
            lookups.clear();
        }
        lookups.insert(attributes.name.into(), self.clock.elapsed() + LIVE_LOOKUP);
        Ok(())
    }

    /// From the cache, unless the cache may be behind; a namespace that the cache does not know is asked
    /// for again.
    async fn find(&self, kind: &Arc<Kind>, name: &str) -> Result<Arc<Object>, Status> {
        let must_be_live = {
            let lookups = self.live_lookups.lock();
            lookups.get(name).is_some_and(|until| *until > self.clock.elapsed())
        };
        if !must_be_live && let Ok(namespace) = self.registry.get(kind, "", name, Some("0")).await {
            return Ok(namespace);
        }
        self.registry.get(kind, "", name, None).await
    }
}

impl AdmissionPlugin for NamespaceLifecycle {
    fn handles(&self, attributes: &Attributes) -> bool {
        let is_review = &*attributes.kind.plural == "localsubjectaccessreviews";
        attributes.operation != Operation::Connect
            && !is_review
            && (!attributes.namespace.is_empty() || is_namespace(attributes))
    }

    fn changes(&self) -> bool {
        false
    }

    fn admits(&self) -> bool {
        true
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        _object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(attributes))
    }
}

fn is_namespace(attributes: &Attributes) -> bool {
    &*attributes.kind.plural == "namespaces" && attributes.kind.group_version.group.is_empty()
}

fn is_terminating(kind: &Kind, namespace: &Object) -> bool {
    let at = kind.selectable.iter().position(|field| &*field.name == "status.phase");
    let phase = at.and_then(|at| namespace.fields.get(at));
    namespace.is_deleting() || phase.is_some_and(|phase| phase == "Terminating")
}

fn terminating(attributes: &Attributes<'_>) -> Status {
    let namespace = attributes.namespace;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = forbidden(attributes, None, &why);
    let cause = StatusCause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    };
    status.details.get_or_insert_default().causes.push(cause);
    status
}
