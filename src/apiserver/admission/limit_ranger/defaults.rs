//! What a LimitRange gives to containers that say nothing (`PodMutateLimitFunc`).

use serde_json::{Map, Value};

use apis::tree::{at, items, object_mut, text};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Fills in requests and limits, and notes in an annotation what was filled in.
pub(super) fn fill_in(range: &Value, pod: &mut Value) {
    let mut requests = Map::new();
    let mut limits = Map::new();
    for item in items(range, "spec.limits").iter().filter(|item| text(item, "type") == "Container") {
        requests.extend(at(item, "defaultRequest").as_object().cloned().unwrap_or_default());
        limits.extend(at(item, "default").as_object().cloned().unwrap_or_default());
    }
    let mut notes = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = text(container, "name").to_owned();
            for (field, defaults, shown) in [("requests", &requests, "request"), ("limits", &limits, "limit")]
            {
                let set = merge(container, field, defaults);
                if !set.is_empty() {
                    notes.push(format!("{} {shown} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        object_mut(pod, "metadata.annotations").insert(ANNOTATION.into(), note.into());
    }
}

/// The names that were filled in, in order.
fn merge(container: &mut Value, field: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let has = |name: &str| container["resources"][field].get(name).is_some();
    let missing: Vec<String> = defaults.keys().filter(|name| !has(name)).cloned().collect();
    for name in &missing {
        object_mut(container, &format!("resources.{field}")).insert(name.clone(), defaults[name].clone());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_containers_leave_out_is_filled_in_and_noted() {
        let range = json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "75m", "memory": "10Gi"},
            "defaultRequest": {"cpu": "50m"}}]}});
        let mut pod = json!({"spec": {
            "containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}],
            "initContainers": [{"name": "i"}]}});
        fill_in(&range, &mut pod);
        let all = json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "75m", "memory": "10Gi"}});
        assert_eq!(pod["spec"]["initContainers"][0]["resources"], all);
        assert_eq!(
            pod["spec"]["containers"][0]["resources"]["limits"],
            json!({"cpu": "1", "memory": "10Gi"})
        );
        let note = "LimitRanger plugin set: cpu request for container a; memory limit for container a; cpu request \
                    for init container i; cpu, memory limit for init container i";
        assert_eq!(pod["metadata"]["annotations"][ANNOTATION], note);
    }
}
