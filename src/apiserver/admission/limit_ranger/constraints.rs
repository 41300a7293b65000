//! What a LimitRange refuses (`PodValidateLimitFunc`, `PersistentVolumeClaimValidateLimitFunc`).

use std::collections::BTreeMap;

use serde_json::Value;

use apimachinery::quantity::Quantity;
use apis::resources::{Amounts, amounts, pod_limits, pod_requests};
use apis::tree::{items, text};

/// What is wrong with a pod, in the order of the range, its containers, and then by resource.
pub(super) fn of_pod(range: &Value, pod: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    for item in items(range, "spec.limits") {
        match text(item, "type") {
            "Container" => {
                let containers = items(pod, "spec.containers").iter();
                for container in containers.chain(items(pod, "spec.initContainers")) {
                    let requests = amounts(container, "resources.requests");
                    let limits = amounts(container, "resources.limits");
                    bounds("Container", item, &requests, &limits, &mut errors);
                }
            }
            "Pod" => bounds("Pod", item, &pod_requests(pod), &pod_limits(pod), &mut errors),
            _ => {}
        }
    }
    errors
}

/// What is wrong with a claim, which has requests only.
pub(super) fn of_claim(range: &Value, claim: &Value) -> Vec<String> {
    const TYPE: &str = "PersistentVolumeClaim";
    let mut errors = Vec::new();
    for item in items(range, "spec.limits").iter().filter(|item| text(item, "type") == TYPE) {
        let requests = amounts(claim, "spec.resources.requests");
        let none = BTreeMap::new();
        each(item, "min", |name, bound| least(TYPE, name, bound, &requests, &none), &mut errors);
        each(item, "max", |name, bound| most_requested(TYPE, name, bound, &requests), &mut errors);
        each(
            item,
            "maxLimitRequestRatio",
            |name, bound| ratio(TYPE, name, bound, &requests, &none),
            &mut errors,
        );
    }
    errors
}

fn bounds(kind: &str, item: &Value, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    each(item, "min", |name, bound| least(kind, name, bound, requests, limits), errors);
    each(item, "max", |name, bound| most(kind, name, bound, requests, limits), errors);
    each(item, "maxLimitRequestRatio", |name, bound| ratio(kind, name, bound, requests, limits), errors);
}

fn each(
    item: &Value,
    list: &str,
    check: impl Fn(&str, &Quantity) -> Result<(), String>,
    errors: &mut Vec<String>,
) {
    errors.extend(amounts(item, list).iter().filter_map(|(name, bound)| check(name, bound).err()));
}

fn least(
    kind: &str,
    name: &str,
    bound: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Result<(), String> {
    let words = format!("minimum {name} usage per {kind} is {bound}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Err(format!("{words}.  No request is specified")),
        (Some(request), _) if request < bound => Err(format!("{words}, but request is {request}")),
        (_, Some(limit)) if limit < bound => Err(format!("{words}, but limit is {limit}")),
        _ => Ok(()),
    }
}

fn most(
    kind: &str,
    name: &str,
    bound: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Result<(), String> {
    let words = format!("maximum {name} usage per {kind} is {bound}");
    match (requests.get(name), limits.get(name)) {
        (_, None) => Err(format!("{words}.  No limit is specified")),
        (_, Some(limit)) if limit > bound => Err(format!("{words}, but limit is {limit}")),
        (Some(request), _) if request > bound => Err(format!("{words}, but request is {request}")),
        _ => Ok(()),
    }
}

fn most_requested(kind: &str, name: &str, bound: &Quantity, requests: &Amounts) -> Result<(), String> {
    let words = format!("maximum {name} usage per {kind} is {bound}");
    match requests.get(name) {
        None => Err(format!("{words}.  No request is specified")),
        Some(request) if request > bound => Err(format!("{words}, but request is {request}")),
        _ => Ok(()),
    }
}

fn ratio(
    kind: &str,
    name: &str,
    bound: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Result<(), String> {
    let words = format!("{name} max limit to request ratio per {kind} is {bound}");
    let amount = |list: &Amounts| list.get(name).filter(|amount| !amount.is_zero()).cloned();
    let Some(request) = amount(requests) else {
        return Err(format!("{words}, but no request is specified or request is 0"));
    };
    let Some(limit) = amount(limits) else {
        return Err(format!("{words}, but no limit is specified or limit is 0"));
    };
    let observed = limit.as_approximate_f64() / request.as_approximate_f64();
    if observed > bound.as_approximate_f64() {
        return Err(format!("{words}, but provided ratio is {observed:.6}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The cases of upstream's `TestPodLimitFunc` and `TestPersistentVolumeClaimLimitFunc`, and their texts.
    #[test]
    fn bounds_are_upstreams() {
        let cases: Vec<Value> = serde_yaml::from_str(include_str!("testdata/constraints.yaml")).unwrap();
        for case in cases {
            let range = json!({"spec": {"limits": [case["limit"]]}});
            let errors = match &case["claim"] {
                Value::Null => of_pod(&range, &json!({"spec": case["pod"]})),
                claim => of_claim(&range, &json!({"spec": {"resources": {"requests": claim}}})),
            };
            let expected: Vec<&str> = items(&case, "errors").iter().filter_map(Value::as_str).collect();
            assert_eq!(errors, expected, "{case}");
        }
    }
}
