//! `pods/binding` (`pkg/registry/core/pod/storage.BindingREST`): the scheduler's decision.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conversion::object_of;
use super::metadata::{member_mut, metadata_mut, text};
use super::{Registry, Validating};
use crate::request::RequestContext;
use crate::storage::Written;
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::{GroupResource, GroupVersion};
use apimachinery::object::{Object, object_key};
use apimachinery::status::Status;
use apimachinery::time::rfc3339;

impl Registry {
    /// Assigns a pod to a node. `binding` is a `v1` Binding; answered with a success status by the endpoint.
    ///
    /// # Errors
    /// 404; 409 when the pod is bound or being deleted; 422.
    pub async fn bind(
        &self,
        ctx: &RequestContext,
        namespace: &str,
        name: &str,
        binding: &Value,
        validating: &dyn Validating,
    ) -> Result<(), Status> {
        validate(binding)?;
        validating.validate(Some(binding), None).await?;
        let pods = self.kind("", "v1", "pods")?;
        let key = object_key(namespace, name);
        let mut found = self.0.storage.get(&pods, &key, None).await?;
        loop {
            let pod = found.ok_or_else(|| Status::not_found(&pods.group_resource(), name))?;
            let bound = self.bound(&pod, binding)?;
            if ctx.dry_run {
                return object_of(&pods, &bound, pod.metadata.resource_version).map(|_| ());
            }
            let revision = pod.metadata.resource_version;
            match self.0.storage.put(&pods, &key, revision, &bound, ctx.cause()).await? {
                Written::Committed(_) => return Ok(()),
                Written::Conflict(current) => found = current,
            }
        }
    }

    /// `setPodNodeAndMetadata`: the pod as it is once bound.
    fn bound(&self, pod: &Arc<Object>, binding: &Value) -> Result<Value, Status> {
        let name = &pod.metadata.name;
        let refuse = |why: String| Err(Status::conflict(&GroupResource::new("", "pods/binding"), name, &why));
        for (field, shown) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let (wanted, found) = (text(binding, field).to_owned(), text_of(pod, field));
            if !wanted.is_empty() && wanted != found {
                return refuse(format!(
                    "Precondition failed: {shown} in precondition: {wanted}, {shown} in object meta: {found}"
                ));
            }
        }
        if pod.is_deleting() {
            return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        let mut tree = pod.to_value();
        if let Some(node) = tree["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
            return refuse(format!("pod {name} is already assigned to node {node:?}"));
        }
        if tree["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        member_mut(&mut tree, "spec").insert("nodeName".into(), binding["target"]["name"].clone());
        for (key, value) in binding["metadata"]["annotations"].as_object().into_iter().flatten() {
            let annotations = metadata_mut(&mut tree).entry("annotations").or_insert_with(|| json!({}));
            annotations[key] = value.clone();
        }
        // Labels that admission adds to the binding, whatever the pod says of the same (where it is placed is
        // not its own to say).
        for (key, value) in binding["metadata"]["labels"].as_object().into_iter().flatten() {
            let labels = metadata_mut(&mut tree).entry("labels").or_insert_with(|| json!({}));
            labels[key] = value.clone();
        }
        set_scheduled(&mut tree, &rfc3339(self.0.clock.now()));
        // Where it was to go is of no use any more (`ClearingNominatedNodeNameAfterBinding`).
        member_mut(&mut tree, "status").remove("nominatedNodeName");
        Ok(tree)
    }
}

fn text_of(pod: &Object, field: &str) -> String {
    match field {
        "uid" => pod.metadata.uid.clone(),
        _ => pod.metadata.resource_version.to_string(),
    }
}

/// `UpdatePodCondition`: the time of transition changes only with the status.
fn set_scheduled(pod: &mut Value, now: &str) {
    let conditions = member_mut(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let is_scheduled = |condition: &Value| condition["type"] == "PodScheduled";
    let since = conditions.iter().find(|condition| is_scheduled(condition) && condition["status"] == "True");
    let since = since.map_or(json!(now), |condition| condition["lastTransitionTime"].clone());
    let condition =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": since});
    match conditions.iter_mut().find(|condition| is_scheduled(condition)) {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}

/// `ValidatePodBinding`.
fn validate(binding: &Value) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let target = &binding["target"];
    let kind = target["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.not_supported("target.kind", &json!(kind), &["Node", "<empty>"]);
    }
    if target["name"].as_str().is_none_or(str::is_empty) {
        errors.required("target.name", "");
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&GroupVersion::new("", "v1").kind("Binding"), text(binding, "name"), &errors))
}
