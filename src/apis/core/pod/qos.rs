//! The quality of service of a pod (`pkg/apis/core/v1/helper/qos`): whom the node gives up first.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::tree::{at, is_set, items, members};
use crate::views::pod::Pod;
use apimachinery::quantity::Quantity;

/// The classes, those with the fewest guarantees first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QosClass {
    /// Asks for no CPU and no memory.
    BestEffort,
    /// Asks for some.
    Burstable,
    /// Asks for all that it may use.
    Guaranteed,
}

impl QosClass {
    /// As `status.qosClass` names it.
    pub fn name(self) -> &'static str {
        match self {
            QosClass::BestEffort => "BestEffort",
            QosClass::Burstable => "Burstable",
            QosClass::Guaranteed => "Guaranteed",
        }
    }

    /// The class of a pod (`ComputePodQOS`): by what it says as a whole, else by what its containers say.
    pub fn of_pod(pod: &Pod) -> QosClass {
        let spec = &pod.spec;
        let whole = spec.resources.as_deref();
        let each = spec.init_containers.iter().chain(&spec.containers).map(|container| &container.resources);
        let all = whole.into_iter().chain(each.filter(|_| whole.is_none()));
        class_of(all.map(|own| [positive(texts(&own.requests)), positive(texts(&own.limits))]))
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`, by CPU and memory alone.
pub fn quality_of_service(pod: &Value) -> &'static str {
    let resources: Vec<&Value> = if is_set(pod, "spec.resources") {
        vec![at(pod, "spec.resources")]
    } else {
        let containers = items(pod, "spec.containers").iter().chain(items(pod, "spec.initContainers"));
        containers.map(|container| at(container, "resources")).collect()
    };
    class_of(resources.into_iter().map(|own| ["requests", "limits"].map(|field| listed(own, field)))).name()
}

fn listed<'a>(resources: &'a Value, field: &str) -> CountedAmounts<'a> {
    let text = |(name, value): (&'a String, &'a Value)| Some((name.as_str(), value.as_str()?));
    positive(members(resources, field).filter_map(text))
}

type CountedAmounts<'a> = BTreeMap<&'a str, Quantity>;

/// Of requests and limits, each container's.
fn class_of<'a>(each: impl Iterator<Item = [CountedAmounts<'a>; 2]>) -> QosClass {
    let mut sums = [CountedAmounts::new(), CountedAmounts::new()];
    let mut all_limited = true;
    for own in each {
        all_limited &= own[1].len() == COUNTED.len();
        for (sum, amounts) in sums.iter_mut().zip(own) {
            for (name, quantity) in amounts {
                sum.entry(name).or_default().add(&quantity);
            }
        }
    }
    let [requests, limits] = sums;
    if requests.is_empty() && limits.is_empty() {
        QosClass::BestEffort
    } else if all_limited && requests == limits {
        QosClass::Guaranteed
    } else {
        QosClass::Burstable
    }
}

/// What counts for the class of a pod.
const COUNTED: [&str; 2] = ["cpu", "memory"];

fn positive<'a>(amounts: impl Iterator<Item = (&'a str, &'a str)>) -> CountedAmounts<'a> {
    let parse = |(name, text): (&'a str, &'a str)| {
        let quantity = Quantity::parse(text).ok()?;
        (quantity.sign() > 0).then_some((name, quantity))
    };
    amounts.filter(|(name, _)| COUNTED.contains(name)).filter_map(parse).collect()
}

fn texts(amounts: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    amounts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
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
            (vec![container(json!({"cpu": "0"}), json!({}))], vec![], "BestEffort"),
            (vec![container(json!({"ephemeral-storage": "1"}), json!({}))], vec![], "BestEffort"),
        ] {
            let pod = json!({"spec": {"containers": containers, "initContainers": init}});
            assert_eq!(quality_of_service(&pod), class, "{pod}");
            let view: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(QosClass::of_pod(&view).name(), class);
        }
    }
}
