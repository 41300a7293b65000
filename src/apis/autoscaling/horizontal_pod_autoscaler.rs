//! HorizontalPodAutoscaler: replicas by load.

use std::sync::LazyLock;

use super::validation;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{name, with_more};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `horizontalpodautoscalers`
pub static HORIZONTAL_POD_AUTOSCALERS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "io.k8s.api.autoscaling.v2",
    )
    .short(&["hpa"])
    .in_categories(&["all"])
    .with(&[Subresource::Status])
    .printed(columns(), |object, now| cells(object, &object.to_value(), now))
    .defaulted(defaults)
    .governed_by(Rules {
        validate_create: |new, errors| validation::validate(new, None, errors),
        validate_update: |new, old, errors| validation::validate(new, Some(old), errors),
        validate_status_update: |new, _, errors| {
            Field::of(new, "status").all_nonnegative(&["currentReplicas", "desiredReplicas"], errors)
        },
        ..RULES
    })
    .into()
});

const SPEC: &str = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec";
const STATUS: &str = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus";

/// The columns of both versions.
pub fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Reference", "string", SPEC, "scaleTargetRef"),
        Column::of("Targets", "string", SPEC, "metrics"),
        Column::of("MinPods", "string", SPEC, "minReplicas"),
        Column::of("MaxPods", "string", SPEC, "maxReplicas"),
        Column::of("Replicas", "string", STATUS, "currentReplicas"),
        Column::age(),
    ]
}

/// The row of an autoscaler; `tree` is its v2 form.
pub fn cells(object: &Object, tree: &Value, now: Time) -> Vec<Value> {
    let target = at(tree, "spec.scaleTargetRef");
    let minimum = at(tree, "spec.minReplicas").as_i64();
    vec![
        name(object),
        format!("{}/{}", text(target, "kind"), text(target, "name")).into(),
        targets(tree).into(),
        minimum.map_or("<unset>".to_owned(), |minimum| minimum.to_string()).into(),
        number(tree, "spec.maxReplicas").into(),
        number(tree, "status.currentReplicas").into(),
        age(object, now),
    ]
}

fn targets(tree: &Value) -> String {
    let (metrics, statuses) = (items(tree, "spec.metrics"), items(tree, "status.currentMetrics"));
    if metrics.is_empty() {
        return "<none>".into();
    }
    let shown = metrics.iter().enumerate().map(|(at, metric)| one_target(metric, statuses.get(at)));
    with_more(&shown.collect::<Vec<_>>(), 2, ", ")
}

/// `current/target` of one metric, with the resource's name in front where it has one.
fn one_target(metric: &Value, status: Option<&Value>) -> String {
    let source = match text(metric, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".into(),
    };
    let target = at(metric, source).get("target").unwrap_or(&Value::Null);
    let current = status.and_then(|status| at(status, source).get("current"));
    let by_average = is_set(target, "averageValue");
    let is_resource = matches!(source, "resource" | "containerResource");
    let field = match (by_average || source == "pods", is_resource) {
        (true, _) => "averageValue",
        (false, true) => "averageUtilization",
        (false, false) => "value",
    };
    let current = current.and_then(|current| amount(current, field)).unwrap_or("<unknown>".into());
    let wanted = amount(target, field).unwrap_or(if is_resource { "<auto>".into() } else { "0".into() });
    let head = if is_resource { format!("{}: ", text(&metric[source], "name")) } else { String::new() };
    let tail = if by_average && matches!(source, "external" | "object") { " (avg)" } else { "" };
    format!("{head}{current}/{wanted}{tail}")
}

fn amount(value: &Value, field: &str) -> Option<String> {
    match at(value, field) {
        Value::String(quantity) => Some(quantity.clone()),
        Value::Number(percent) => Some(format!("{percent}%")),
        _ => None,
    }
}

/// The defaults of the v2 form.
pub fn defaults(autoscaler: &mut Value) {
    set_if_unset(autoscaler, "spec.minReplicas", 1);
    let cpu = json!({"type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}});
    set_if_zero(autoscaler, "spec.metrics", json!([cpu]));
    if let Some(behavior) = get_mut(autoscaler, "spec.behavior") {
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        set_if_unset(behavior, "scaleUp.stabilizationWindowSeconds", 0);
        for (rules, policies) in [("scaleUp", json!([pods, percent])), ("scaleDown", json!([percent]))] {
            set_if_unset(behavior, &format!("{rules}.selectPolicy"), "Max");
            set_if_unset(behavior, &format!("{rules}.policies"), policies);
        }
    }
}
