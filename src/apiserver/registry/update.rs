//! Update (`registry.Store.Update`, `rest.BeforeUpdate`).
//!
//! It reads, changes, prepares, validates, compares and puts; and does it again when somebody else was faster
//! and the client named no revision.

use std::sync::Arc;

use serde_json::Value;

use super::conversion::{decode, encode, object_of, storage_kind};
use super::custom_versions::{as_asked, governing};
use super::lifted::lift;
use super::metadata::{carry_over, resource_version, set, text, texts};
use super::rest::ensure_namespace;
use super::store::Part;
use super::{Registry, UpdatedObjectInfo, Validating, prepare};
use crate::request::RequestContext;
use crate::storage::Written;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::field_error::FieldErrors;
use apimachinery::names;
use apimachinery::object::{Object, object_key};
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::object_meta as validation;

/// What an update is about; the same on each attempt.
pub(super) struct Update<'a> {
    pub(super) ctx: &'a RequestContext,
    pub(super) kind: &'a Arc<Kind>,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) part: Part,
    pub(super) change: &'a dyn UpdatedObjectInfo,
    pub(super) validating: &'a dyn Validating,
}

enum UpdateAttempt {
    Done(Arc<Object>),
    /// Somebody else was faster.
    Again(Option<Arc<Object>>),
}

impl Registry {
    /// Changes an object, or creates it where the kind or the caller (server-side apply) allows that; says
    /// whether it did.
    ///
    /// A `resourceVersion` in what `change` returns must be the current one; without one the change is tried
    /// until it gets through.
    ///
    /// # Errors
    /// 404; 409 when it was changed meanwhile; 422; what `change` and `validating` say.
    #[expect(clippy::too_many_arguments, reason = "upstream's Update has as many")]
    pub async fn update(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        part: Part,
        change: &dyn UpdatedObjectInfo,
        validating: &dyn Validating,
        create_if_missing: bool,
    ) -> Result<(Arc<Object>, bool), Status> {
        let namespace = if kind.namespaced { namespace } else { "" };
        let update = Update { ctx, kind, namespace, name, part, change, validating };
        let stored = storage_kind(kind);
        let may_create =
            part == Part::Main && (create_if_missing || stored.strategy.allow_create_on_update());
        let mut current = self.0.storage.get(&stored, &object_key(namespace, name), None).await?;
        loop {
            let attempt = match current {
                Some(current) => self.update_once(&update, &stored, &current).await?,
                None if may_create => match self.create_by_update(&update).await {
                    Ok(object) => return Ok((object, true)),
                    // Created meanwhile: then it is an update after all.
                    Err(status) if status.is_already_exists() => UpdateAttempt::Again(
                        self.0.storage.get(&stored, &object_key(namespace, name), None).await?,
                    ),
                    Err(status) => return Err(status),
                },
                None => return Err(Status::not_found(&kind.group_resource(), name)),
            };
            match attempt {
                UpdateAttempt::Done(object) => return Ok((self.read_back(ctx, kind, object).await?, false)),
                UpdateAttempt::Again(found) => current = found,
            }
        }
    }

    async fn create_by_update(&self, update: &Update<'_>) -> Result<Arc<Object>, Status> {
        let mut new = update.change.change(None).await?;
        // Which one the client believes to replace says nothing, as upstream does not ask.
        set(&mut new, "resourceVersion", Value::Null);
        if text(&new, "name").is_empty() {
            set(&mut new, "name", update.name);
        }
        self.create_once(update.ctx, update.kind, update.namespace, new, update.validating).await
    }

    async fn update_once(
        &self,
        update: &Update<'_>,
        stored: &Arc<Kind>,
        current: &Arc<Object>,
    ) -> Result<UpdateAttempt, Status> {
        let kind = update.kind;
        let governing = governing(kind, stored);
        update.ctx.announced.bytes(current.size_bytes()).await;
        let old = self.read_stored(kind, vec![current.to_value()]).await?;
        let old = old.into_iter().next().unwrap_or_default();
        let mut new = match kind.stored {
            None => update.change.change(Some(&old)).await?,
            Some(_) => encode(kind, update.change.change(Some(&decode(kind, old.clone()))).await?),
        };
        check_preconditions(update, &governing, &mut new, current)?;
        ensure_namespace(&mut new, if stored.namespaced { update.namespace } else { "" })?;
        carry_over(&mut new, &old);
        let allocation =
            self.allocate_on_update(stored, update.part, &mut new, &old, update.ctx.dry_run).await?;
        prepare::for_update(&governing, self.gates(), update.part, &mut new, &old, self.0.clock.now());
        if update.part == Part::Main {
            self.note_dangling(stored, &mut new).await;
        }
        ignore_managed_fields_times(&mut new, &old);
        let mut refused = self.admin_access_on_update(stored, update.part, &new, &old).await;
        refused.extend(self.claim_rights(update, stored, &new, &old).await);
        validate(update, self.gates(), &governing, (&new, &old), refused)?;
        self.admit(kind, update.validating, Some(&new), Some(&old)).await?;
        governing.strategy.canonicalize(&mut new);
        if is_finalized(stored, &new, &old) {
            return self.delete_finalized(update, stored, current, &new).await;
        }
        if new == old && !self.0.storage.is_stale(stored, &current.key()).await? {
            return Ok(UpdateAttempt::Done(current.clone()));
        }
        let revision = current.metadata.resource_version;
        if update.ctx.dry_run {
            return Ok(UpdateAttempt::Done(object_of(stored, &as_asked(kind, &new), revision)?));
        }
        let written = self.to_storage(kind, &new).await?;
        match self.put(update.ctx, stored, &current.key(), revision, &written).await? {
            Written::Committed(object) => {
                allocation.commit();
                self.record_addresses(stored, Some(current), Some(&object)).await;
                Ok(UpdateAttempt::Done(object))
            }
            Written::Conflict(current) => Ok(UpdateAttempt::Again(current)),
        }
    }

    /// The last finalizer is gone, and with it the object. The client gets what it wrote.
    async fn delete_finalized(
        &self,
        update: &Update<'_>,
        stored: &Arc<Kind>,
        current: &Arc<Object>,
        new: &Value,
    ) -> Result<UpdateAttempt, Status> {
        let revision = current.metadata.resource_version;
        let answer = object_of(stored, &as_asked(update.kind, new), revision)?;
        if update.ctx.dry_run {
            return Ok(UpdateAttempt::Done(answer));
        }
        match self.remove(update.ctx, stored, current).await? {
            Written::Committed(_) | Written::Conflict(None) => Ok(UpdateAttempt::Done(answer)),
            Written::Conflict(current) => Ok(UpdateAttempt::Again(current)),
        }
    }
}

/// When nothing changed but the times at which managers wrote, nothing changed
/// (`IgnoreManagedFieldsTimestampsTransformer`).
fn ignore_managed_fields_times(new: &mut Value, old: &Value) {
    let before = &old["metadata"]["managedFields"];
    let Some(owners) =
        before.as_array().filter(|_| differ_in_times(&new["metadata"]["managedFields"], before))
    else {
        return;
    };
    let given = new["metadata"]["managedFields"].take();
    set(new, "managedFields", owners.clone());
    if new != old {
        set(new, "managedFields", given);
    }
}

/// Whether two lists of managers are the same, but for some times.
fn differ_in_times(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_array(), old.as_array()) else { return false };
    const COMPARED: [&str; 6] =
        ["manager", "operation", "subresource", "apiVersion", "fieldsType", "fieldsV1"];
    new.len() == old.len()
        && new.iter().zip(old).any(|(new, old)| new["time"] != old["time"])
        && new.iter().zip(old).all(|(new, old)| COMPARED.iter().all(|field| new[field] == old[field]))
}

/// The uid and the revision that the client named, if it named any.
fn check_preconditions(
    update: &Update<'_>,
    stored: &Kind,
    new: &mut Value,
    current: &Object,
) -> Result<(), Status> {
    let resource = update.kind.group_resource();
    let (uid, is_patch) = (text(new, "uid"), update.ctx.info.verb == "patch");
    if !uid.is_empty() && uid != current.metadata.uid && !is_patch {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            etcd_key(update.kind, text(new, "namespace"), update.name),
            current.metadata.uid
        );
        return Err(Status::conflict(&resource, update.name, &why));
    }
    let revision = current.metadata.resource_version;
    match resource_version(new)? {
        0 if stored.strategy.allow_unconditional_update() => {
            set(new, "resourceVersion", revision.to_string())
        }
        0 => {
            let mut errors = FieldErrors::default();
            let path = "metadata.resourceVersion";
            let detail = "must be specified for an update";
            errors.invalid(path, &0.into(), detail);
            let shown = update.kind.group_version.kind(&update.kind.plural);
            return Err(Status::invalid(&shown, update.name, &errors));
        }
        named if named != revision => return Err(Status::modified(&resource, update.name)),
        _ => (),
    }
    Ok(())
}

/// Where upstream keeps an object in etcd: part of the words of some errors.
fn etcd_key(kind: &Kind, namespace: &str, name: &str) -> String {
    let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    format!("/registry/{}/{namespace}{name}", kind.etcd_resource())
}

fn validate(
    update: &Update<'_>,
    gates: &FeatureGates,
    stored: &Kind,
    (new, old): (&Value, &Value),
    refused: FieldErrors,
) -> Result<(), Status> {
    let strategy = &stored.strategy;
    let mut errors = validation::object_meta(new, stored.namespaced, &names::path_segment_name);
    // Upstream looks twice, once for all kinds and once as each kind's own rule; the causes say so.
    let changes = validation::object_meta_update(new, old);
    errors.extend(changes.clone());
    errors.extend(changes);
    validation::standard_finalizers(new, stored, &mut errors);
    errors.extend(refused);
    errors.extend(match update.part {
        // Nobody has seen it yet: initializers may change what is fixed later (`isUpdatingUninitializedPod`).
        Part::Main if !old["metadata"]["initializers"].is_null() => strategy.validate(new),
        Part::Main => strategy.validate_update(new, old),
        Part::Status => strategy.validate_status_update(new, old),
        Part::Approval => strategy.validate_part_update("approval", new, old),
        Part::Finalize => FieldErrors::default(),
        Part::EphemeralContainers => strategy.validate_part_update("ephemeralcontainers", new, old),
        Part::Resize => strategy.validate_part_update("resize", new, old),
    });
    if update.kind.stored.is_some() && update.part == Part::Main {
        errors.extend(update.kind.strategy.validate_update(new, old));
    }
    lift(stored, gates, new, &mut errors);
    if !errors.is_empty() {
        return Err(Status::invalid(&update.kind.gvk(), text(new, "name"), &errors));
    }
    if update.part == Part::Main {
        strategy.warnings(new, Some(old)).into_iter().for_each(|warning| update.ctx.warn(warning));
    }
    Ok(())
}

/// `ShouldDeleteDuringUpdate`: it is being deleted, its grace period is over, and nobody holds it any more.
fn is_finalized(stored: &Kind, new: &Value, old: &Value) -> bool {
    let metadata = &old["metadata"];
    let expired = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
    let held_by_content = super::deletion::is_namespace(stored)
        && new["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    !metadata["deletionTimestamp"].is_null()
        && expired
        && texts(new, "finalizers").is_empty()
        && !held_by_content
}
