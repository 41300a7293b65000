//! The objects that a server makes of itself: default roles, priority classes, priority and fairness, the
//! default range of services (upstream's post-start hooks). They are made when somebody first asks for their
//! kind, so that start-up does not pay for what nobody looks at, and say that they were made at the start.

use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::Value;

use super::store::Part;
use super::{Registry, UpdatedObjectInfo};
use crate::request::RequestContext;
use apimachinery::managed_fields::{FieldManager, OneVersion, SchemaType, Updater};
use apimachinery::schema::{Schemas, apply_defaults, complete, zero_object};
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apis::kind::{Kind, StartingObject, StartingObjects};

impl Registry {
    /// Makes the objects that every server has of a kind, and of those that come with it, once; those that
    /// are there stay as they are.
    ///
    /// # Errors
    /// The store's.
    pub async fn bootstrap(&self, kind: &Kind) -> Result<(), Status> {
        let Some(set) = kind.bootstrap else { return Ok(()) };
        let cell = self.0.bootstrapped.cell(set);
        cell.get_or_try_init(|| Box::pin(self.make_all(set))).await.copied()
    }

    /// Makes those again that somebody took away.
    ///
    /// # Errors
    /// The store's.
    pub async fn restore(&self, kind: &Kind) -> Result<(), Status> {
        match kind.bootstrap {
            Some(set) => self.make_all(set).await,
            None => Ok(()),
        }
    }

    /// Whether a set has been made.
    pub fn has_made(&self, set: &StartingObjects) -> bool {
        self.0.bootstrapped.cell(set).initialized()
    }

    /// For what is made late and was there from the start.
    pub fn from_the_start(&self) -> RequestContext {
        let mut ctx = RequestContext::default();
        ctx.created_at = Some(self.0.started);
        ctx
    }

    /// Together, so that they share the store's batches.
    async fn make_all(&self, set: &StartingObjects) -> Result<(), Status> {
        let made = (set.objects)().into_iter().map(|object| self.make(set.manager, object));
        try_join_all(made).await.map(drop)
    }

    async fn make(&self, manager: &str, object: StartingObject) -> Result<(), Status> {
        let kind: &Arc<Kind> = object.kind;
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        if self.get(kind, &namespace, &name, None).await.is_ok() {
            return Ok(());
        }
        let mut new = object.object;
        self.follow_service_ranges(kind, &mut new);
        let status = new.as_object_mut().and_then(|new| new.remove("status")).unwrap_or_default();
        self.prepare_own(kind, manager, &mut new);
        let ctx = self.from_the_start();
        match self.create(&ctx, kind, &namespace, new, &()).await {
            Err(refused) if !refused.is_already_exists() => Err(refused),
            Ok(_) if !status.is_null() => self.set_own_status(kind, &name, status).await,
            _ => Ok(()),
        }
    }

    /// What a request would go through on its way here: defaults, owners of fields.
    pub(super) fn prepare_own(&self, kind: &Kind, manager: &str, new: &mut Value) {
        let Some(schema) = Schemas::lookup(&kind.definition) else { return };
        apply_defaults(schema, new);
        (kind.defaults)(new);
        complete(schema, new);
        self.own(kind, manager, None, new);
    }

    /// Sets the owners of `new`, which is to replace `live`.
    pub(super) fn own(&self, kind: &Kind, manager: &str, live: Option<&Value>, new: &mut Value) {
        let Some(schema) = Schemas::lookup(&kind.definition) else { return };
        let (reset, api_version) = (kind.reset_fields(None), kind.api_version());
        let now = if live.is_some() { self.0.clock.now() } else { self.0.started };
        let manager = FieldManager {
            updater: Updater {
                kind: SchemaType::Known(schema),
                api_version: &api_version,
                reset: &reset,
                converter: &OneVersion,
            },
            gvk: &kind.gvk().to_string(),
            subresource: "",
            manager,
            now: &rfc3339(now),
        };
        manager.update(live, || zero_object(schema), new);
    }

    async fn set_own_status(&self, kind: &Arc<Kind>, name: &str, mut status: Value) -> Result<(), Status> {
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = rfc3339(self.0.started).into();
        }
        let change = move |current: Option<&Value>| -> Result<Value, Status> {
            let mut new = current.cloned().unwrap_or_default();
            new["status"] = status.clone();
            Ok(new)
        };
        let (ctx, change): (_, &dyn UpdatedObjectInfo) = (RequestContext::default(), &change);
        self.update(&ctx, kind, "", name, Part::Status, change, &(), false).await.map(drop)
    }
}
