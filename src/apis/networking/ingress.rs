//! Ingress: HTTP from outside to services.

use std::sync::LazyLock;

use super::ingress_class::typed_reference;
use crate::kind::{Builtin, Kind, Subresource};
use crate::print::{load_balancer, name};
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::{annotation, at, count, items, text};
use crate::validation::Field;
use crate::validation::texts;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain};
use apimachinery::object::Object;
use apimachinery::time::Time;
use serde_json::{Value, json};

/// `ingresses`
pub static INGRESSES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "Ingress", "ingresses", "io.k8s.api.networking.v1")
        .etcd_key("ingress")
        .short(&["ing"])
        .with(&[Subresource::Status])
        .with_generation()
        .printed(columns(), cells)
        .governed_by(Rules {
            validate,
            validate_create,
            validate_status_update: |new, _, errors| {
                let points = Field::of(new, "status.loadBalancer").each("ingress");
                points.iter().for_each(|point| validate_point(point, errors));
            },
            ..RULES
        })
        .into()
});

fn columns() -> Vec<Column> {
    let class = "The name of the IngressClass resource that should be used for additional configuration";
    let hosts = "Hosts that incoming requests are matched against before the ingress rule";
    let address = "Address is a list containing ingress points for the load-balancer";
    vec![
        Column::name(),
        Column::new("Class", "string", class),
        Column::new("Hosts", "string", hosts),
        Column::new("Address", "string", address),
        Column::new("Ports", "string", "Ports of TLS configurations that open"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![
        name(object),
        json!(at(&tree, "spec.ingressClassName").as_str().unwrap_or("<none>")),
        hosts(&tree).into(),
        load_balancer(&tree).into(),
        json!(if count(&tree, "spec.tls") > 0 { "80, 443" } else { "80" }),
        age(object, now),
    ]
}

/// At most three; the rest is counted by rules, with and without hosts.
fn hosts(tree: &Value) -> String {
    let rules = items(tree, "spec.rules");
    let mut shown = Vec::new();
    let mut more = false;
    for host in rules.iter().map(|rule| text(rule, "host")) {
        more |= shown.len() == 3;
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.as_slice(), more) {
        ([], _) => "*".into(),
        (shown, false) => shown.join(","),
        (shown, true) => format!("{} + {} more...", shown.join(","), rules.len() - 3),
    }
}

fn validate(ingress: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(ingress, "spec");
    let (backend, rules) = (spec.child("defaultBackend"), spec.child("rules"));
    if rules.is_zero() && !backend.is_set() {
        rules.shown_as("spec").invalid("either `defaultBackend` or `rules` must be specified", errors);
    }
    if backend.is_set() {
        validate_backend(&backend, errors);
    }
    rules.items().iter().for_each(|rule| validate_rule(rule, errors));
    for tls in spec.each("tls") {
        tls.each("hosts").iter().for_each(|host| validate_host(host, errors));
        tls.child("secretName").follows(dns1123_subdomain, errors);
    }
    let class = spec.child("ingressClassName");
    if class.is_set() {
        class.invalid_each(dns1123_subdomain(class.text()), errors);
    }
}

fn validate_create(ingress: &Value, errors: &mut FieldErrors) {
    let (old, new) =
        (annotation(ingress, "kubernetes.io/ingress.class"), Field::of(ingress, "spec.ingressClassName"));
    if !old.is_empty() && new.is_set() && old != new.text() {
        let words = "must match `ingressClassName` when both are specified";
        errors.invalid("annotations.kubernetes.io/ingress.class", &json!(old), words);
    }
}

/// Where a load balancer takes requests (`ValidateIngressLoadBalancerStatus`).
fn validate_point(point: &Field, errors: &mut FieldErrors) {
    let (address, host) = (point.child("ip"), point.child("hostname"));
    address.follows(texts::ip, errors);
    host.follows(dns1123_subdomain, errors);
    if texts::ip(host.text()).is_empty() {
        host.invalid("must be a DNS name, not an IP address", errors);
    }
}

fn validate_host(host: &Field, errors: &mut FieldErrors) {
    let rule = if host.text().contains('*') { texts::wildcard_dns1123_subdomain } else { dns1123_subdomain };
    host.invalid_each(rule(host.text()), errors);
}

fn validate_rule(rule: &Field, errors: &mut FieldErrors) {
    let (host, http) = (rule.child("host"), rule.child("http"));
    if !host.is_zero() {
        if texts::ip(host.text()).is_empty() {
            host.invalid("must be a DNS name, not an IP address", errors);
        }
        validate_host(&host, errors);
    }
    if http.is_set() {
        http.child("paths").require(errors);
        http.each("paths").iter().for_each(|path| validate_path(path, errors));
    }
}

fn validate_path(rule: &Field, errors: &mut FieldErrors) {
    const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    let (kind, path) = (rule.child("pathType"), rule.child("path"));
    if !kind.is_set() {
        return kind.required("pathType must be specified", errors);
    }
    let is_exact = matches!(kind.text(), "Exact" | "Prefix");
    if !is_exact && kind.text() != "ImplementationSpecific" {
        kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"], errors);
    } else if !path.text().starts_with('/') && (is_exact || !path.is_zero()) {
        errors.invalid(path.path.as_str(), &json!(path.text()), "must be an absolute path");
    }
    if is_exact {
        for sequence in SEQUENCES.iter().filter(|sequence| path.text().contains(**sequence)) {
            path.invalid(format!("must not contain '{sequence}'"), errors);
        }
        for end in ["/..", "/."].iter().filter(|end| path.text().ends_with(**end)) {
            path.invalid(format!("cannot end with '{end}'"), errors);
        }
    }
    validate_backend(&rule.child("backend"), errors);
}

fn validate_backend(backend: &Field, errors: &mut FieldErrors) {
    let (resource, service) = (backend.child("resource"), backend.child("service"));
    let wrong =
        |words: &str, errors: &mut FieldErrors| errors.invalid(backend.path.as_str(), &json!(""), words);
    match (resource.is_set(), service.is_set()) {
        (true, true) => return wrong("cannot set both resource and service backends", errors),
        (true, false) => return typed_reference(&resource, errors),
        (false, false) => return wrong("resource or service backend is required", errors),
        (false, true) => {}
    }
    service.child("name").must_follow(dns1123_label, errors);
    let (name, number) = (service.child("port.name"), service.child("port.number"));
    match (name.is_zero(), number.is_zero()) {
        (false, false) => wrong("cannot set both port name & port number", errors),
        (false, true) => name.invalid_each(texts::port_name(name.text()), errors),
        (true, false) => number.invalid_each(texts::port_number(number.number()), errors),
        (true, true) => backend.required("port name or number is required", errors),
    }
}
