//! The registry as endpoints see it.

mod deletes;
mod reads;
mod services;
mod subresources;
mod writes;

use std::sync::Arc;

use chrono::DateTime;
use serde_json::{Value, json};

use super::store::{DeleteOutcome, Part, Registry};
use crate::request::{RequestContext, RequestInfo};
use crate::storage::Storage;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apis::kind::{Kind, Subresource};
use apis::scheme::Scheme;
use apis::strategy::Strategy;
use clock::Clock;
use entropy::Entropy;

/// A kind with a spec, a status and grace, whose `spec.fixed` never changes.
struct Graceful;

impl Strategy for Graceful {
    fn grace_period_seconds(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        Some(requested.or(object["spec"]["grace"].as_i64()).unwrap_or(0))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        if new["spec"]["fixed"] != old["spec"]["fixed"] {
            errors.invalid("spec.fixed", &new["spec"]["fixed"], "field is immutable");
        }
        errors
    }
}

/// A kind whose updates must name a revision.
struct Conditional;

impl Strategy for Conditional {
    fn allow_unconditional_update(&self) -> bool {
        false
    }
}

struct Subject {
    registry: Registry,
    ctx: RequestContext,
}

impl Subject {
    fn new() -> Subject {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let storage = Storage::in_memory(clock.clone(), Entropy::seeded(1));
        let scheme = Arc::new(Scheme::builtin());
        let registry = Registry::new(storage, scheme, clock, Entropy::seeded(2));
        Subject { registry, ctx: context("update", false) }
    }

    fn kind(&self, group: &str, version: &str, plural: &str) -> Arc<Kind> {
        self.registry.0.scheme.resource(group, version, plural).unwrap()
    }

    /// As an endpoint does, with the kind's defaults filled in.
    async fn create(&self, kind: &Arc<Kind>, mut tree: Value) -> Result<Arc<Object>, Status> {
        (kind.defaults)(&mut tree);
        let namespace = if kind.namespaced { "ns" } else { "" };
        self.registry.create(&self.ctx, kind, namespace, tree, &()).await
    }

    async fn update(&self, kind: &Arc<Kind>, part: Part, mut tree: Value) -> Result<Arc<Object>, Status> {
        (kind.defaults)(&mut tree);
        let name = tree["metadata"]["name"].as_str().unwrap().to_owned();
        let change = |_: Option<&Value>| Ok(tree.clone());
        let namespace = if kind.namespaced { "ns" } else { "" };
        let updated =
            self.registry.update(&self.ctx, kind, namespace, &name, part, &change, &(), false).await;
        updated.map(|(object, _)| object)
    }

    async fn delete(
        &self,
        kind: &Arc<Kind>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<DeleteOutcome, Status> {
        let namespace = if kind.namespaced { "ns" } else { "" };
        self.registry.delete(&self.ctx, kind, namespace, name, options, &()).await
    }

    async fn get(&self, kind: &Arc<Kind>, name: &str) -> Result<Arc<Object>, Status> {
        let namespace = if kind.namespaced { "ns" } else { "" };
        self.registry.get(kind, namespace, name, None).await
    }
}

fn context(verb: &str, dry_run: bool) -> RequestContext {
    let info = Arc::new(RequestInfo { verb: verb.into(), ..RequestInfo::default() });
    let mut ctx = RequestContext::new(info, Arc::default());
    ctx.dry_run = dry_run;
    ctx
}

fn graceful() -> Arc<Kind> {
    let kind = Kind::builtin("test", "v1", "Thing", "things", "test.v1").with(&[Subresource::Status]);
    Arc::new(kind.with_generation().governed_by(Graceful))
}

fn conditional() -> Arc<Kind> {
    Arc::new(Kind::builtin("test", "v1", "Other", "others", "test.v1").governed_by(Conditional))
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn with_metadata(name: &str, field: &str, value: Value) -> Value {
    let mut tree = named(name);
    tree["metadata"][field] = value;
    tree
}

fn message<T>(result: Result<T, Status>) -> String {
    result.err().expect("it is to be refused").message
}

fn grace(seconds: i64) -> DeleteOptions {
    DeleteOptions { grace_period_seconds: Some(seconds), ..DeleteOptions::default() }
}
