//! DefaultTolerationSeconds: a pod stays on a node that is not ready or not reachable for five minutes,
//! unless it says otherwise (`plugin/pkg/admission/defaulttolerationseconds`).

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{AdmissionOptions, AdmissionPlugin, Attributes, Operation};
use apimachinery::status::Status;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Adds the two tolerations to pods that have none for these taints.
pub(super) struct DefaultTolerationSeconds {
    /// In the order of [`TAINTS`].
    seconds: [i64; 2],
}

impl DefaultTolerationSeconds {
    /// With `--default-not-ready-toleration-seconds` and its sibling.
    pub(super) fn new(config: &AdmissionOptions) -> DefaultTolerationSeconds {
        let not_ready = config.default_not_ready_toleration_seconds;
        DefaultTolerationSeconds { seconds: [not_ready, config.default_unreachable_toleration_seconds] }
    }
}

impl AdmissionPlugin for DefaultTolerationSeconds {
    fn handles(&self, attributes: &Attributes) -> bool {
        matches!(attributes.operation, Operation::Create | Operation::Update)
            && attributes.subresource.is_empty()
            && attributes.kind.group_version.group.is_empty()
            && &*attributes.kind.plural == "pods"
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
            add_tolerations(pod, self.seconds);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn add_tolerations(pod: &mut Value, seconds: [i64; 2]) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let tolerations = spec.entry("tolerations").or_insert(Value::Null);
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for (taint, seconds) in TAINTS.into_iter().zip(seconds) {
        if !tolerations.iter().any(|toleration| tolerates(toleration, taint)) {
            tolerations.push(json!({"effect": "NoExecute", "key": taint, "operator": "Exists",
                "tolerationSeconds": seconds}));
        }
    }
}

fn tolerates(toleration: &Value, taint: &str) -> bool {
    let text = |name: &str| toleration[name].as_str().unwrap_or_default();
    (text("key") == taint || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_are_added_where_there_are_none() {
        let mut pod = json!({"spec": {"tolerations": [{"key": TAINTS[0], "operator": "Exists"}]}});
        add_tolerations(&mut pod, [300, 20]);
        let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
        assert_eq!(tolerations.len(), 2);
        assert_eq!(tolerations[1]["tolerationSeconds"], 20);
        let mut pod = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        add_tolerations(&mut pod, [300, 20]);
        assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 1);
    }
}
