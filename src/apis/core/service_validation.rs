//! What is wrong with a Service (`ValidateService`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::service_traffic::{is_external, needs_health_check};
use crate::tree::{at, items, text, texts as texts_of};
use crate::validation::labels::labels;
use crate::validation::{Field, equal, texts};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain, qualified_name};
use apimachinery::repeats::repeats;

/// What is wrong with a Service, new or changed.
pub(super) fn validate(service: &Value, errors: &mut FieldErrors) {
    topology_annotations(service, errors);
    let spec = Field::of(service, "spec");
    let kind = spec.child("type");
    let is_headless = texts_of(service, "spec.clusterIPs") == ["None"];
    if spec.child("ports").is_zero() && !is_headless && kind.text() != "ExternalName" {
        spec.child("ports").required("", errors);
    }
    if is_headless && matches!(kind.text(), "LoadBalancer" | "NodePort") {
        let words = format!("may not be set to 'None' for {} services", kind.text());
        errors.invalid("spec.clusterIPs[0]", &json!("None"), words);
    }
    if kind.text() == "ExternalName" {
        external_name(&spec, errors);
    }
    ports(&spec, errors);
    labels(&spec.child("selector"), errors);
    session_affinity(&spec, errors);
    if kind.text() != "ExternalName" {
        cluster_ips(&spec, errors);
    }
    for address in spec.each("externalIPs") {
        let wrong = texts::ip(address.text());
        let wrong = if wrong.is_empty() { texts::non_special_ip(address.text()) } else { wrong };
        address.invalid_each(wrong, errors);
    }
    kind.one_of(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], errors);
    distinct_ports(&spec, errors);
    load_balancer(&spec, errors);
    source_ranges_annotation(service, errors);
    traffic(service, &spec, errors);
}

/// The older annotation and the newer may not contradict each other.
fn topology_annotations(service: &Value, errors: &mut FieldErrors) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let of = |name: &str| at(service, "metadata.annotations").get(name);
    if let (Some(hints), Some(mode)) = (of(HINTS), of(MODE))
        && hints != mode
    {
        let words = format!("must match annotations[{HINTS}] when both are specified");
        errors.invalid(format!("metadata.annotations[{MODE}]"), mode, words);
    }
}

/// What the field's forerunner says, where the field says nothing.
fn source_ranges_annotation(service: &Value, errors: &mut FieldErrors) {
    const NAME: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let Some(given) = at(service, "metadata.annotations").get(NAME).and_then(Value::as_str) else { return };
    if !items(service, "spec.loadBalancerSourceRanges").is_empty() {
        return;
    }
    let path = format!("metadata.annotations[{NAME}]");
    if text(service, "spec.type") != "LoadBalancer" {
        errors.forbidden(path.as_str(), "may only be used when `type` is 'LoadBalancer'");
    }
    for range in given.trim().split(',').map(str::trim).filter(|_| !given.trim().is_empty()) {
        for detail in texts::cidr(range) {
            errors.invalid(path.as_str(), &json!(range), detail);
        }
    }
}

fn external_name(spec: &Field, errors: &mut FieldErrors) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].map(|name| spec.child(name)) {
        if !field.is_zero() {
            field.forbidden("may not be set for ExternalName services", errors);
        }
    }
    let name = spec.child("externalName");
    let trimmed = json!(name.text().strip_suffix('.').unwrap_or(name.text()));
    Field { path: name.path, value: &trimmed }.must_follow(dns1123_subdomain, errors);
}

fn ports(spec: &Field, errors: &mut FieldErrors) {
    let ports = spec.each("ports");
    let mut names = BTreeSet::new();
    for port in &ports {
        let (name, number) = (port.child("name"), port.child("port"));
        if name.is_zero() && ports.len() > 1 {
            name.required("", errors);
        }
        name.follows(dns1123_label, errors);
        if !name.is_zero() && !names.insert(name.text()) {
            name.duplicate(errors);
        }
        number.invalid_each(texts::port_number(number.number()), errors);
        port.child("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
        texts::port_number_or_name(&port.child("targetPort"), errors);
        let protocol = port.child("appProtocol");
        if protocol.is_set() {
            protocol.invalid_each(qualified_name(protocol.text()), errors);
        }
    }
}

/// No two ports, and no two node ports, of one protocol are the same.
fn distinct_ports(spec: &Field, errors: &mut FieldErrors) {
    let ports = spec.each("ports");
    let node_ports = || ports.iter().filter(|port| !port.child("nodePort").is_zero());
    if spec.child("type").text() == "ClusterIP" {
        for port in node_ports() {
            port.child("nodePort").forbidden("may not be used when `type` is 'ClusterIP'", errors);
        }
    }
    let mut taken = BTreeSet::new();
    for port in node_ports() {
        if !taken.insert((port.child("protocol").text(), port.child("nodePort").number())) {
            port.child("nodePort").duplicate(errors);
        }
    }
    taken.clear();
    for port in &ports {
        let (protocol, number) = (port.child("protocol").text(), port.child("port").number());
        if !taken.insert((protocol, number)) {
            let key = json!({"port": number, "protocol": protocol, "targetPort": 0});
            errors.duplicate(port.path.as_str(), &key);
        }
    }
}

fn session_affinity(spec: &Field, errors: &mut FieldErrors) {
    let (affinity, config) = (spec.child("sessionAffinity"), spec.child("sessionAffinityConfig"));
    affinity.one_of(&["ClientIP", "None"], errors);
    match affinity.text() {
        "ClientIP" => {
            let seconds = config.child("clientIP.timeoutSeconds");
            if !seconds.is_set() {
                seconds.required("when session affinity type is ClientIP", errors);
            } else if !(1..=86_400).contains(&seconds.number()) {
                seconds.invalid("must be greater than 0 and less than 86400", errors);
            }
        }
        "None" if config.is_set() => {
            config.forbidden("must not be set when session affinity is None", errors);
        }
        _ => {}
    }
}

/// `ValidateServiceClusterIPsRelatedFields`
fn cluster_ips(spec: &Field, errors: &mut FieldErrors) {
    let (single, list) = (spec.child("clusterIP"), spec.child("clusterIPs"));
    let addresses = list.items();
    match (single.is_zero(), addresses.first()) {
        (false, None) => list.required("", errors),
        (false, Some(first)) if first.text() != single.text() => {
            list.invalid("first value must match `clusterIP`", errors);
        }
        (true, Some(_)) => list.invalid("must be empty when `clusterIP` is not specified", errors),
        _ => {}
    }
    let families = spec.each("ipFamilies");
    let is_again = repeats(families.iter().map(|one| one.text()));
    for (at, family) in families.iter().enumerate() {
        family.one_of_if_set(&["IPv4", "IPv6"], errors);
        if is_again[at] {
            family.duplicate(errors);
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    spec.child("ipFamilyPolicy").one_of_if_set(&policies, errors);
    let before = errors.0.len();
    for (at, address) in addresses.iter().enumerate() {
        match (at, address.text(), addresses.len()) {
            (0, "None", 1) => {}
            (0, "None", _) => list.invalid("'None' must be the first and only value", errors),
            (_, text, _) => address.invalid_each(texts::ip(text), errors),
        }
    }
    if addresses.len() > 2 {
        list.invalid("may only hold up to 2 values", errors);
    }
    if errors.0.len() == before {
        families_of(&addresses, &families, &list, errors);
    }
}

fn families_of(addresses: &[Field], families: &[Field], list: &Field, errors: &mut FieldErrors) {
    let is_v6 = |address: &Field| address.text().contains(':');
    if let [first, second] = addresses
        && is_v6(first) == is_v6(second)
    {
        list.invalid("may specify no more than one IP for each IP family", errors);
    }
    for (at, (address, family)) in addresses.iter().zip(families).enumerate() {
        let expected = if is_v6(address) { "IPv6" } else { "IPv4" };
        if address.text() != "None" && matches!(family.text(), "IPv4" | "IPv6") && family.text() != expected {
            let words = format!("expected an {} value as indicated by `ipFamilies[{at}]`", family.text());
            address.invalid(words, errors);
        }
    }
}

fn load_balancer(spec: &Field, errors: &mut FieldErrors) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_balancer = spec.child("type").text() == "LoadBalancer";
    let ranges = spec.child("loadBalancerSourceRanges").shown_as("spec.LoadBalancerSourceRanges");
    if !ranges.is_zero() {
        if !is_balancer {
            ranges.forbidden(ONLY, errors);
        }
        ranges.items().iter().for_each(|range| range.invalid_each(texts::cidr(range.text().trim()), errors));
    }
    let (allocate, class) = (spec.child("allocateLoadBalancerNodePorts"), spec.child("loadBalancerClass"));
    if allocate.is_set() && !is_balancer {
        allocate.forbidden(ONLY, errors);
    }
    if is_balancer && !allocate.is_set() {
        allocate.shown_as("allocateLoadBalancerNodePorts").required("", errors);
    }
    if class.is_set() {
        if is_balancer {
            class.invalid_each(qualified_name(class.text()), errors);
        } else {
            class.forbidden(ONLY, errors);
        }
    }
}

fn traffic(service: &Value, spec: &Field, errors: &mut FieldErrors) {
    let [external, internal, health, distribution] =
        ["externalTrafficPolicy", "internalTrafficPolicy", "healthCheckNodePort", "trafficDistribution"]
            .map(|name| spec.child(name));
    match (is_external(service), external.is_zero()) {
        (false, false) => external.invalid("may only be set for externally-accessible services", errors),
        (true, _) => external.one_of(&["Cluster", "Local"], errors),
        _ => {}
    }
    // Where one is needed, it is allocated after this.
    if !health.is_zero() {
        if needs_health_check(service) {
            health.invalid_each(texts::port_number(health.number()), errors)
        } else {
            health.invalid(
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
                errors,
            )
        }
    }
    if spec.child("type").text() != "ExternalName" && !internal.is_set() {
        internal.required("", errors);
    }
    internal.one_of_if_set(&["Cluster", "Local"], errors);
    distribution.one_of_if_set(&["PreferClose", "PreferSameNode", "PreferSameZone"], errors);
}

/// What of a Service may not change, short of becoming or having been an ExternalName.
pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let is_external_name = |service: &Value| text(service, "spec.type") == "ExternalName";
    let is_headless = |service: &Value| texts_of(service, "spec.clusterIPs") == ["None"];
    if !is_external_name(new) && !is_external_name(old) {
        if !(is_headless(new) && is_headless(old)) {
            kept(new, old, "clusterIPs", "primary clusterIP", "secondary clusterIP", errors);
        }
        if !is_headless(new) && !is_headless(old) {
            kept(new, old, "ipFamilies", "primary ipFamily", "secondary ipFamily", errors);
        }
    }
    let class = Field::of(new, "spec.loadBalancerClass");
    let was_balancer = text(old, "spec.type") == "LoadBalancer" && text(new, "spec.type") == "LoadBalancer";
    if was_balancer && !equal(class.value, Field::of(old, "spec.loadBalancerClass").value) {
        class.invalid("may not change once set", errors);
    }
    let health = Field::of(new, "spec.healthCheckNodePort");
    let was = Field::of(old, "spec.healthCheckNodePort");
    if needs_health_check(new) && needs_health_check(old) && health.number() != was.number() {
        health.forbidden("field is immutable", errors);
    }
}

/// The first of two stays; the second may come and go.
fn kept(new: &Value, old: &Value, field: &str, first: &str, second: &str, errors: &mut FieldErrors) {
    let path = format!("spec.{field}");
    let list = Field::of(new, &path);
    let (now, was) = (items(new, &path), items(old, &path));
    let at = |index: usize| list.shown_as(format!("{path}[{index}]"));
    if now.is_empty() && !was.is_empty() {
        at(0).invalid(format!("{first} can not be unset"), errors);
    }
    let compared = if now.len() == was.len() { now.len() } else { now.len().min(was.len()).min(1) };
    for index in (0..compared).filter(|index| now[*index] != was[*index]) {
        at(index).invalid("may not change once set", errors);
    }
    let policy = Field::of(new, "spec.ipFamilyPolicy");
    if was.len() > now.len() && now.len() == 1 && policy.text() != "SingleStack" {
        policy.invalid(format!("must be set to 'SingleStack' when releasing the {second}"), errors);
    }
}

/// What is wrong with a change of status.
pub(super) fn validate_status_update(new: &Value, _: &Value, errors: &mut FieldErrors) {
    let ingress = Field::of(new, "status.loadBalancer.ingress");
    if text(new, "spec.type") != "LoadBalancer" && !ingress.is_zero() {
        return ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'", errors);
    }
    for item in ingress.items() {
        let [ip, mode, hostname] = ["ip", "ipMode", "hostname"].map(|name| item.child(name));
        ip.follows(texts::ip, errors);
        match (ip.is_zero(), mode.is_set()) {
            (false, false) => mode.required("must be specified when `ip` is set", errors),
            (true, true) => mode.forbidden("may not be specified when `ip` is not set", errors),
            _ => mode.one_of_if_set(&["Proxy", "VIP"], errors),
        }
        hostname.follows(dns1123_subdomain, errors);
        if !hostname.is_zero() && texts::ip(hostname.text()).is_empty() {
            hostname.invalid("must be a DNS name, not an IP address", errors);
        }
    }
}
