//! PersistentVolumeClaim: the wish for a PersistentVolume.

use std::sync::LazyLock;

use crate::gated::Gated;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{access_modes, name, or, quantity};
use crate::quota::claims::CLAIMS;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::labels::label_selector;
use crate::validation::{Field, IMMUTABLE, difference, equal, resources};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain, qualified_name};
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

const GATES: &[Gated] =
    &[Gated::new("CrossNamespaceVolumeDataSource", "spec.dataSourceRef").with("namespace")];

/// `persistentvolumeclaims`
pub static PERSISTENT_VOLUME_CLAIMS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "io.k8s.api.core.v1")
        .short(&["pvc"])
        .with(&[Subresource::Status])
        .gated("", GATES)
        .returns_deleted()
        .measured(&CLAIMS)
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules {
            prepare_for_create,
            prepare_for_update: |new, _| data_source(new),
            validate: |claim, errors| validate_spec(&Field::of(claim, "spec"), errors),
            validate_update,
            validate_status_update: |new, _, errors| validate_status_update(new, errors),
            ..RULES
        })
        .into()
});

const SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeClaimSpec";
const STATUS: &str = "io.k8s.api.core.v1.PersistentVolumeClaimStatus";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Status", "string", STATUS, "phase"),
        Column::of("Volume", "string", SPEC, "volumeName"),
        Column::of("Capacity", "string", STATUS, "capacity"),
        Column::of("Access Modes", "string", STATUS, "accessModes"),
        Column::new("StorageClass", "string", "StorageClass of the pvc"),
        Column::new("VolumeAttributesClass", "string", "VolumeAttributesClass of the pvc"),
        Column::age(),
        Column::of("VolumeMode", "string", SPEC, "volumeMode").wide(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let volume = text(&tree, "spec.volumeName");
    let (capacity, modes) = match volume {
        "" => ("", String::new()),
        _ => (quantity(&tree, "status.capacity.storage"), access_modes(&tree, "status.accessModes")),
    };
    let phase = if object.is_deleting() { "Terminating" } else { text(&tree, "status.phase") };
    let class = or(
        annotation(&tree, "volume.beta.kubernetes.io/storage-class"),
        text(&tree, "spec.storageClassName"),
    );
    vec![
        name(object),
        json!(phase),
        json!(volume),
        json!(capacity),
        modes.into(),
        json!(class),
        json!(at(&tree, "spec.volumeAttributesClassName").as_str().unwrap_or("<unset>")),
        age(object, now),
        json!(at(&tree, "spec.volumeMode").as_str().unwrap_or("<unset>")),
    ]
}

/// `SetObjectDefaults_PersistentVolumeClaim`; also of the templates in StatefulSets.
pub fn defaults(claim: &mut Value) {
    set_if_zero(claim, "status.phase", "Pending");
    default_spec(claim);
}

/// `SetDefaults_PersistentVolumeClaimSpec`; also of ephemeral volumes.
pub fn default_spec(claim: &mut Value) {
    set_if_unset(claim, "spec.volumeMode", "Filesystem");
}

fn prepare_for_create(claim: &mut Value) {
    set(claim, "status", json!({"phase": "Pending"}));
    data_source(claim);
}

/// `dataSource` is the older form of `dataSourceRef`; each is filled from the other, unless the latter
/// reaches into another namespace.
fn data_source(claim: &mut Value) {
    let (old, new) = (at(claim, "spec.dataSource").clone(), at(claim, "spec.dataSourceRef").clone());
    if new.is_null() && !old.is_null() {
        set(claim, "spec.dataSourceRef", old);
    } else if old.is_null() && !new.is_null() && text(&new, "namespace").is_empty() {
        set(claim, "spec.dataSource", new);
        remove(claim, "spec.dataSource.namespace");
    }
}

const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// `ValidatePersistentVolumeClaimSpec`; also of ephemeral volumes.
pub fn validate_spec(spec: &Field, errors: &mut FieldErrors) {
    if spec.child("accessModes").is_zero() {
        spec.child("accessModes").required("at least 1 access mode is required", errors);
    }
    label_selector(&spec.child("selector"), errors);
    access_modes_of(spec, errors);
    requested_storage(spec, errors);
    spec.child("storageClassName").follows(dns1123_subdomain, errors);
    spec.child("volumeMode").one_of_if_set(&["Block", "Filesystem"], errors);
    for source in ["dataSource", "dataSourceRef"].map(|name| spec.child(name)) {
        if source.is_set() {
            data_source_of(&source, errors);
        }
    }
    data_sources_agree(spec, errors);
    spec.child("volumeAttributesClassName").follows(dns1123_subdomain, errors);
}

/// The access modes of a claim or a volume.
pub fn access_modes_of(spec: &Field, errors: &mut FieldErrors) {
    let modes = spec.child("accessModes");
    for mode in modes.items().iter().filter(|mode| !MODES.contains(&mode.text())) {
        mode.shown_as(modes.path.as_str()).not_supported(MODES, errors);
    }
    let is_single = |mode: &Field| mode.text() == "ReadWriteOncePod";
    let (single, other): (Vec<Field>, Vec<Field>) = modes.items().into_iter().partition(is_single);
    if !single.is_empty() && other.iter().any(|mode| MODES.contains(&mode.text())) {
        modes.forbidden("may not use ReadWriteOncePod with other access modes", errors);
    }
}

fn requested_storage(spec: &Field, errors: &mut FieldErrors) {
    let storage =
        spec.child("resources.requests.storage").shown_as(format!("{}.resources[storage]", spec.path));
    if !storage.is_set() {
        storage.required("", errors);
    } else if resources::quantity(&storage).sign() <= 0 {
        storage.invalid("must be greater than zero", errors);
    }
}

fn data_source_of(source: &Field, errors: &mut FieldErrors) {
    source.child("name").require(errors);
    source.child("kind").require(errors);
    let (group, kind) = (source.child("apiGroup"), source.child("kind"));
    if group.is_zero() && kind.text() != "PersistentVolumeClaim" {
        let words = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        kind.shown_as(source.path.as_str()).invalid(words, errors);
    }
    group.follows(dns1123_subdomain, errors);
    source.child("namespace").follows(dns1123_label, errors);
}

/// Both say the same, unless the source is in another namespace: then only the newer can.
fn data_sources_agree(spec: &Field, errors: &mut FieldErrors) {
    let (old, new) = (spec.child("dataSource"), spec.child("dataSourceRef"));
    let parts = |source: &Field| ["apiGroup", "kind", "name"].map(|name| source.child(name).value.clone());
    if !old.is_set() {
        return;
    }
    let words = if !new.child("namespace").is_zero() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if new.is_set() && parts(&old) != parts(&new) {
        "must match dataSourceRef"
    } else {
        return;
    };
    // Upstream shows the path of the field, of which nothing can be shown.
    errors.invalid(spec.path.as_str(), &json!({}), words);
}

/// What of a claim's status says how far its growth is, and of which resources.
fn validate_status_update(new: &Value, errors: &mut FieldErrors) {
    const STATES: &[&str] = &[
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    if count(new, "spec.accessModes") == 0 {
        errors.required("Spec.accessModes", "");
    }
    let status = Field::of(new, "status");
    for (_, amount) in status.child("capacity").members() {
        not_negative(&amount, errors);
    }
    for (name, state) in status.child("allocatedResourceStatuses").members() {
        resource_key(name, "status.allocatedResourceStatuses", errors);
        if !STATES.contains(&state.text()) {
            errors.not_supported("status.allocatedResourceStatuses", &json!(name), STATES);
        }
    }
    for (name, amount) in status.child("allocatedResources").members() {
        if resource_key(name, "status.allocatedResources", errors) {
            not_negative(&amount, errors);
        }
    }
}

fn not_negative(amount: &Field, errors: &mut FieldErrors) {
    let whole = resources::quantity(amount).value();
    if whole < 0 {
        errors.invalid(amount.path.as_str(), &json!(whole), "must be a valid resource quantity");
    }
}

/// Of the resources without a domain, a claim can only ask for storage.
fn resource_key(name: &str, path: &str, errors: &mut FieldErrors) -> bool {
    let before = errors.0.len();
    for detail in qualified_name(name) {
        errors.invalid(path, &json!(name), detail);
    }
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if errors.0.len() == before && is_native && name != "storage" {
        errors.not_supported(path, &json!(name), &["storage"]);
    }
    errors.0.len() == before
}

/// A claim is bound once and for all; afterwards it may only grow.
fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let mut allowed = new.clone();
    if text(old, "spec.volumeName").is_empty() {
        remove(&mut allowed, "spec.volumeName");
    }
    storage_class_upgrade(new, old, &mut allowed, errors);
    if text(new, "status.phase") == "Bound" {
        const STORAGE: &str = "spec.resources.requests.storage";
        const CLASS: &str = "spec.volumeAttributesClassName";
        if is_set(new, STORAGE) {
            set(&mut allowed, STORAGE, at(old, STORAGE).clone());
        }
        set(&mut allowed, CLASS, at(old, CLASS).clone());
    }
    if !equal(&allowed["spec"], &old["spec"]) {
        let words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
            bound claims";
        let difference = difference(&old["spec"], &allowed["spec"]);
        Field::of(new, "spec").forbidden(format!("{words}\n{difference}"), errors);
    }
    let size = |claim, path| resources::quantity(&Field::of(claim, path));
    let wanted = Field::of(new, "spec.resources.requests.storage");
    let has_shrunk = resources::quantity(&wanted) < size(old, "spec.resources.requests.storage");
    if has_shrunk && resources::quantity(&wanted) <= size(old, "status.capacity.storage") {
        wanted.forbidden("field can not be less than status.capacity", errors);
    }
    let mode = Field::of(new, "spec.volumeMode").shown_as("volumeMode");
    mode.immutable(&Field::of(old, "spec.volumeMode"), errors);
    let class = Field::of(new, "spec.volumeAttributesClassName");
    let has_changed = !equal(class.value, at(old, "spec.volumeAttributesClassName"));
    if has_changed && class.is_zero() && is_set(old, "status.currentVolumeAttributesClassName") {
        let to = if class.is_set() { "empty string" } else { "nil" };
        let when = "is forbidden when status.currentVolumeAttributesClassName is not nil";
        class.forbidden(format!("update to {to} {when}"), errors);
    }
}

/// A claim without a class may get one; the annotation that once named it stays, or becomes the field.
fn storage_class_upgrade(new: &Value, old: &Value, allowed: &mut Value, errors: &mut FieldErrors) {
    const BETA: &str = "volume.beta.kubernetes.io/storage-class";
    let of = |claim: &Value| {
        at(claim, "metadata.annotations").get(BETA).and_then(Value::as_str).map(str::to_owned)
    };
    let (is, was, class) = (of(new), of(old), at(new, "spec.storageClassName").as_str());
    let may_be_set =
        !is_set(old, "spec.storageClassName") && was.as_deref().is_none_or(|was| class == Some(was));
    if may_be_set {
        remove(allowed, "spec.storageClassName");
    }
    let becomes_field = may_be_set && was.is_some() && class.is_some() && is.is_none();
    if is != was && !becomes_field {
        let path = format!("metadata.annotations.{BETA}");
        errors.invalid(path, &json!(is.unwrap_or_default()), IMMUTABLE);
    }
}
