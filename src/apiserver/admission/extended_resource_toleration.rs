//! ExtendedResourceToleration: pods that ask for a special resource bear the taint of nodes that are kept for
//! it (`plugin/pkg/admission/extendedresourcetoleration`).

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{AdmissionPlugin, Attributes};
use apimachinery::status::Status;
use apis::tree::{items, members, object_mut};
use apis::validation::resources::is_extended;

/// Adds a toleration for each extended resource.
pub(super) struct ExtendedResourceToleration;

impl AdmissionPlugin for ExtendedResourceToleration {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.writes("", "pods")
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        _attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if let Some(pod) = object {
            tolerate(pod);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn tolerate(pod: &mut Value) {
    let containers = items(pod, "spec.initContainers").iter().chain(items(pod, "spec.containers"));
    let names =
        containers.flat_map(|container| members(container, "resources.requests")).map(|(name, _)| name);
    let extended: BTreeSet<String> = names.filter(|name| is_extended(name)).cloned().collect();
    for name in extended {
        let toleration = json!({"key": name, "operator": "Exists", "effect": "NoSchedule"});
        let list = object_mut(pod, "spec").entry("tolerations").or_insert(Value::Null);
        match list.as_array_mut() {
            Some(list) if list.contains(&toleration) => {}
            Some(list) => list.push(toleration),
            None => *list = json!([toleration]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_extended_resource_is_tolerated_once() {
        let mut pod = json!({"spec": {"containers": [
            {"resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}},
            {"resources": {"requests": {"example.com/gpu": "1"}}}]}});
        let expected = json!([{"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]);
        tolerate(&mut pod);
        assert_eq!(pod["spec"]["tolerations"], expected);
        tolerate(&mut pod);
        assert_eq!(pod["spec"]["tolerations"], expected);
    }
}
