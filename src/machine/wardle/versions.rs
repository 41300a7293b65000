//! The kinds of the sample apiserver, and how each version writes what is kept of them.

use serde_json::{Map, Value, json};

use super::answers::GROUP;
use super::store::KeptSample;

/// The one that is stored first, as it prefers them.
pub(super) const VERSIONS: &[&str] = &["v1beta1", "v1alpha1"];

/// A kind that it serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WardleKind {
    pub(super) name: &'static str,
    pub(super) plural: &'static str,
    pub(super) singular: &'static str,
    pub(super) is_namespaced: bool,
}

/// Fischers are in the older version alone.
pub(super) const KINDS: &[WardleKind] = &[
    WardleKind { name: "Fischer", plural: "fischers", singular: "fischer", is_namespaced: false },
    WardleKind { name: "Flunder", plural: "flunders", singular: "flunder", is_namespaced: true },
];

impl WardleKind {
    pub(super) fn of(version: &str, plural: &str) -> Option<WardleKind> {
        let kind = KINDS.iter().find(|kind| kind.plural == plural).copied()?;
        let is_served = VERSIONS.contains(&version) && (version == "v1alpha1" || kind.name == "Flunder");
        is_served.then_some(kind)
    }
}

/// What one version calls a reference, and the type that says of what.
fn references(spec: &Value, version: &str) -> (Value, Value, Value) {
    if version != "v1alpha1" {
        return (
            spec["flunderReference"].clone(),
            spec["fischerReference"].clone(),
            spec["referenceType"].clone(),
        );
    }
    let reference = spec["reference"].clone();
    let is_empty = |value: &Value| value.as_str().is_none_or(str::is_empty);
    let kind = match &spec["referenceType"] {
        kind if is_empty(kind) && !is_empty(&reference) => json!("Flunder"),
        kind => kind.clone(),
    };
    if kind == "Fischer" { (Value::Null, reference, kind) } else { (reference, Value::Null, kind) }
}

/// What is kept of an object that somebody has written in a version.
pub(super) fn kept_of(version: &str, kind: WardleKind, written: &Value) -> Value {
    let mut kept = json!({"metadata": written["metadata"]});
    if kind.name == "Fischer" {
        kept["disallowedFlunders"] = written["disallowedFlunders"].clone();
        return kept;
    }
    let (flunder, fischer, of) = references(&written["spec"], version);
    kept["spec"] = json!({"flunderReference": flunder, "fischerReference": fischer, "referenceType": of});
    kept
}

/// What is wrong with the references of a Flunder.
pub(super) fn wrong(kept: &Value) -> Option<String> {
    let text = |name: &str| kept["spec"][name].as_str().unwrap_or_default();
    let (flunder, fischer) = (text("flunderReference"), text("fischerReference"));
    if !flunder.is_empty() && !fischer.is_empty() {
        let why = "cannot be set with flunderReference at the same time";
        return Some(format!("spec.fischerReference: Invalid value: {fischer:?}: {why}"));
    }
    match text("referenceType") {
        "" | "Flunder" | "Fischer" => None,
        other => Some(format!("spec.referenceType: Invalid value: {other:?}: must be Flunder or Fischer")),
    }
}

/// An object as a version writes it, without what is empty.
pub(super) fn of_version(version: &str, kind: WardleKind, kept: &KeptSample) -> Value {
    let mut object = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": kind.name,
        "metadata": kept.object["metadata"]});
    object["metadata"]["resourceVersion"] = kept.revision.to_string().into();
    if kind.name == "Fischer" {
        let names = &kept.object["disallowedFlunders"];
        if !names.is_null() {
            object["disallowedFlunders"] = names.clone();
        }
        return object;
    }
    let own = &kept.object["spec"];
    let mut spec = Map::new();
    let mut put = |name: &str, value: &Value| {
        if value.as_str().is_some_and(|text| !text.is_empty()) {
            spec.insert(name.to_owned(), value.clone());
        }
    };
    if version == "v1alpha1" {
        put(
            "reference",
            if own["referenceType"] == "Fischer" {
                &own["fischerReference"]
            } else {
                &own["flunderReference"]
            },
        );
    } else {
        put("flunderReference", &own["flunderReference"]);
        put("fischerReference", &own["fischerReference"]);
    }
    put("referenceType", &own["referenceType"]);
    object["spec"] = Value::Object(spec);
    object["status"] = json!({});
    object
}
