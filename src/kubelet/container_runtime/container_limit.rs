//! How much of a resource a container may use (`getCPULimit`, `getMemoryLimit`).

use apimachinery::quantity::Quantity;
use apis::views::pod::{Container, Pod};

/// Its own limit, else that of its pod as a whole; nothing where neither has one.
pub(crate) fn container_limit(pod: &Pod, container: &Container, resource: &str) -> Option<Quantity> {
    let whole = || pod.spec.resources.as_ref().and_then(|whole| limit(whole.limits.get(resource)));
    limit(container.resources.limits.get(resource)).or_else(whole)
}

/// Zero is no limit.
fn limit(text: Option<&String>) -> Option<Quantity> {
    Quantity::parse(text?).ok().filter(|limit| !limit.is_zero())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_without_a_limit_has_that_of_its_pod() {
        let container = |limits| json!({"name": "c", "resources": {"limits": limits}});
        let containers =
            [container(json!({"cpu": "1"})), container(json!({"cpu": "0"})), container(json!({}))];
        let spec = json!({"containers": containers, "resources": {"limits": {"cpu": "2"}}});
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        let limits = |resource: &str| -> Vec<String> {
            let of = |own: &Container| container_limit(&pod, own, resource).unwrap_or_default().to_string();
            pod.spec.containers.iter().map(of).collect()
        };
        assert_eq!(limits("cpu"), ["1", "2", "2"]);
        assert_eq!(limits("memory"), ["0", "0", "0"]);
    }
}
