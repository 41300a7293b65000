//! FlowSchema: which requests belong to which priority level.

use std::sync::LazyLock;

use super::common;
use crate::kind::{Builtin, Kind, StartingObjects, Subresource};
use crate::print::{name, or};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain};
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `flowschemas`
pub static FLOW_SCHEMAS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "FlowSchema",
        "flowschemas",
        "io.k8s.api.flowcontrol.v1",
    )
    .cluster_scoped()
    .with(&[Subresource::Status])
    .status_resets(&["metadata", "spec"])
    .status_leaves_metadata()
    .with_generation()
    .printed(columns(), cells)
    .defaulted(|schema| set_if_zero(schema, "spec.matchingPrecedence", 1000))
    .governed_by(Rules {
        validate,
        validate_status_update: |new, _, errors| common::conditions(new, errors),
        ..RULES
    })
    .starting_with(&STARTING)
    .into()
});

static STARTING: StartingObjects = StartingObjects {
    name: "flowschemas",
    manager: common::PRODUCER,
    objects: || StartingObjects::read(&FLOW_SCHEMAS, TEXT),
};
const TEXT: &str = include_str!("../../../manifests/bootstrap/flow-schemas.yaml");

const SPEC: &str = "io.k8s.api.flowcontrol.v1.FlowSchemaSpec";
/// What a rule may say of verbs.
const VERBS: &[&str] = &[
    "connect",
    "create",
    "delete",
    "deletecollection",
    "get",
    "head",
    "list",
    "options",
    "patch",
    "post",
    "proxy",
    "put",
    "update",
    "watch",
];

fn columns() -> Vec<Column> {
    let missing = "references a broken or non-existent PriorityLevelConfiguration";
    vec![
        Column::name(),
        Column::of("PriorityLevel", "string", SPEC, "priorityLevelConfiguration"),
        Column::of("MatchingPrecedence", "string", SPEC, "matchingPrecedence"),
        Column::of("DistinguisherMethod", "string", SPEC, "distinguisherMethod"),
        Column::age(),
        Column::new("MissingPL", "string", missing),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    let dangling =
        items(&tree, "status.conditions").iter().rfind(|condition| text(condition, "type") == "Dangling");
    vec![
        name(object),
        json!(or(text(&tree, "spec.priorityLevelConfiguration.name"), "<none>")),
        number(&tree, "spec.matchingPrecedence").into(),
        json!(or(text(&tree, "spec.distinguisherMethod.type"), "<none>")),
        age(object, now),
        json!(dangling.map_or("?", |condition| text(condition, "status"))),
    ]
}

fn validate(schema: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(schema, "spec");
    let precedence = spec.child("matchingPrecedence");
    if precedence.number() <= 0 {
        precedence.invalid("must be a positive value", errors);
    }
    if precedence.number() > 10_000 {
        precedence.invalid("must not be greater than 10000", errors);
    }
    if precedence.number() == 1 && text(schema, "metadata.name") != "exempt" {
        precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1", errors);
    }
    if spec.child("distinguisherMethod").is_set() {
        let method = spec.child("distinguisherMethod.type");
        if !matches!(method.text(), "ByNamespace" | "ByUser") {
            let shown = method.shown_as("spec.distinguisherMethod");
            shown.not_supported(&["ByNamespace", "ByUser"], errors);
        }
    }
    let level = spec.child("priorityLevelConfiguration.name");
    match level.text() {
        "" => level.required("must reference a priority level", errors),
        name => level.invalid_each(dns1123_subdomain(name), errors),
    }
    spec.each("rules").iter().for_each(|rule| validate_rule(rule, errors));
    if common::is_mandatory(schema)
        && !common::fixed(&STARTING, schema).is_some_and(|fixed| equal(&fixed["spec"], spec.value))
    {
        let name = text(schema, "metadata.name");
        spec.invalid(format!("spec of '{name}' must equal the fixed value"), errors);
    }
    common::conditions(schema, errors);
}

fn validate_rule(rule: &Field, errors: &mut FieldErrors) {
    if rule.child("subjects").is_zero() {
        rule.child("subjects").required("subjects must contain at least one value", errors);
    }
    rule.each("subjects").iter().for_each(|subject| validate_subject(subject, errors));
    if rule.child("resourceRules").is_zero() && rule.child("nonResourceRules").is_zero() {
        rule.required("at least one of resourceRules and nonResourceRules has to be non-empty", errors);
    }
    for resource in rule.each("resourceRules") {
        validate_verbs(&resource.child("verbs"), errors);
        let groups = resource.child("apiGroups");
        all_or_some(&groups, "api groups", "resource rules must supply at least one api group", errors);
        let resources = resource.child("resources");
        all_or_some(&resources, "resources", "resource rules must supply at least one resource", errors);
        validate_namespaces(&resource, errors);
    }
    for path in rule.each("nonResourceRules") {
        validate_verbs(&path.child("verbs"), errors);
        let urls = path.child("nonResourceURLs");
        let words = "nonResourceURLs must contain at least one value";
        all_or_some(&urls, "non-resource URLs", words, errors);
        for url in urls.items() {
            validate_url(&url, errors);
        }
    }
}

/// The field that belongs to the kind must be there, and no other.
fn validate_subject(subject: &Field, errors: &mut FieldErrors) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = subject.child("kind");
    if !KINDS.iter().any(|(name, _)| *name == kind.text()) {
        return kind.not_supported(&["Group", "ServiceAccount", "User"], errors);
    }
    for (name, field) in KINDS {
        let part = subject.child(field);
        match (name == kind.text(), part.is_set()) {
            (true, false) => {
                part.required(&format!("{field} is required when subject kind is '{name}'"), errors);
            }
            (false, true) => {
                part.forbidden(format!("{field} is forbidden when subject kind is not '{name}'"), errors);
            }
            (true, true) => validate_subject_name(&part, field, errors),
            (false, false) => {}
        }
    }
}

fn validate_subject_name(part: &Field, field: &str, errors: &mut FieldErrors) {
    let name = part.child("name");
    if name.is_zero() {
        name.required("", errors);
    } else if field == "serviceAccount" && name.text() != "*" {
        name.invalid_each(dns1123_subdomain(name.text()), errors);
    }
    if field == "serviceAccount" {
        let namespace = part.child("namespace");
        match namespace.text() {
            "" => namespace.required("must specify namespace for service account", errors),
            name => namespace.invalid_each(dns1123_label(name), errors),
        }
    }
}

fn validate_verbs(verbs: &Field, errors: &mut FieldErrors) {
    let given = verbs.items();
    if given.is_empty() {
        verbs.required("verbs must contain at least one value", errors);
    } else if given.iter().any(|verb| verb.text() == "*") {
        if given.len() > 1 {
            verbs.invalid("if '*' is present, must not specify other verbs", errors);
        }
    } else if !given.iter().all(|verb| VERBS.contains(&verb.text())) {
        verbs.not_supported(VERBS, errors);
    }
}

fn all_or_some(list: &Field, what: &str, none: &str, errors: &mut FieldErrors) {
    let given = list.items();
    if given.is_empty() {
        list.required(none, errors);
    } else if given.len() > 1 && given.iter().any(|item| item.text() == "*") {
        list.invalid(format!("if '*' is present, must not specify other {what}"), errors);
    }
}

fn validate_namespaces(rule: &Field, errors: &mut FieldErrors) {
    let namespaces = rule.child("namespaces");
    if namespaces.is_zero() && !rule.child("clusterScope").flag() {
        let words = "resource rules that are not cluster scoped must supply at least one namespace";
        return namespaces.required(words, errors);
    }
    let given = namespaces.items();
    if given.iter().any(|namespace| namespace.text() == "*") {
        if given.len() > 1 {
            namespaces.invalid("if '*' is present, must not specify other namespaces", errors);
        }
        return;
    }
    for namespace in given {
        for detail in dns1123_label(namespace.text()) {
            let words = "each member of this list must be '*' or a DNS-1123 label; ";
            namespace.invalid(format!("{words}{detail}"), errors);
        }
    }
}

fn validate_url(url: &Field, errors: &mut FieldErrors) {
    let path = url.text();
    match path {
        "*" | "/" => {}
        "" => url.invalid("must not be empty", errors),
        _ if !path.starts_with('/') => url.invalid("must start with slash", errors),
        _ if path.contains(' ') => url.invalid("must not contain white-space", errors),
        _ if path.contains("//") => url.invalid("must not contain double slash", errors),
        _ if path.trim_end_matches("/*").contains('*') => {
            url.invalid("wildcard can only do suffix matching", errors);
        }
        _ => {}
    }
}
