//! RuntimeClass: what a pod's class adds to it: overhead, where it may run, which taints it bears
//! (`plugin/pkg/admission/runtimeclass`).

use futures::future::BoxFuture;
use serde_json::Value;

use super::lister::AdmissionLister;
use super::tolerations::merge;
use super::{AdmissionPlugin, Attributes, Initializer, Operation, forbidden};
use apimachinery::status::Status;
use apis::resources::amounts;
use apis::tree::{at, count, items, object_mut, set, string_map, text};

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const WITHOUT_CLASS: &str =
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";

/// Merges the class into new pods.
pub(super) struct RuntimeClass {
    classes: AdmissionLister,
}

impl RuntimeClass {
    /// Reads runtime classes.
    pub(super) fn new(with: &Initializer) -> RuntimeClass {
        RuntimeClass { classes: AdmissionLister::new(with, "node.k8s.io", "v1", "runtimeclasses") }
    }

    async fn class(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<Option<Value>, Status> {
        let name = text(pod, "spec.runtimeClassName");
        if name.is_empty() {
            return Ok(None);
        }
        match self.classes.get("", name).await? {
            Some(class) => Ok(Some(class.to_value())),
            None => {
                let why = format!("pod rejected: RuntimeClass {name:?} not found");
                Err(forbidden(attributes, Some(pod), &why))
            }
        }
    }
}

impl AdmissionPlugin for RuntimeClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.writes("", "pods")
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(pod) = object else { return Ok(()) };
            let Some(class) = self.class(attributes, pod).await? else { return Ok(()) };
            let done = set_overhead(pod, &class).and_then(|()| set_scheduling(pod, &class));
            done.map_err(|why| forbidden(attributes, Some(pod), &why))
        })
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(pod) = object else { return Ok(()) };
            let class = self.class(attributes, pod).await?.unwrap_or_default();
            let why = if at(&class, "overhead").is_null() {
                (count(pod, "spec.overhead") > 0).then_some(WITHOUT_CLASS)
            } else {
                (amounts(pod, "spec.overhead") != amounts(&class, "overhead.podFixed")).then_some(MISMATCH)
            };
            why.map_or(Ok(()), |why| Err(forbidden(attributes, object, why)))
        })
    }
}

fn set_overhead(pod: &mut Value, class: &Value) -> Result<(), String> {
    if at(class, "overhead").is_null() {
        return Ok(());
    }
    let own = amounts(pod, "spec.overhead");
    if !own.is_empty() && own != amounts(class, "overhead.podFixed") {
        return Err(MISMATCH.into());
    }
    set(pod, "spec.overhead", at(class, "overhead.podFixed").clone());
    Ok(())
}

fn set_scheduling(pod: &mut Value, class: &Value) -> Result<(), String> {
    let own = string_map(pod, "spec.nodeSelector");
    for (key, value) in string_map(class, "scheduling.nodeSelector") {
        match own.get(&key) {
            Some(other) if *other != value => {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                     pod.spec.nodeSelector[{key}] = {other}"
                ));
            }
            Some(_) => {}
            None => {
                object_mut(pod, "spec.nodeSelector").insert(key, value.into());
            }
        }
    }
    let tolerations = items(class, "scheduling.tolerations");
    if !tolerations.is_empty() {
        let merged = merge(items(pod, "spec.tolerations"), tolerations);
        set(pod, "spec.tolerations", merged);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn overhead_is_the_classes() {
        let class = json!({"overhead": {"podFixed": {"cpu": "100m", "memory": "1Gi"}}});
        let mut pod = json!({"spec": {}});
        set_overhead(&mut pod, &class).unwrap();
        assert_eq!(pod["spec"]["overhead"], class["overhead"]["podFixed"]);
        let mut same = json!({"spec": {"overhead": {"cpu": "0.1", "memory": "1024Mi"}}});
        assert_eq!(set_overhead(&mut same, &class), Ok(()));
        let mut other = json!({"spec": {"overhead": {"cpu": "1"}}});
        assert_eq!(set_overhead(&mut other, &class).unwrap_err(), MISMATCH);
    }

    #[test]
    fn node_selectors_are_merged_unless_they_contradict() {
        let class =
            json!({"scheduling": {"nodeSelector": {"a": "1"}, "tolerations": [{"operator": "Exists"}]}});
        let mut pod = json!({"spec": {"nodeSelector": {"b": "2"}, "tolerations": [{"key": "k"}]}});
        set_scheduling(&mut pod, &class).unwrap();
        assert_eq!(pod["spec"]["nodeSelector"], json!({"a": "1", "b": "2"}));
        assert_eq!(pod["spec"]["tolerations"], json!([{"operator": "Exists"}]));
        let mut other = json!({"spec": {"nodeSelector": {"a": "3"}}});
        let why = "conflict: runtimeClass.scheduling.nodeSelector[a] = 1; pod.spec.nodeSelector[a] = 3";
        assert_eq!(set_scheduling(&mut other, &class).unwrap_err(), why);
    }
}
