//! HorizontalPodAutoscaler of `autoscaling/v1`: the older form, in which only the CPU has a field; all else
//! is kept in annotations (`pkg/apis/autoscaling/v1/conversion.go`). It is stored in the newer form.

use std::sync::LazyLock;

use super::horizontal_pod_autoscaler::{HORIZONTAL_POD_AUTOSCALERS, cells, columns};
use crate::kind::{Builtin, Kind, StoredAs, Subresource};
use crate::tree::*;
use serde_json::{Map, Value, json};

/// `horizontalpodautoscalers.v1.autoscaling`
pub static HORIZONTAL_POD_AUTOSCALERS_V1: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "io.k8s.api.autoscaling.v1",
    )
    .short(&["hpa"])
    .in_categories(&["all"])
    .with(&[Subresource::Status])
    .printed(columns(), |object, now| cells(object, &to_v2(object.to_value()), now))
    .defaulted(|autoscaler| set_if_unset(autoscaler, "spec.minReplicas", 1))
    .stored_as(StoredAs { kind: &HORIZONTAL_POD_AUTOSCALERS, encode: to_v2, decode: from_v2 })
    .into()
});

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// To `autoscaling/v2`.
pub fn to_v2(mut autoscaler: Value) -> Value {
    let mut metrics = list_in(take_annotation(&mut autoscaler, METRICS), spec_to_v2);
    if let Some(percent) = remove(&mut autoscaler, "spec.targetCPUUtilizationPercentage")
        && !percent.is_null()
    {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        metrics.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    let mut current = list_in(take_annotation(&mut autoscaler, CURRENT_METRICS), status_to_v2);
    if let Some(percent) = remove(&mut autoscaler, "status.currentCPUUtilizationPercentage")
        && !percent.is_null()
    {
        let value = json!({"averageUtilization": percent});
        current.insert(0, json!({"type": "Resource", "resource": {"name": "cpu", "current": value}}));
    }
    let conditions = take_annotation(&mut autoscaler, CONDITIONS).unwrap_or(Value::Null);
    let behavior = take_annotation(&mut autoscaler, BEHAVIOR).map(|tree| recase(tree, lower_first));
    let mut put = |path: &str, value: Value| {
        if !is_zero(&value) {
            set(&mut autoscaler, path, value);
        }
    };
    put("spec.metrics", metrics.into());
    put("status.currentMetrics", current.into());
    put("status.conditions", conditions);
    put("spec.behavior", behavior.unwrap_or_default());
    // Every autoscaler has metrics: what says nothing means the CPU.
    (HORIZONTAL_POD_AUTOSCALERS.defaults)(&mut autoscaler);
    autoscaler
}

/// From `autoscaling/v2`.
pub fn from_v2(mut autoscaler: Value) -> Value {
    let metrics = remove(&mut autoscaler, "spec.metrics").unwrap_or_default();
    let (cpu, others) = split_cpu(metrics, "target");
    if let Some(percent) = cpu {
        set(&mut autoscaler, "spec.targetCPUUtilizationPercentage", percent);
    }
    annotate(&mut autoscaler, METRICS, others.into_iter().map(spec_from_v2).collect());
    let current = remove(&mut autoscaler, "status.currentMetrics").unwrap_or_default();
    // The annotation has all of them, the field the CPU's alone.
    let all: Vec<Value> = current.as_array().cloned().unwrap_or_default();
    if let (Some(percent), _) = split_cpu(current, "current") {
        set(&mut autoscaler, "status.currentCPUUtilizationPercentage", percent);
    }
    annotate(&mut autoscaler, CURRENT_METRICS, all.into_iter().map(status_from_v2).collect());
    let conditions = remove(&mut autoscaler, "status.conditions").unwrap_or_default();
    annotate(&mut autoscaler, CONDITIONS, conditions);
    let behavior = remove(&mut autoscaler, "spec.behavior").unwrap_or_default();
    annotate(&mut autoscaler, BEHAVIOR, recase(behavior, upper_first));
    autoscaler
}

/// The utilization of the CPU that is wanted or used, and all other metrics. Of several the last is the one.
fn split_cpu(metrics: Value, side: &str) -> (Option<Value>, Vec<Value>) {
    let Value::Array(metrics) = metrics else { return (None, vec![]) };
    let mut cpu = None;
    let mut others = Vec::new();
    for metric in metrics {
        let percent = at(&metric, &format!("resource.{side}.averageUtilization"));
        if text(&metric, "resource.name") == "cpu" && !percent.is_null() {
            cpu = Some(percent.clone());
        } else {
            others.push(metric);
        }
    }
    (cpu, others)
}

fn take_annotation(tree: &mut Value, name: &str) -> Option<Value> {
    let annotations = get_mut(tree, "metadata.annotations")?.as_object_mut()?;
    let text = annotations.remove(name)?;
    if annotations.is_empty() {
        remove(tree, "metadata.annotations");
    }
    // What is no JSON is dropped, as upstream drops it.
    serde_json::from_str(text.as_str()?).ok()
}

fn annotate(tree: &mut Value, name: &str, value: Value) {
    if !is_zero(&value) {
        object_mut(tree, "metadata.annotations").insert(name.to_owned(), value.to_string().into());
    }
}

fn list_in(list: Option<Value>, convert: fn(Value) -> Value) -> Vec<Value> {
    match list {
        Some(Value::Array(items)) => items.into_iter().map(convert).collect(),
        _ => vec![],
    }
}

/// What each kind of metric calls its parts in v1: the source, then (v1, v2) of every field.
type MetricNames = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const SPECS: MetricNames = &[
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("targetValue", "target.value"),
            ("averageValue", "target.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
    ("resource", RESOURCE_SPEC),
    ("containerResource", RESOURCE_SPEC),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("targetValue", "target.value"),
            ("targetAverageValue", "target.averageValue"),
        ],
    ),
];
const RESOURCE_SPEC: &[(&str, &str)] = &[
    ("name", "name"),
    ("container", "container"),
    ("targetAverageUtilization", "target.averageUtilization"),
    ("targetAverageValue", "target.averageValue"),
];
const STATUSES: MetricNames = &[
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("currentValue", "current.value"),
            ("averageValue", "current.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
    ("resource", RESOURCE_STATUS),
    ("containerResource", RESOURCE_STATUS),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("currentValue", "current.value"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
];
const RESOURCE_STATUS: &[(&str, &str)] = &[
    ("name", "name"),
    ("container", "container"),
    ("currentAverageUtilization", "current.averageUtilization"),
    ("currentAverageValue", "current.averageValue"),
];

fn spec_to_v2(metric: Value) -> Value {
    let mut metric = renamed(metric, SPECS, true);
    for (source, _) in SPECS {
        let Some(target) = get_mut(&mut metric, &format!("{source}.target")) else { continue };
        let kind = match () {
            () if is_set(target, "averageUtilization") => "Utilization",
            () if is_set(target, "averageValue") => "AverageValue",
            () => "Value",
        };
        set(target, "type", kind);
    }
    metric
}

fn spec_from_v2(metric: Value) -> Value {
    let mut metric = renamed(metric, SPECS, false);
    // A struct and no pointer: it is written even when nothing is in it.
    if let Some(object) = get_mut(&mut metric, "object") {
        set_if_unset(object, "targetValue", "0");
    }
    metric
}

fn status_to_v2(metric: Value) -> Value {
    renamed(metric, STATUSES, true)
}

fn status_from_v2(metric: Value) -> Value {
    renamed(metric, STATUSES, false)
}

fn renamed(metric: Value, names: MetricNames, is_to_v2: bool) -> Value {
    let mut new = json!({"type": at(&metric, "type")});
    for (source, fields) in names {
        let Some(old) = metric.get(source).filter(|old| !old.is_null()) else { continue };
        set(&mut new, source, Map::new());
        for (v1, v2) in *fields {
            let (from, to) = if is_to_v2 { (v1, v2) } else { (v2, v1) };
            let value = at(old, from);
            if !value.is_null() {
                set(&mut new, &format!("{source}.{to}"), value.clone());
            }
        }
    }
    new
}

/// Upstream writes its internal type here, whose fields have no JSON names: they begin with capitals.
fn recase(tree: Value, how: fn(&str) -> String) -> Value {
    match tree {
        Value::Object(map) => map.into_iter().map(|(name, value)| (how(&name), recase(value, how))).collect(),
        Value::Array(list) => list.into_iter().map(|value| recase(value, how)).collect(),
        other => other,
    }
}

fn upper_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_has_a_field_and_the_rest_is_in_annotations() {
        let old = json!({"metadata": {"name": "a"}, "spec": {"minReplicas": 1, "maxReplicas": 5,
            "targetCPUUtilizationPercentage": 70}});
        let new = to_v2(old.clone());
        assert_eq!(items(&new, "spec.metrics")[0]["resource"]["target"]["averageUtilization"], 70);
        assert_eq!(from_v2(new), old);
        let memory = json!({"type": "Resource", "resource": {"name": "memory",
            "target": {"type": "AverageValue", "averageValue": "1Gi"}}});
        let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
            "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}});
        let new = json!({"metadata": {"name": "a"},
            "spec": {"minReplicas": 2, "maxReplicas": 5, "metrics": [memory], "behavior": behavior}});
        let old = from_v2(new.clone());
        assert_eq!(
            old["metadata"]["annotations"][METRICS],
            r#"[{"resource":{"name":"memory","targetAverageValue":"1Gi"},"type":"Resource"}]"#
        );
        assert_eq!(to_v2(old), new);
    }
}
