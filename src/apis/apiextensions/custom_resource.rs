//! `CustomResource`: what the server knows of one version of a custom kind beyond its `Kind`, and the
//! strategy of its objects (`registry/customresource/strategy.go`).

use std::any::Any;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Value, json};

use super::structural::Structural;
use super::view::Scale;
use crate::finalizers::lacks_domain;
use crate::kind::{CustomKind, Kind};
use crate::strategy::Strategy;
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::gvk::GroupVersionKind;
use apimachinery::labels::Selector;
use apimachinery::object::{Malformed, encode_for_storage};
use apimachinery::schema::Schema;
use apimachinery::status::TooLargeToStore;
use golang::go_print::{go_print, go_type};
use golang::go_text::quote;

type Fill = fn(&Structural, &mut Value) -> Result<(), TooLargeToStore>;

/// One version of a custom kind. What is made of the schema is made when it is first needed.
pub struct CustomResource {
    /// As `stable.example.com/v1, Kind=CronTab`.
    pub gvk: GroupVersionKind,
    /// The name and uid of its definition.
    pub definition: (String, String),
    /// `openAPIV3Schema`, as JSON text: a tree would be ten times as large.
    pub schema: Arc<str>,
    /// Where a Scale is found.
    pub scale: Option<Scale>,
    /// Whether its definition is being deleted: nothing new may be created. Not a reason for another kind,
    /// because watches end with theirs.
    pub terminating: AtomicBool,
    /// The kind of the storage version, where that is another one.
    pub storage: Option<Arc<Kind>>,
    /// `spec.conversion.webhook`; None where versions differ in nothing but their name.
    pub webhook: Option<Arc<Value>>,
    /// The version of objects that do not say theirs: of the time before there was a webhook.
    pub oldest_version: String,
    /// What clients of a deprecated version are warned with.
    pub deprecation_warning: Option<String>,
    pub(super) structural: OnceLock<Structural>,
    pub(super) typed: OnceLock<Arc<Schema>>,
}

impl CustomKind for CustomResource {
    fn storage(&self) -> Option<&Arc<Kind>> {
        self.storage.as_ref()
    }

    fn defaulted(&self, stored: Bytes) -> Result<Bytes, Malformed> {
        if !self.structural().has_defaults() {
            return Ok(stored);
        }
        let Ok(before) = serde_json::from_slice::<Value>(&stored) else { return Ok(stored) };
        let mut object = before.clone();
        // One that they would make too large is as it was stored: a definition must not make objects that can
        // no longer be read.
        let is_whole = self.apply_defaults(&mut object).is_ok();
        if object == before || !is_whole { Ok(stored) } else { encode_for_storage(&object) }
    }
}

impl CustomResource {
    /// Of a kind, if it is a custom one.
    pub fn of(kind: &Kind) -> Option<&CustomResource> {
        let custom: &dyn Any = kind.custom.as_deref()?;
        custom.downcast_ref()
    }

    /// The custom part of a kind, to be kept; None of built-in ones.
    pub fn shared(kind: &Kind) -> Option<Arc<CustomResource>> {
        let custom: Arc<dyn Any + Send + Sync> = kind.custom.clone()?;
        custom.downcast().ok()
    }

    /// The schema as validation walks it.
    pub fn structural(&self) -> &Structural {
        self.structural.get_or_init(|| Structural::read(&self.openapi(), true))
    }

    /// The schema as server-side apply merges by it.
    pub fn typed(&self) -> Arc<Schema> {
        let read = || {
            let mut openapi = self.openapi();
            inherit_openness(&mut openapi, false);
            Arc::new(Schema::from_openapi(&openapi))
        };
        self.typed.get_or_init(read).clone()
    }

    /// The schema as it was declared.
    pub fn openapi(&self) -> Value {
        serde_json::from_str(&self.schema).unwrap_or_default()
    }

    /// Drops what the schema does not know, apart from type and metadata; returns the paths of what was
    /// dropped.
    ///
    /// # Errors
    /// An embedded resource whose type or metadata cannot be read.
    pub fn prune(&self, object: &mut Value) -> Result<Vec<String>, FieldErrors> {
        let structural = self.structural();
        let mut dropped = structural.prune(object);
        let mut embedded = vec![];
        structural.coerce_embedded("", object, &mut embedded)?;
        embedded.sort();
        dropped.append(&mut embedded);
        Ok(dropped)
    }

    /// Fills in defaults; those of metadata are the server's own.
    ///
    /// # Errors
    /// They would make it larger than anything that can be stored.
    pub fn apply_defaults(&self, object: &mut Value) -> Result<(), TooLargeToStore> {
        self.default_by(object, Structural::apply_defaults)
    }

    /// Fills in defaults, but leaves nulls for validation to see.
    ///
    /// # Errors
    /// As [`CustomResource::apply_defaults`].
    pub fn fill_defaults(&self, object: &mut Value) -> Result<(), TooLargeToStore> {
        self.default_by(object, Structural::fill_defaults)
    }

    fn default_by(&self, object: &mut Value, fill: Fill) -> Result<(), TooLargeToStore> {
        let metadata = object.get_mut("metadata").map(Value::take);
        let filled = fill(self.structural(), object);
        if let (Some(metadata), Some(map)) = (metadata, object.as_object_mut()) {
            map.insert("metadata".into(), metadata);
        }
        filled
    }

    /// The object with its type, as schemas see it.
    fn with_type(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let version = &self.gvk.group_version;
        object["apiVersion"] = json!(version.to_string());
        object["kind"] = json!(&*self.gvk.kind);
        object
    }

    fn validate_object(&self, new: &Value, old: Option<&Value>) -> FieldErrors {
        let mut errors = FieldErrors::default();
        let (new, old) = (self.with_type(new), old.map(|old| self.with_type(old)));
        self.structural().validate_value("", &new, old.as_ref(), &mut errors);
        once(&mut errors);
        if let Some(scale) = &self.scale {
            validate_replicas(&new, &scale.spec_replicas_path, &mut errors);
        }
        self.validate_scale_status(&new, &mut errors);
        self.validate_invariants(&new, old.as_ref(), errors)
    }

    /// Only the status is looked at, from where it stands.
    fn validate_status(&self, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = FieldErrors::default();
        let (new, old) = (self.with_type(new), self.with_type(old));
        if let (Some(schema), Some(status)) = (self.structural().member("status"), new.get("status")) {
            schema.validate_part("status", status, old.get("status"), &mut errors);
            once(&mut errors);
        }
        self.validate_scale_status(&new, &mut errors);
        self.validate_invariants(&new, Some(&old), errors)
    }

    /// What is wrong with what did not change is overlooked, and told.
    fn kept_mistakes(&self, new: &Value, old: &Value) -> Vec<String> {
        let structural = self.structural();
        if !structural.has_rules() {
            return vec![];
        }
        structural.kept_mistakes(&self.with_type(new), &self.with_type(old))
    }

    fn validate_invariants(&self, new: &Value, old: Option<&Value>, mut errors: FieldErrors) -> FieldErrors {
        let structural = self.structural();
        structural.validate_embedded("", new, &mut errors);
        let mut before = FieldErrors::default();
        if let Some(old) = old {
            structural.validate_lists("", old, &mut before);
        }
        if before.is_empty() {
            structural.validate_lists("", new, &mut errors);
        }
        if !structural.has_rules() {
            return errors;
        }
        // The registry says what is wrong with a name; that there is none blocks rules, too.
        let has_name = old.is_some() || new["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty());
        if !has_name || errors.0.iter().any(|error| blocks(error.error_type)) {
            let detail = "some validation rules were not checked because the object was invalid; correct the \
                          existing errors to complete validation";
            errors.invalid("<nil>", &Value::Null, detail);
        } else {
            structural.validate_rules(new, old, &mut errors);
        }
        errors
    }

    fn validate_scale_status(&self, object: &Value, errors: &mut FieldErrors) {
        let Some(scale) = &self.scale else { return };
        validate_replicas(object, &scale.status_replicas_path, errors);
        let selector = scale.label_selector_path.as_deref().filter(|path| !path.is_empty());
        if let Some(path) = selector
            && let Some(text) = at_path(object, path).and_then(Value::as_str)
            && let Err(error) = Selector::parse(text)
        {
            errors.invalid(path, &json!(text), error);
        }
    }
}

/// What several parts of a schema find is said once.
fn once(errors: &mut FieldErrors) {
    let mut said = HashSet::with_capacity(errors.0.len());
    errors.0.retain(|error| said.insert(error.clone()));
}

/// Below a schema that keeps unknown fields, all do, as far as ownership goes (`schemaconv`).
fn inherit_openness(schema: &mut Value, above: bool) {
    const KEEPS: &str = "x-kubernetes-preserve-unknown-fields";
    let Value::Object(map) = schema else { return };
    let keeps = above || map.get(KEEPS) == Some(&Value::Bool(true));
    if keeps {
        map.insert(KEEPS.into(), true.into());
    }
    for member in ["items", "additionalProperties"] {
        map.get_mut(member).into_iter().for_each(|inner| inherit_openness(inner, keeps));
    }
    let properties = map.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, inner)| inherit_openness(inner, keeps));
}

/// A number of replicas where a scale subresource looks for one (`unstructured.NestedInt64`).
fn validate_replicas(object: &Value, path: &str, errors: &mut FieldErrors) {
    let mut place = object;
    for name in path.trim_start_matches('.').split('.') {
        let Value::Object(map) = place else {
            return refuse_type(place, path, "map[string]interface{}", errors);
        };
        match map.get(name) {
            Some(value) => place = value,
            None => return,
        }
    }
    match place.as_i64() {
        None => refuse_type(place, path, "int64", errors),
        Some(replicas) if replicas < 0 => {
            errors.invalid(path, &json!(replicas), "should be a non-negative integer");
        }
        Some(replicas) if replicas > i64::from(i32::MAX) => {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            errors.invalid(path, &json!(replicas), detail);
        }
        Some(_) => {}
    }
}

fn refuse_type(value: &Value, path: &str, wanted: &str, errors: &mut FieldErrors) {
    let (shown, given) = (go_print(value), go_type(value));
    let detail = format!("{path} accessor error: {shown} is of the type {given}, expected {wanted}");
    errors.invalid(path, &json!(0), detail);
}

/// Errors behind which rules would only say the same again (`hasBlockingErr`).
fn blocks(error: ErrorType) -> bool {
    use ErrorType::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    matches!(error, NotSupported | Required | TooLong | TooMany | TypeInvalid)
}

/// The value at a simple path, as `.spec.replicas`.
pub fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.trim_start_matches('.').split('.');
    names.try_fold(object, |value, name| value.get(name))
}

/// Sets the value at a simple path, making objects on the way.
pub fn set_at_path(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for name in path.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value;
}

/// `validateKubeFinalizerName`, of the finalizers that are new.
fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let finalizers = |object: &Value| -> BTreeSet<String> {
        let names = object["metadata"]["finalizers"].as_array();
        names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let before = old.map(finalizers).unwrap_or_default();
    let warn = |name: &String| {
        let including = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {}: prefer a domain-qualified finalizer name{including} to avoid accidental \
             conflicts with other finalizer writers",
            quote(name)
        )
    };
    finalizers(new).difference(&before).filter(|name| lacks_domain(name)).map(warn).collect()
}

/// The strategy of the objects of one version.
pub(super) struct CustomStrategy(pub(super) Arc<CustomResource>);

impl Strategy for CustomStrategy {
    fn validate(&self, new: &Value) -> FieldErrors {
        self.0.validate_object(new, None)
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = finalizer_warnings(new, old);
        warnings.extend(old.map(|old| self.0.kept_mistakes(new, old)).unwrap_or_default());
        warnings
    }

    fn validate_update(&self, new: &Value, old: &Value) -> FieldErrors {
        self.0.validate_object(new, Some(old))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> FieldErrors {
        self.0.validate_status(new, old)
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn canonicalize(&self, new: &mut Value) {
        // What would be too large for them is too large to be stored, which is found out there.
        let _ = self.0.apply_defaults(new);
    }
}
