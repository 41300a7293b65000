//! Delete (`registry.Store.Delete`, `rest.BeforeDelete`): finalizers and grace first, then the removal.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::conversion::{object_of, storage_kind};
use super::metadata::{number, set, text, texts, unset};
use super::store::DeleteOutcome;
use super::{Registry, Validating};
use crate::request::RequestContext;
use crate::storage::Written;
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::{GroupResource, GroupVersion};
use apimachinery::object::{Object, object_key};
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::{Time, parse, rfc3339};
use apis::finalizers::{FOREGROUND, ORPHAN};
use apis::kind::Kind;
use apis::strategy::GarbageCollectionPolicy;

/// What is to be done with an object.
#[derive(Debug, PartialEq)]
enum DeletionPlan {
    /// It is being deleted, and this request changes nothing about that.
    Pending,
    /// It becomes this; and is then removed, when nothing is left to wait for.
    Update { new: Value, then_remove: bool },
    /// It is removed.
    Remove,
}

/// Namespaces are deleted in a way of their own.
pub(super) fn is_namespace(kind: &Kind) -> bool {
    &*kind.plural == "namespaces" && kind.group_version.group.is_empty()
}

impl Registry {
    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// 404; 409 when a precondition fails; what `validating` says.
    pub async fn delete(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        validating: &dyn Validating,
    ) -> Result<DeleteOutcome, Status> {
        validate_options(options)?;
        let stored = storage_kind(kind);
        let dry_run = ctx.dry_run || !options.dry_run.is_empty();
        let key = object_key(if kind.namespaced { namespace } else { "" }, name);
        let mut options = options.clone();
        let mut found = self.0.storage.get(&stored, &key, None).await?;
        let mut last: Option<Arc<Object>> = None;
        loop {
            let Some(current) = found else {
                // Between the end of its grace and its removal, somebody else removed it: that is what was
                // wanted.
                let Some(last) = last else { return Err(Status::not_found(&kind.group_resource(), name)) };
                return Ok(DeleteOutcome::Gone(self.present(kind, last).await?));
            };
            let old = current.to_value();
            let plan = plan(&stored, &old, &options, self.0.clock.now())?;
            if last.is_none() {
                let shown = self.read_stored(kind, vec![old.clone()]).await?;
                self.admit(kind, validating, None, shown.first()).await?;
            }
            let written = match plan {
                DeletionPlan::Pending => {
                    return Ok(DeleteOutcome::Pending(self.present(kind, current).await?));
                }
                DeletionPlan::Update { new, then_remove } if dry_run => {
                    let object = object_of(&stored, &new, current.metadata.resource_version)?;
                    let object = self.present(kind, object).await?;
                    return Ok(if then_remove {
                        DeleteOutcome::Gone(object)
                    } else {
                        DeleteOutcome::Pending(object)
                    });
                }
                DeletionPlan::Remove if dry_run => {
                    return Ok(DeleteOutcome::Gone(self.present(kind, current).await?));
                }
                DeletionPlan::Update { new, then_remove } => {
                    let revision = current.metadata.resource_version;
                    match self.0.storage.put(&stored, &key, revision, &new, ctx.cause()).await? {
                        Written::Committed(object) if then_remove => {
                            follow_revision(&mut options, &object);
                            last = Some(object.clone());
                            Written::Conflict(Some(object))
                        }
                        Written::Committed(object) => {
                            self.record_addresses(&stored, Some(&current), Some(&object)).await;
                            return Ok(DeleteOutcome::Pending(self.present(kind, object).await?));
                        }
                        conflict => conflict,
                    }
                }
                DeletionPlan::Remove => self.remove(ctx, &stored, &current).await?,
            };
            match written {
                Written::Committed(object) => {
                    return Ok(DeleteOutcome::Gone(self.present(kind, object).await?));
                }
                Written::Conflict(current) => found = current,
            }
        }
    }

    /// Removes an object from the store, if it is still as it was, and gives back what it held.
    pub(super) async fn remove(
        &self,
        ctx: &RequestContext,
        stored: &Arc<Kind>,
        current: &Object,
    ) -> Result<Written, Status> {
        let revision = current.metadata.resource_version;
        let written = self.0.storage.delete(stored, &current.key(), revision, ctx.cause()).await?;
        if let Written::Committed(object) = &written {
            self.release_on_delete(stored, object);
            self.record_addresses(stored, Some(object), None).await;
        }
        Ok(written)
    }
}

/// A precondition on the revision holds for the object as this delete has changed it.
pub(super) fn follow_revision(options: &mut DeleteOptions, object: &Object) {
    if let Some(preconditions) = &mut options.preconditions
        && preconditions.resource_version.is_some()
    {
        preconditions.resource_version = Some(object.metadata.resource_version.to_string());
    }
}

fn plan(kind: &Kind, old: &Value, options: &DeleteOptions, now: Time) -> Result<DeletionPlan, Status> {
    check_preconditions(kind, old, options)?;
    if is_namespace(kind) {
        return Ok(plan_namespace(kind, old, options, now));
    }
    let requested = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let mut new = old.clone();
    if old["metadata"]["deletionTimestamp"].is_null() && kind.strategy.begin_deletion(&mut new, now) {
        return Ok(DeletionPlan::Update { new, then_remove: false });
    }
    let Some(grace_period_seconds) = begin_grace(kind, &mut new, requested, now) else {
        return Ok(DeletionPlan::Pending);
    };
    set_finalizers(kind, &mut new, options);
    let held = !texts(&new, "finalizers").is_empty();
    Ok(match grace_period_seconds {
        Grace::None if !held => DeletionPlan::Remove,
        Grace::None => {
            mark_as_deleting(&mut new, now);
            DeletionPlan::Update { new, then_remove: false }
        }
        Grace::Seconds(seconds) => DeletionPlan::Update { new, then_remove: !held && seconds == 0 },
    })
}

/// How an object is given time.
enum Grace {
    /// It is not: its kind knows no grace, or its time is over.
    None,
    /// It has been given so long.
    Seconds(i64),
}

/// `rest.BeforeDelete`: sets the timestamp and the grace period. None: a deletion with no longer grace is
/// pending.
fn begin_grace(kind: &Kind, new: &mut Value, requested: Option<i64>, now: Time) -> Option<Grace> {
    if new["metadata"]["deletionTimestamp"].is_null() {
        let Some(seconds) = kind.strategy.grace_period_seconds(new, requested) else {
            return Some(Grace::None);
        };
        set(new, "deletionTimestamp", rfc3339(now + TimeDelta::seconds(seconds)));
        set(new, "deletionGracePeriodSeconds", seconds);
        bump_generation(new);
        return Some(Grace::Seconds(seconds));
    }
    // Only shortening is possible now.
    let given = number(new, "deletionGracePeriodSeconds");
    if given == 0 {
        return Some(Grace::None);
    }
    let seconds = requested.filter(|seconds| *seconds < given)?;
    let ends = parse(text(new, "deletionTimestamp")).unwrap_or(now) - TimeDelta::seconds(given - seconds);
    set(new, "deletionTimestamp", rfc3339(ends));
    set(new, "deletionGracePeriodSeconds", seconds);
    Some(Grace::Seconds(seconds))
}

/// `markAsDeleting`: what waits for finalizers has no grace.
fn mark_as_deleting(new: &mut Value, now: Time) {
    let since = parse(text(new, "deletionTimestamp"));
    if since.is_none() {
        bump_generation(new);
    }
    if since.is_none_or(|since| since > now) {
        set(new, "deletionTimestamp", rfc3339(now));
    }
    set(new, "deletionGracePeriodSeconds", 0);
}

fn bump_generation(new: &mut Value) {
    let generation = number(new, "generation");
    if generation > 0 {
        set(new, "generation", generation + 1);
    }
}

/// `deletionFinalizersForGarbageCollection`: what becomes of the dependents.
fn set_finalizers(kind: &Kind, new: &mut Value, options: &DeleteOptions) {
    let policy = kind.strategy.default_garbage_collection();
    if policy == GarbageCollectionPolicy::Unsupported {
        return;
    }
    let before = texts(new, "finalizers");
    let has = |name: &str| before.iter().any(|finalizer| finalizer == name);
    let by_default = policy == GarbageCollectionPolicy::Orphan;
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(orphan), _) => (orphan, false),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some("Background")) => (false, false),
        _ if has(ORPHAN) => (true, false),
        _ if has(FOREGROUND) => (false, true),
        _ => (by_default, false),
    };
    let ours = |name: &String| name == ORPHAN || name == FOREGROUND;
    let mut after: Vec<String> = before.iter().filter(|name| !ours(name)).cloned().collect();
    after.extend(orphan.then(|| ORPHAN.to_owned()));
    after.extend(foreground.then(|| FOREGROUND.to_owned()));
    if after.is_empty() {
        unset(new, "finalizers");
    } else if after.len() != before.len() || !after.iter().all(|name| has(name)) {
        set(new, "finalizers", after);
    }
}

/// A namespace first becomes Terminating; it goes when its content is gone and `finalize` has said so.
fn plan_namespace(kind: &Kind, old: &Value, options: &DeleteOptions, now: Time) -> DeletionPlan {
    let has_content = old["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    if old["metadata"]["deletionTimestamp"].is_null() {
        let mut new = old.clone();
        set(&mut new, "deletionTimestamp", rfc3339(now));
        set_finalizers(kind, &mut new, options);
        new["status"]["phase"] = json!("Terminating");
        return DeletionPlan::Update { new, then_remove: false };
    }
    let held = has_content || !texts(old, "finalizers").is_empty();
    if held { DeletionPlan::Pending } else { DeletionPlan::Remove }
}

pub(super) fn check_preconditions(kind: &Kind, old: &Value, options: &DeleteOptions) -> Result<(), Status> {
    let Some(preconditions) = &options.preconditions else { return Ok(()) };
    // Named by its kind and not by its resource, as upstream does here.
    let resource = GroupResource::new(&kind.group_version.group, &kind.kind);
    let refuse = |why: String| Err(Status::conflict(&resource, text(old, "name"), &why));
    let (uid, revision) = (text(old, "uid"), text(old, "resourceVersion"));
    if let Some(wanted) = preconditions.uid.as_deref().filter(|wanted| *wanted != uid) {
        return refuse(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might \
             have been deleted and then recreated"
        ));
    }
    if let Some(wanted) = preconditions.resource_version.as_deref().filter(|wanted| *wanted != revision) {
        return refuse(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({revision}). The object might have been modified"
        ));
    }
    Ok(())
}

/// `ValidateDeleteOptions`.
fn validate_options(options: &DeleteOptions) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    if options.orphan_dependents.is_some() && options.propagation_policy.is_some() {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.invalid("propagationPolicy", &json!(options.propagation_policy), detail);
    }
    let policies = ["Foreground", "Background", "Orphan"];
    if let Some(policy) = options.propagation_policy.as_deref().filter(|policy| !policies.contains(policy)) {
        errors.not_supported(
            "propagationPolicy",
            &json!(policy),
            &["Foreground", "Background", "Orphan", "nil"],
        );
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&GroupVersion::new("meta.k8s.io", "v1").kind("DeleteOptions"), "", &errors))
}
