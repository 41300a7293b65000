//! What a pod as a whole has of its node's resources, as its status tells it
//! (`convertToAPIPodLevelResourcesStatus`): what it says itself, else what its containers need together.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use apis::resources::{Amounts, limits_of, requests_of};
use apis::views::pod::{Pod, Resources};

/// Puts it into a status: what it has, and what it was `given`. Where there is nothing to tell, `resources`
/// is empty.
pub(crate) fn tell(pod: &Pod, given: Option<&Pod>, status: &mut Map<String, Value>) {
    let [requests, limits] = requests_and_limits(pod);
    let allocated = given.map_or_else(|| requests.clone(), |given| requests_and_limits(given)[0].clone());
    if !allocated.is_empty() {
        status.insert("allocatedResources".into(), Value::Object(allocated));
    }
    status.insert("resources".into(), listed(requests, limits));
}

/// What a container was given, as its status tells it.
pub(crate) fn of_container(given: &Resources) -> Value {
    listed(as_given(&given.requests), as_given(&given.limits))
}

/// As `resources` of a status: a list without anything in it is left out.
fn listed(requests: Map<String, Value>, limits: Map<String, Value>) -> Value {
    let lists = [("limits", limits), ("requests", requests)].into_iter();
    lists
        .filter(|(_, amounts)| !amounts.is_empty())
        .map(|(name, amounts)| (name, Value::Object(amounts)))
        .collect()
}

fn as_given(amounts: &BTreeMap<String, String>) -> Map<String, Value> {
    amounts.iter().map(|(name, text)| (name.clone(), json!(text))).collect()
}

/// Puts what containers were given into their statuses, where they have something else.
pub(crate) fn tell_given(given: &Pod, statuses: &mut Value) {
    for status in statuses.as_array_mut().into_iter().flatten() {
        let own = given.spec.all_containers().find(|own| status["name"] == own.name.as_str());
        if let Some(own) = own.filter(|own| !own.resources.requests.is_empty()) {
            status["allocatedResources"] = json!(own.resources.requests);
        }
    }
}

fn requests_and_limits(pod: &Pod) -> [Map<String, Value>; 2] {
    let spec = &pod.spec;
    // Most pods are as their only container is, and nothing is to be worked out.
    if let ([own], [], None, true) =
        (&*spec.containers, &*spec.init_containers, &spec.resources, spec.overhead.is_empty())
    {
        return [&own.resources.requests, &own.resources.limits].map(as_given);
    }
    let told =
        |amounts: Amounts| amounts.into_iter().map(|(name, it)| (name, json!(it.to_string()))).collect();
    [requests_of(pod), limits_of(pod)].map(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(spec: Value) -> Value {
        let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
        let mut status = Map::new();
        tell(&pod, None, &mut status);
        Value::Object(status)
    }

    #[test]
    fn a_pod_has_what_it_says_or_what_its_containers_need() {
        assert_eq!(told(json!({"containers": [{"name": "a"}]})), json!({"resources": {}}));
        let own = json!({"requests": {"cpu": "0.5"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        let one = json!({"name": "a", "resources": own});
        let alone = told(json!({"containers": [one]}));
        assert_eq!(alone, json!({"allocatedResources": {"cpu": "0.5"}, "resources": own}));
        let both = told(json!({"containers": [one, one], "initContainers": [{"name": "i"}]}));
        let sum = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "2Gi"}});
        assert_eq!(both, json!({"allocatedResources": {"cpu": "1"}, "resources": sum}));
        let whole = json!({"requests": {"cpu": "3"}, "limits": {"cpu": "4"}});
        let whole = told(json!({"containers": [one], "resources": whole}));
        let wanted = json!({"requests": {"cpu": "3"}, "limits": {"cpu": "4", "memory": "1Gi"}});
        assert_eq!(whole, json!({"allocatedResources": {"cpu": "3"}, "resources": wanted}));
    }
}
