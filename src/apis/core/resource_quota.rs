//! ResourceQuota: what all objects of a namespace together may ask for.

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, Subresource};
use crate::print::name;
use crate::quota::measure::ByBareName;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::{at, members};
use crate::validation::resources::{ResourcePlace, is_quota_standard, resource_name, resource_quantity};
use crate::validation::{Field, IMMUTABLE};
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::Value;
use std::collections::BTreeSet;

/// `resourcequotas`
pub static RESOURCE_QUOTAS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ResourceQuota", "resourcequotas", "io.k8s.api.core.v1")
        .short(&["quota"])
        .with(&[Subresource::Status])
        .returns_deleted()
        .measured(&ByBareName("resourcequotas"))
        .printed(columns(), cells)
        .governed_by(Rules {
            validate: |quota, errors| validate(&Field::of(quota, "spec"), errors),
            validate_update,
            validate_status_update: |new, _, errors| {
                amounts(&Field::of(new, "status.hard"), errors);
                amounts(&Field::of(new, "status.used"), errors)
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let request = "Request represents a minimum amount of cpu/memory that a container may consume.";
    let limit = "Limits control the maximum amount of cpu/memory that a container may use independent of contention on \
        the node.";
    vec![
        Column::name(),
        Column::new("Request", "string", request),
        Column::new("Limit", "string", limit),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let used = at(&tree, "status.used");
    let pieces = |is_limit: bool| -> Value {
        let of_column =
            members(&tree, "status.hard").filter(|(name, _)| name.starts_with("limits.") == is_limit);
        let piece = |(name, hard): (&String, &Value)| {
            let used = used.get(name).and_then(Value::as_str).unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
        };
        of_column.map(piece).collect::<Vec<_>>().join(", ").into()
    };
    vec![name(object), pieces(false), pieces(true), age(object, now)]
}

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn amounts(list: &Field, errors: &mut FieldErrors) {
    for (name, quantity) in list.members() {
        resource_name(name, &quantity, ResourcePlace::Quota, errors);
        resource_quantity(name, &quantity, errors);
    }
}

fn validate(spec: &Field, errors: &mut FieldErrors) {
    amounts(&spec.child("hard"), errors);
    let (hard, scopes) = (spec.child("hard"), spec.child("scopes"));
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            scopes.invalid("unsupported scope", errors);
        }
        applies(scope.text(), &hard, &scopes, errors);
    }
    conflicting(&scopes.items(), &scopes, errors);
    let selector = spec.child("scopeSelector.matchExpressions");
    for expression in selector.items() {
        // Upstream names the list and not the item.
        let shown = |name: &str| {
            let path = format!("{}.scopeSelector.matchExpressions.{name}", spec.path);
            expression.child(name).shown_as(path)
        };
        let scope = shown("scopeName");
        let whole = spec.child("scopeSelector").shown_as(selector.path.as_str());
        applies(scope.text(), &hard, &whole, errors);
        scope_expression(&scope, &shown("operator"), &shown("values"), errors);
    }
    let named: Vec<Field> = selector.items().iter().map(|one| one.child("scopeName")).collect();
    conflicting(&named, &scopes.shown_as(selector.path.as_str()), errors);
}

/// What a scope can be of; what is no resource of quotas is somebody else's.
fn applies(scope: &str, hard: &Field, shown: &Field, errors: &mut FieldErrors) {
    const COMPUTE: &[&str] =
        &["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    let fits = |name: &str| match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => name == "pods" || COMPUTE.contains(&name) || !SCOPES.contains(&scope),
    };
    for _ in hard.members().iter().filter(|(name, _)| is_quota_standard(name) && !fits(name)) {
        shown.invalid("unsupported scope applied to resource", errors);
    }
}

fn conflicting(scopes: &[Field], shown: &Field, errors: &mut FieldErrors) {
    let has = |name: &str| scopes.iter().any(|scope| scope.text() == name);
    for (a, b) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if has(a) && has(b) {
            shown.invalid("conflicting scopes", errors);
        }
    }
}

fn scope_expression(scope: &Field, operator: &Field, values: &Field, errors: &mut FieldErrors) {
    const EXISTS_ONLY: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
        ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
        ResourceQuotaScopeCrossNamespacePodAffinity";
    if !SCOPES.contains(&scope.text()) {
        scope.invalid("unsupported scope", errors);
    }
    let takes_values = matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass");
    if !takes_values && SCOPES.contains(&scope.text()) && operator.text() != "Exists" {
        operator.invalid(EXISTS_ONLY, errors);
    }
    match operator.text() {
        "In" | "NotIn" if values.is_zero() => values.required(
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            errors,
        ),
        "Exists" | "DoesNotExist" if !values.is_zero() => values.invalid(
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            errors,
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => operator.invalid("not a valid selector operator", errors),
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let scopes = Field::of(new, "spec.scopes");
    let set =
        |list: &Field| list.items().iter().map(|scope| scope.text().to_owned()).collect::<BTreeSet<_>>();
    if set(&scopes) != set(&Field::of(old, "spec.scopes")) {
        scopes.invalid(IMMUTABLE, errors);
    }
}
