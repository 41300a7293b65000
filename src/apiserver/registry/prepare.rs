//! What a write may touch: each subresource changes its part and leaves the rest as it was
//! (the `PrepareFor...` of upstream's strategies, as far as it is the same for every kind).

use serde_json::{Value, json};

use super::metadata::{number, set};
use super::store::Part;
use apimachinery::feature_gates::FeatureGates;
use apimachinery::schema::{Schemas, zero_value};
use apimachinery::time::{Time, rfc3339};
use apis::core::pod::gates::POD_LEVEL_RESIZE;
use apis::gated::{GatedFields, drop_disabled};
use apis::kind::{Kind, Subresource};

/// Of a new object.
pub(super) fn for_create(kind: &Kind, gates: &FeatureGates, new: &mut Value) {
    drop_disabled(&kind.gated, gates, new, None);
    if kind.has(Subresource::Status) && !kind.strategy.keeps_status_on_create() {
        put(new, "status", (!kind.is_custom).then(|| empty_status(kind)));
    }
    if kind.counts_generation {
        set(new, "generation", 1);
    }
    kind.strategy.prepare_for_create(new);
}

/// What Go writes for a status that was never set.
fn empty_status(kind: &Kind) -> Value {
    let schema = Schemas::builtin().get(&kind.definition);
    schema.as_deref().and_then(|schema| schema.property("status")).map_or_else(|| json!({}), zero_value)
}

/// Of the new state of an object, whose metadata is already in order: its revision is the old one's.
pub(super) fn for_update(
    kind: &Kind,
    gates: &FeatureGates,
    part: Part,
    new: &mut Value,
    old: &Value,
    now: Time,
) {
    // Whatever else there is is the old one's after a write of the status.
    let is_written = |of: &&GatedFields| part != Part::Status || matches!(of.below, "" | "/status");
    drop_disabled(kind.gated.iter().filter(is_written), gates, new, Some(old));
    match part {
        Part::Main => {
            if kind.has(Subresource::Status) && new.get("status") != old.get("status") {
                put(new, "status", old.get("status").cloned());
            }
            kind.strategy.prepare_for_update(new, old);
        }
        Part::Status => status_only(kind, new, old),
        Part::Finalize => put(new, "status", old.get("status").cloned()),
        Part::EphemeralContainers => {
            let containers = new["spec"]["ephemeralContainers"].take();
            put_back(new, old);
            put(&mut new["spec"], "ephemeralContainers", Some(containers).filter(|list| !list.is_null()));
        }
        Part::Resize => resources_only(gates, new, old),
        Part::Approval => {
            let conditions = new["status"]["conditions"].take();
            put(new, "spec", old.get("spec").cloned());
            put(new, "status", old.get("status").cloned());
            put(&mut new["status"], "conditions", Some(conditions).filter(|list| !list.is_null()));
        }
    }
    if matches!(part, Part::Status | Part::Approval) && kind.has(Subresource::Approval) {
        stamp_conditions(new, old, now);
    }
    if kind.counts_generation && part != Part::Status && differs(kind, new, old) {
        set(new, "generation", number(old, "generation") + 1);
    }
}

/// `populateConditionTimestamps`: when a condition was last written, and when it became what it is.
fn stamp_conditions(new: &mut Value, old: &Value, now: Time) {
    let before = old["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let Some(conditions) = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else {
        return;
    };
    for condition in conditions {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = rfc3339(now).into();
        }
        let same =
            |other: &&Value| other["type"] == condition["type"] && other["status"] == condition["status"];
        let since = before.iter().find(same).map(|other| other["lastTransitionTime"].clone());
        if condition["lastTransitionTime"].is_null() {
            let since = since.filter(|since| !since.is_null());
            condition["lastTransitionTime"] = since.unwrap_or_else(|| rfc3339(now).into());
        }
    }
}

/// Everything but metadata and status as it was; of a custom resource, and of some others, the metadata, too.
fn status_only(kind: &Kind, new: &mut Value, old: &Value) {
    let owners = kind.is_custom.then(|| new["metadata"].get_mut("managedFields").map(Value::take));
    let is_written = |name: &str| name == "status" || (name == "metadata" && !kind.is_custom);
    if let (Some(new), Some(old)) = (new.as_object_mut(), old.as_object()) {
        new.retain(|name, _| is_written(name) || old.contains_key(name));
        for (name, value) in old.iter().filter(|(name, _)| !is_written(name)) {
            // Seldom another: who writes a status rarely touches the rest.
            if new.get(name) != Some(value) {
                new.insert(name.clone(), value.clone());
            }
        }
    }
    if let Some(owners) = owners {
        put(&mut new["metadata"], "managedFields", owners);
    } else if kind.status_leaves_metadata {
        for field in ["annotations", "finalizers", "labels", "ownerReferences"] {
            put(&mut new["metadata"], field, old["metadata"].get(field).cloned());
        }
    }
    kind.strategy.prepare_for_status_update(new, old);
}

/// Resources, and how a change of them is made: of containers, and where that may be of the whole pod
/// (`dropNonResizeUpdates`).
fn resources_only(gates: &FeatureGates, new: &mut Value, old: &Value) {
    let mut wanted = new["spec"].take();
    put_back(new, old);
    for list in ["containers", "initContainers"] {
        let wanted = wanted.get_mut(list).map(Value::take).unwrap_or_default();
        resources_of_containers(&mut new["spec"], list, wanted);
    }
    if gates.enabled(POD_LEVEL_RESIZE) {
        let resources = wanted.get("resources").cloned().filter(|resources| !resources.is_null());
        put(&mut new["spec"], "resources", resources);
    }
}

fn resources_of_containers(spec: &mut Value, list: &str, wanted: Value) {
    let names = |list: &Value| -> Vec<Value> {
        list.as_array().into_iter().flatten().map(|container| container["name"].clone()).collect()
    };
    if names(&spec[list]) != names(&wanted) {
        // Others than there are, or in another order: that stays, so that validation can refuse it.
        return put(spec, list, Some(wanted).filter(|list| !list.is_null()));
    }
    let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) else { return };
    for (container, wanted) in containers.iter_mut().zip(wanted.as_array().into_iter().flatten()) {
        for part in ["resources", "resizePolicy"] {
            put(container, part, wanted.get(part).cloned());
        }
    }
}

/// The object as it was; but whoever tried owns what it then did change.
fn put_back(new: &mut Value, old: &Value) {
    let owners = new["metadata"].get_mut("managedFields").map(Value::take);
    *new = old.clone();
    put(&mut new["metadata"], "managedFields", owners);
}

fn put(tree: &mut Value, member: &str, value: Option<Value>) {
    if !tree.is_object() && value.is_some() {
        *tree = json!({});
    }
    let Some(object) = tree.as_object_mut() else { return };
    match value {
        Some(value) => object.insert(member.into(), value),
        None => object.remove(member),
    };
}

/// Whether anything but metadata and status differs: what a generation counts.
fn differs(kind: &Kind, new: &Value, old: &Value) -> bool {
    fn counted(tree: &Value, skips_status: bool) -> impl Iterator<Item = (&String, &Value)> {
        let members = tree.as_object().into_iter().flatten();
        let is_counted = move |name: &str| name != "metadata" && !(name == "status" && skips_status);
        members.filter(move |(name, value)| is_counted(name) && !value.is_null())
    }
    // Of a custom kind without the subresource, status is a field like any other.
    let skips_status = !kind.is_custom || kind.has(Subresource::Status);
    !counted(new, skips_status).eq(counted(old, skips_status))
}
