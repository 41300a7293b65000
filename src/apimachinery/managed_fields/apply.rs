//! Server-side apply: a configuration, its manager, and the object that comes of it
//! (`managedfields/internal`: version check, last-applied annotation, skip of what was never applied).

use serde_json::Value;

use super::atom::SchemaType;
use super::compare::compare;
use super::field_set::field_set;
use super::managed::{Managed, ManagedFieldsOperation, ManagerEntry};
use super::manager::{BEFORE_FIRST_APPLY, FieldManager, put_managed_fields, strip, take_managed_fields};
use super::set::Set;
use super::updater::ApplyRefusal;
use super::validate::{validate, validate_live};
use crate::status::Status;

/// What client-side apply keeps its configuration in.
pub const LAST_APPLIED_CONFIG: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// All annotations together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;
/// Only this manager takes over from client-side apply.
const KUBECTL: &str = "kubectl";

/// Why an apply was refused: the Status that the client gets.
pub type ApplyError = Status;

/// Lays `config` over `live` for the manager of `fields`; without a live object over `empty`.
///
/// # Errors
/// 409 when others own what it would change, without `force`; 400 and 500 for what cannot be applied.
pub fn apply(
    fields: &FieldManager,
    live: Option<&Value>,
    empty: impl FnOnce() -> Value,
    config: &Value,
    force: bool,
) -> Result<Value, ApplyError> {
    let empty = &empty();
    check_config(fields, config)?;
    let mut live = live.unwrap_or(empty).clone();
    // The server's trees have no type, the configuration has: that is no change.
    for field in ["apiVersion", "kind"] {
        live[field] = config[field].clone();
    }
    let managed = Managed::decode(take_managed_fields(&mut live))
        .map_err(|error| unclassified(format!("failed to decode managed fields: {error}")))?;
    let name = name_of(fields, &live);
    let typed = match fields.updater.kind {
        kind @ SchemaType::Custom(_) => validate_live(kind, &live),
        _ => Ok(()),
    };
    let managed = match (managed.0.is_empty(), &typed) {
        (true, Err(error)) => {
            return Err(unclassified(format!(
                "failed to create manager for existing fields: failed to convert new object ({name}) to smd \
                 typed: {error}"
            )));
        }
        (true, Ok(())) => fields.updated(empty, &live, managed, BEFORE_FIRST_APPLY),
        (false, _) => managed,
    };
    validate(fields.updater.kind, config).map_err(|error| {
        unclassified(format!("failed to create typed patch object ({}): {error}", name_of(fields, config)))
    })?;
    typed.map_err(|error| unclassified(format!("failed to create typed live object ({name}): {error}")))?;
    let (object, managed) = with_last_applied(fields, &live, config, managed, force)?;
    let mut object = object.unwrap_or(live);
    sync_last_applied(fields, &mut object, config);
    put_managed_fields(&mut object, managed);
    Ok(object)
}

/// The kind of the configuration is the path's, and it says nothing of owners.
fn check_config(fields: &FieldManager, config: &Value) -> Result<(), Status> {
    let text = |field: &str| config[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let given = format!("{group}/{version}, Kind={}", text("kind"));
    if given != fields.gvk {
        return Err(Status::bad_request(format!("invalid object type: {given}")));
    }
    if !config["metadata"]["managedFields"].is_null() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// One attempt; and where the only conflicts are with what kubectl itself applied from the client's side,
/// another that is forced.
fn with_last_applied(
    fields: &FieldManager,
    live: &Value,
    config: &Value,
    managed: Managed,
    force: bool,
) -> Result<(Option<Value>, Managed), Status> {
    let first = once(fields, live, config, managed.clone(), force);
    let conflicts = match first {
        Ok(done) => return Ok(done),
        Err(ApplyRefusal::Other(text)) => return Err(unclassified(text)),
        Err(ApplyRefusal::Conflicts(conflicts)) => conflicts,
    };
    let allowed = (fields.manager == KUBECTL).then(|| allowed_conflicts(fields, live)).flatten();
    let Some(allowed) = allowed else { return Err(conflicts.to_status()) };
    if !conflicts.to_set().difference(&allowed).is_empty() {
        return Err(conflicts.without(&allowed).to_status());
    }
    once(fields, live, config, managed, true).map_err(|refusal| match refusal {
        ApplyRefusal::Conflicts(conflicts) => conflicts.to_status(),
        ApplyRefusal::Other(text) => unclassified(text),
    })
}

fn once(
    fields: &FieldManager,
    live: &Value,
    config: &Value,
    mut managed: Managed,
    force: bool,
) -> Result<(Option<Value>, Managed), ApplyRefusal> {
    let id = fields.id(fields.manager, ManagedFieldsOperation::Apply);
    let applied = fields.updater.apply(live, config, &mut managed, &id, force)?;
    strip(&mut managed, &id);
    if applied.is_some()
        && let Some(at) = managed.position(&id)
    {
        let set = managed.0[at].set().into_owned();
        managed.0[at] = ManagerEntry::new(id, Some(fields.now.to_owned()), set);
    }
    Ok((applied, managed))
}

/// What the last-applied annotation says and is still so: client-side apply owned it.
fn allowed_conflicts(fields: &FieldManager, live: &Value) -> Option<Set> {
    let annotation = live["metadata"]["annotations"][LAST_APPLIED_CONFIG].as_str()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last["apiVersion"].as_str() != Some(fields.updater.api_version) {
        return None;
    }
    let kind = fields.updater.kind;
    validate(kind, live).ok()?;
    validate(kind, &last).ok()?;
    let comparison = compare(kind, &last, live);
    let set = field_set(kind, &last).difference(&comparison.modified);
    Some(set.difference(&comparison.added).difference(&comparison.removed))
}

/// Keeps the annotation in step, so that a return to client-side apply works.
fn sync_last_applied(fields: &FieldManager, object: &mut Value, config: &Value) {
    let has_annotation =
        object["metadata"]["annotations"][LAST_APPLIED_CONFIG].as_str().is_some_and(|text| !text.is_empty());
    if fields.manager != KUBECTL || !has_annotation {
        return;
    }
    let mut config = config.clone();
    let annotations = config.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED_CONFIG);
    }
    let mut text = format!("{config}\n");
    if text.len() > MAX_ANNOTATIONS_BYTES {
        text.clear();
    }
    object["metadata"]["annotations"][LAST_APPLIED_CONFIG] = text.into();
}

/// `default/web; apps/v1, Kind=Deployment`.
fn name_of(fields: &FieldManager, config: &Value) -> String {
    let text = |field: &str| config["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}; {}", text("namespace"), text("name"), fields.gvk)
}

/// 500 without a reason: what upstream's handler does not classify.
fn unclassified(text: String) -> Status {
    Status::failure(500, "", text)
}
