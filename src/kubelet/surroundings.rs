//! What a process finds around it, as far as its script may ask: the variables of its container, and which
//! run of the container it is.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::apimachinery::object::ObjectMeta;
use crate::apis::views::pod::{Container, Pod};

/// What a process finds around it.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The container's variables; those that a ConfigMap, a Secret or a Service would give are not there.
    pub variables: BTreeMap<String, String>,
    /// How often the container was restarted before.
    pub restart_count: i64,
    /// Where its volumes are: what was written there outlives a restart.
    pub mounts: Vec<String>,
}

impl Surroundings {
    /// Of a run of a pod's container.
    pub fn of(pod: &Pod, metadata: &ObjectMeta, container: &Container, restart_count: i64) -> Surroundings {
        let mut variables = BTreeMap::from([("RANDOM".into(), random(&metadata.uid, restart_count))]);
        for variable in &container.env {
            let value = match &variable.value_from {
                None => expand(&variable.value, &variables),
                Some(source) => match field(pod, metadata, source) {
                    Some(value) => value,
                    None => continue,
                },
            };
            variables.insert(variable.name.clone(), value);
        }
        let mounts = container.volume_mounts.iter().map(|mount| mount.mount_path.clone()).collect();
        Surroundings { variables, restart_count, mounts }
    }
}

/// The shell's `$RANDOM`: any number below 32768, the same each time that this run is looked at.
fn random(uid: &str, restart_count: i64) -> String {
    let seed = uid.bytes().fold(restart_count.unsigned_abs(), |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((seed >> 16) % 32_768).to_string()
}

/// Fills in `$(NAME)` of variables that came before.
fn expand(value: &str, variables: &BTreeMap<String, String>) -> String {
    variables.iter().fold(value.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}

/// The downward API (`fieldRef`).
fn field(pod: &Pod, metadata: &ObjectMeta, source: &Value) -> Option<String> {
    let path = source["fieldRef"]["fieldPath"].as_str()?;
    let key = |list: &str| path.strip_prefix(list)?.strip_prefix("['")?.strip_suffix("']");
    if let Some(label) = key("metadata.labels") {
        return Some(metadata.labels.get(label).cloned().unwrap_or_default());
    }
    if let Some(annotation) = key("metadata.annotations") {
        return Some(pod.metadata.annotations.get(annotation).cloned().unwrap_or_default());
    }
    let text = match path {
        "metadata.name" => &metadata.name,
        "metadata.namespace" => &metadata.namespace,
        "metadata.uid" => &metadata.uid,
        "spec.nodeName" => &pod.spec.node_name,
        "spec.serviceAccountName" => &pod.spec.service_account_name,
        _ => return None,
    };
    Some(text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_read_from_the_pod() {
        let path = |path: &str| json!({"fieldRef": {"fieldPath": path}});
        let env = json!([
            {"name": "A", "value": "a"},
            {"name": "B", "value": "$(A)b$(C)"},
            {"name": "INDEX", "valueFrom": path("metadata.labels['index']")},
            {"name": "NAME", "valueFrom": path("metadata.name")},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ]);
        let container: Container = serde_json::from_value(json!({"name": "c", "env": env})).unwrap();
        let mut metadata = ObjectMeta { name: "pod".into(), uid: "u".into(), ..ObjectMeta::default() };
        metadata.labels.insert("index".into(), "3".into());
        let around = Surroundings::of(&Pod::default(), &metadata, &container, 0);
        let get = |name: &str| around.variables.get(name).map(String::as_str);
        assert_eq!(
            [get("A"), get("B"), get("INDEX"), get("NAME")],
            [Some("a"), Some("ab$(C)"), Some("3"), Some("pod")]
        );
        assert_eq!(get("SECRET"), None);
        assert!(get("RANDOM").unwrap().parse::<u32>().unwrap() < 32_768);
    }
}
