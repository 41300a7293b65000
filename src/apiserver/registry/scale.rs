//! `scale` (`ScaleREST` of each workload): a workload as an `autoscaling/v1` Scale.

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::conversion::object_of;
use super::metadata::{member_mut, resource_version, set, text, unset};
use super::store::Part;
use super::{Registry, UpdatedObjectInfo, Validating};
use crate::request::RequestContext;
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::{GroupResource, GroupVersion};
use apimachinery::labels::{LabelSelector, Selector};
use apimachinery::managed_fields::ScaleHandler;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::apiextensions::custom_resource::{CustomResource, at_path, set_at_path};
use apis::apiextensions::view::Scale;
use apis::kind::{Builtin, Kind};
use apis::scale::say_selector;

impl Registry {
    /// A workload as a Scale.
    ///
    /// # Errors
    /// 404.
    pub async fn get_scale(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Object>, Status> {
        let object = self.get(kind, namespace, name, None).await?;
        as_object(kind, &scaled_part(kind, &object), object.metadata.resource_version)
    }

    /// Changes the replicas of a workload; `change` gets and returns a Scale, and so does `validating`.
    ///
    /// # Errors
    /// As [`Registry::update`].
    pub async fn update_scale(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
        change: &dyn UpdatedObjectInfo,
        validating: &dyn Validating,
    ) -> Result<Arc<Object>, Status> {
        let change = ScaleChange { kind, name, change };
        let validating = ScaleValidating(kind, validating);
        let updated = self.update(ctx, kind, namespace, name, Part::Main, &change, &validating, false).await;
        let (object, _) = updated?;
        as_object(kind, &scaled_part(kind, &object), object.metadata.resource_version)
    }
}

/// What a Scale tells of a workload, read past all the rest; autoscalers ask for it over and over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ScaledWorkload {
    metadata: ScaledMetadata,
    spec: ScaledSpec,
    status: ScaledStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScaledMetadata {
    creation_timestamp: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScaledSpec {
    replicas: Value,
    selector: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScaledStatus {
    replicas: Value,
}

/// The tree of a workload, of one that is not custom without what [`from_workload`] does not look at.
fn scaled_part(kind: &Kind, object: &Object) -> Value {
    if kind.is_custom {
        return object.to_value();
    }
    let workload: ScaledWorkload = serde_json::from_slice(&object.stored()).unwrap_or_default();
    let (metadata, ScaledSpec { replicas, selector }) = (&object.metadata, workload.spec);
    json!({
        "metadata": {
            "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid,
            "resourceVersion": metadata.resource_version.to_string(),
            "creationTimestamp": workload.metadata.creation_timestamp,
        },
        "spec": {"replicas": replicas, "selector": selector},
        "status": {"replicas": workload.status.replicas},
    })
}

static SCALES: Builtin = LazyLock::new(|| {
    Kind::builtin("autoscaling", "v1", "Scale", "scales", "io.k8s.api.autoscaling.v1").into()
});

/// Workload to scale, change, and back (`scaleUpdatedObjectInfo`).
struct ScaleChange<'a> {
    kind: &'a Kind,
    name: &'a str,
    change: &'a dyn UpdatedObjectInfo,
}

impl UpdatedObjectInfo for ScaleChange<'_> {
    fn change<'a>(&'a self, current: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let resource = self.kind.group_resource();
            let resource = GroupResource::new(&resource.group, &format!("{}/scale", resource.resource));
            let Some(workload) = current else { return Err(Status::not_found(&resource, self.name)) };
            let version = self.kind.api_version();
            let path = scale_paths(self.kind).map_or("spec.replicas", |paths| &*paths.spec_replicas_path);
            let path = path.trim_start_matches('.').to_owned();
            let owners = ScaleHandler {
                parent: workload["metadata"].get("managedFields"),
                api_version: &version,
                replicas_path: &|_| Some(path.clone()),
            };
            let mut current = from_workload(self.kind, workload)?;
            if let Some(owners) = owners.to_subresource() {
                set(&mut current, "managedFields", owners);
            }
            let scale = self.change.change(Some(&current)).await?;
            if !self.kind.is_custom {
                validate(&scale, self.name)?;
            }
            let (wanted, uid) = (text(&scale, "uid"), text(workload, "uid"));
            if !wanted.is_empty() && wanted != uid {
                let why =
                    format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
                return Err(Status::conflict(&resource, self.name, &why));
            }
            let mut new = workload.clone();
            let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
            match scale_paths(self.kind) {
                Some(paths) => set_at_path(&mut new, &paths.spec_replicas_path, replicas.into()),
                None => drop(member_mut(&mut new, "spec").insert("replicas".into(), replicas.into())),
            }
            match owners.to_parent(scale["metadata"].get("managedFields")) {
                Some(owners) => set(&mut new, "managedFields", owners),
                None => unset(&mut new, "managedFields"),
            }
            match resource_version(&scale)? {
                // The one that was read: who names none changes whatever is there.
                0 => {}
                revision => set(&mut new, "resourceVersion", revision.to_string()),
            }
            Ok(new)
        })
    }
}

struct ScaleValidating<'a>(&'a Kind, &'a dyn Validating);

impl Validating for ScaleValidating<'_> {
    fn validate<'a>(
        &'a self,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let of = |workload| from_workload(self.0, workload);
            let (new, old) = (new.map(of).transpose()?, old.map(of).transpose()?);
            self.1.validate(new.as_ref(), old.as_ref()).await
        })
    }
}

/// `scaleFromDeployment` and its siblings.
fn from_workload(kind: &Kind, workload: &Value) -> Result<Value, Status> {
    let mut scale = json!({"metadata": {}});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let value = &workload["metadata"][field];
        if !value.is_null() {
            set(&mut scale, field, value.clone());
        }
    }
    if let Some(paths) = scale_paths(kind) {
        return from_custom(paths, workload, scale);
    }
    let replicas = |part: &str| workload[part]["replicas"].as_i64().unwrap_or_default();
    scale["spec"] = if replicas("spec") == 0 { json!({}) } else { json!({"replicas": replicas("spec")}) };
    scale["status"] = json!({"replicas": replicas("status")});
    let selector = selector_text(&workload["spec"]["selector"]).map_err(Status::bad_request)?;
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    say_selector(kind, &mut scale["status"]);
    Ok(scale)
}

/// Where a custom kind has its replicas.
fn scale_paths(kind: &Kind) -> Option<&Scale> {
    CustomResource::of(kind)?.scale.as_ref()
}

/// `scaleFromCustomResource`
fn from_custom(paths: &Scale, object: &Value, mut scale: Value) -> Result<Value, Status> {
    let number = |path: &str| at_path(object, path).and_then(Value::as_i64);
    let path = &paths.spec_replicas_path;
    let Some(replicas) = number(path) else {
        return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
    };
    scale["spec"] = if replicas == 0 { json!({}) } else { json!({ "replicas": replicas }) };
    scale["status"] = json!({"replicas": number(&paths.status_replicas_path).unwrap_or_default()});
    let selector = paths.label_selector_path.as_deref().and_then(|path| at_path(object, path));
    if let Some(selector) = selector.and_then(Value::as_str).filter(|text| !text.is_empty()) {
        scale["status"]["selector"] = json!(selector);
    }
    Ok(scale)
}

/// A ReplicationController's selector is a plain map.
fn selector_text(selector: &Value) -> Result<String, String> {
    let is_plain = selector.as_object().is_some_and(|map| map.values().all(Value::is_string));
    if is_plain {
        let labels = serde_json::from_value(selector.clone()).map_err(|error| error.to_string())?;
        return Ok(Selector::from_labels(&labels).to_string());
    }
    let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap_or_default();
    Ok(selector.selector()?.to_string())
}

fn as_object(of: &Kind, workload: &Value, revision: u64) -> Result<Arc<Object>, Status> {
    object_of(&SCALES, &from_workload(of, workload)?, revision)
}

/// `ValidateScale`.
fn validate(scale: &Value, name: &str) -> Result<(), Status> {
    let replicas = &scale["spec"]["replicas"];
    if replicas.as_i64().unwrap_or_default() >= 0 {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    Err(Status::invalid(&GroupVersion::new("autoscaling", "v1").kind("Scale"), name, &errors))
}
