//! Create (`registry.Store.Create`, `rest.BeforeCreate`).
//! Next: src/apiserver/storage/store.rs

use std::sync::Arc;

use serde_json::Value;

use super::conversion::{decode, encode, object_of, storage_kind};
use super::custom_versions::governing;
use super::lifted::lift;
use super::metadata::{fill_system_fields, generate_name, needs_name, resource_version, set, text};
use super::rest::ensure_namespace;
use super::{Registry, Validating, prepare};
use crate::request::RequestContext;
use crate::storage::Written;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::{Object, object_key};
use apimachinery::status::{Status, StatusDetails};
use apis::kind::Kind;
use apis::object_meta as validation;

/// How often another generated name is tried when one is taken.
const NAME_GENERATION_ATTEMPTS: usize = 8;

impl Registry {
    /// Creates an object.
    ///
    /// # Errors
    /// 409 when the name is taken; 422 when it is invalid; what `validating` says.
    pub async fn create(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        namespace: &str,
        new: Value,
        validating: &dyn Validating,
    ) -> Result<Arc<Object>, Status> {
        if !needs_name(&new) {
            return self.create_once(ctx, kind, namespace, new, validating).await;
        }
        let mut attempt = 1;
        loop {
            match self.create_once(ctx, kind, namespace, new.clone(), validating).await {
                Err(status) if status.is_already_exists() && attempt < NAME_GENERATION_ATTEMPTS => {
                    attempt += 1
                }
                result => return result,
            }
        }
    }

    pub(super) async fn create_once(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        namespace: &str,
        new: Value,
        validating: &dyn Validating,
    ) -> Result<Arc<Object>, Status> {
        let stored = storage_kind(kind);
        let mut new = encode(kind, new);
        let now = ctx.created_at.unwrap_or_else(|| self.0.clock.now());
        fill_system_fields(&mut new, now, &self.0.entropy);
        if needs_name(&new) {
            let name = generate_name(text(&new, "generateName"), &self.0.entropy);
            set(&mut new, "name", name);
        }
        // Of a seed, so that it does not depend on who else creates something at the same time.
        let name = [&*stored.group_version.group, &*stored.plural, namespace, text(&new, "name")];
        if let Some(uid) = self.0.entropy.uid_of(&name) {
            set(&mut new, "uid", uid);
        }
        let governing = governing(kind, &stored);
        ensure_namespace(&mut new, if stored.namespaced { namespace } else { "" })?;
        let allocation = self.allocate_on_create(&stored, &mut new, ctx.dry_run).await?;
        stored.strategy.claim(&mut new, &ctx.user);
        prepare::for_create(&governing, self.gates(), &mut new);
        self.note_dangling(&stored, &mut new).await;
        let refused = self.admin_access_on_create(&stored, &new).await;
        validate(ctx, self.gates(), (&governing, kind), &new, refused)?;
        self.admit(kind, validating, Some(&new), None).await?;
        governing.strategy.canonicalize(&mut new);
        if ctx.dry_run {
            self.expect_free_name(&stored, kind, &new).await?;
            // With the one that was sent, which nobody looks at.
            let revision = resource_version(&new).unwrap_or_default();
            return object_of(kind, &decode(kind, new), revision);
        }
        expect_no_resource_version(&new)?;
        let key = object_key(text(&new, "namespace"), text(&new, "name"));
        let written = self.to_storage(kind, &new).await?;
        match self.put(ctx, &stored, &key, 0, &written).await? {
            Written::Committed(object) => {
                allocation.commit();
                self.record_addresses(&stored, None, Some(&object)).await;
                self.read_back(ctx, kind, object).await
            }
            Written::Conflict(current) => Err(name_taken(kind, &new, current.as_deref())),
        }
    }

    /// Validating admission sees what the client asked for, in the client's version.
    pub(super) async fn admit(
        &self,
        kind: &Kind,
        validating: &dyn Validating,
        new: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        if kind.stored.is_none() {
            return validating.validate(new, old).await;
        }
        let convert = |tree: Option<&Value>| tree.map(|tree| decode(kind, tree.clone()));
        let (new, old) = (convert(new), convert(old));
        validating.validate(new.as_ref(), old.as_ref()).await
    }

    async fn expect_free_name(&self, stored: &Arc<Kind>, kind: &Kind, new: &Value) -> Result<(), Status> {
        let key = object_key(text(new, "namespace"), text(new, "name"));
        match self.0.storage.get(stored, &key, None).await? {
            Some(current) => Err(name_taken(kind, new, Some(&current))),
            None => Ok(()),
        }
    }
}

fn validate(
    ctx: &RequestContext,
    gates: &FeatureGates,
    (stored, kind): (&Kind, &Kind),
    new: &Value,
    refused: FieldErrors,
) -> Result<(), Status> {
    let strategy = &stored.strategy;
    let mut errors = validation::object_meta(new, stored.namespaced, &|name| strategy.validate_name(name));
    validation::standard_finalizers(new, stored, &mut errors);
    errors.extend(refused);
    errors.extend(strategy.validate(new));
    if kind.stored.is_some() {
        // A version may be stricter than the one that is stored; it sees the stored form.
        errors.extend(kind.strategy.validate(new));
    }
    lift(stored, gates, new, &mut errors);
    if !errors.is_empty() {
        return Err(Status::invalid(&kind.gvk(), text(new, "name"), &errors));
    }
    strategy.warnings(new, None).into_iter().for_each(|warning| ctx.warn(warning));
    Ok(())
}

/// `storage.ErrResourceVersionSetOnCreate`: looked at last, in front of the store. What is no number is none
/// there.
fn expect_no_resource_version(new: &Value) -> Result<(), Status> {
    match resource_version(new) {
        Ok(0) | Err(_) => Ok(()),
        Ok(_) => {
            let message = "resourceVersion should not be set on objects to be created";
            Err(Status::failure(500, "", message))
        }
    }
}

/// `CheckGeneratedNameError`; and why a name is still taken.
fn name_taken(kind: &Kind, new: &Value, current: Option<&Object>) -> Status {
    let (resource, name) = (kind.group_resource(), text(new, "name"));
    let mut status = Status::already_exists(&resource, name);
    if !text(new, "generateName").is_empty() {
        let message = format!(
            "{resource} {name:?} already exists, the server was not able to generate a unique name for the \
             object"
        );
        let (group, plural) = (resource.group.to_string(), resource.resource.to_string());
        let details = StatusDetails { name: name.into(), group, kind: plural, ..StatusDetails::default() };
        let details = StatusDetails { retry_after_seconds: 1, ..details };
        status = Status::failure(409, "AlreadyExists", message).with_details(details);
    }
    if current.is_some_and(Object::is_deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}
