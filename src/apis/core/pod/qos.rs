//! The quality of service of a pod (`pkg/apis/core/helper/qos`): whom the node gives up first.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::tree::{at, is_set, items, members};
use apimachinery::quantity::Quantity;

/// `Guaranteed`, `Burstable` or `BestEffort`, by CPU and memory alone.
pub fn quality_of_service(pod: &Value) -> &'static str {
    let resources: Vec<&Value> = if is_set(pod, "spec.resources") {
        vec![at(pod, "spec.resources")]
    } else {
        let containers = items(pod, "spec.containers").iter().chain(items(pod, "spec.initContainers"));
        containers.map(|container| at(container, "resources")).collect()
    };
    let (requests, limits) = (sum(&resources, "requests"), sum(&resources, "limits"));
    let all_limited = resources.iter().all(|resources| positive(resources, "limits").len() == 2);
    match () {
        () if requests.is_empty() && limits.is_empty() => "BestEffort",
        () if all_limited && requests == limits => "Guaranteed",
        () => "Burstable",
    }
}

fn sum<'a>(resources: &[&'a Value], field: &str) -> BTreeMap<&'a str, Quantity> {
    let mut sum: BTreeMap<&str, Quantity> = BTreeMap::new();
    for (name, quantity) in resources.iter().flat_map(|resources| positive(resources, field)) {
        sum.entry(name).or_default().add(&quantity);
    }
    sum
}

fn positive<'a>(resources: &'a Value, field: &str) -> Vec<(&'a str, Quantity)> {
    let counts = |(name, _): &(&String, &Value)| matches!(name.as_str(), "cpu" | "memory");
    let parse = |(name, value): (&'a String, &'a Value)| {
        let quantity = Quantity::parse(value.as_str()?).ok()?;
        (quantity.sign() > 0).then_some((name.as_str(), quantity))
    };
    members(resources, field).filter(counts).filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn classes() {
        let all = json!({"cpu": "100m", "memory": "1Gi"});
        let container =
            |requests: Value, limits: Value| json!({"resources": {"requests": requests, "limits": limits}});
        let (none, full) = (container(json!({}), json!({})), container(all.clone(), all.clone()));
        let odd = container(json!({"cpu": "0.1", "memory": "1024Mi"}), all.clone());
        for (containers, init, class) in [
            (vec![none.clone()], vec![], "BestEffort"),
            (vec![full.clone(), odd], vec![], "Guaranteed"),
            (vec![full.clone(), none.clone()], vec![], "Burstable"),
            (vec![full.clone()], vec![none], "Burstable"),
            (vec![container(json!({"cpu": "1"}), all)], vec![], "Burstable"),
            (vec![container(json!({"ephemeral-storage": "1"}), json!({}))], vec![], "BestEffort"),
        ] {
            let pod = json!({"spec": {"containers": containers, "initContainers": init}});
            assert_eq!(quality_of_service(&pod), class, "{pod}");
        }
    }
}
