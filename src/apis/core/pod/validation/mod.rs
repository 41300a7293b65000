//! What is wrong with a pod, or with a template of one (`ValidatePodSpec`).

mod affinity;
mod containers;
mod items;
mod parts;
mod probes;
mod projected;
mod references;
mod resource_claims;
mod scope;
mod security;
mod status;
mod update;
mod volumes;

use serde_json::Value;

pub use affinity::{node_selector, tolerations};
pub use status::validate_status_update;
pub use update::validate_update;
pub use volumes::{LONG_INITIATOR, is_long_initiator};

use scope::PodScope;

use crate::tree;
use crate::validation::Field;
use crate::validation::labels::{annotations, labels};
use crate::validation::resources::{ResourcePlace, requirements};
use crate::validation::texts::{in_range, ip};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain, qualified_name};
use apimachinery::repeats::repeats;

/// What is wrong with a pod, new or changed (`validatePodMetadataAndSpec`).
pub fn validate(pod: &Value, errors: &mut FieldErrors) {
    specific_annotations(&Field::of(pod, "metadata.annotations"), errors);
    let spec_field = Field::of(pod, "spec");
    spec(&spec_field, Some(tree::text(pod, "metadata.name")), errors);
    if spec_field.child("serviceAccountName").is_zero() {
        for source in spec_field.each("volumes").iter().flat_map(|volume| volume.each("projected.sources")) {
            let token = source.child("serviceAccountToken");
            if token.is_set() {
                token.forbidden("must not be specified when serviceAccountName is not set", errors);
            }
        }
    }
    for list in ["containers", "initContainers"] {
        spec_field.each(list).iter().for_each(|container| containers::unpadded_image(container, errors));
    }
}

/// What else is wrong with a new pod.
pub fn validate_create(pod: &Value, errors: &mut FieldErrors) {
    let spec = Field::of(pod, "spec");
    if !spec.child("ephemeralContainers").is_zero() {
        spec.child("ephemeralContainers").forbidden("cannot be set on create", errors);
    }
    if !spec.child("nodeName").is_zero() && !spec.child("schedulingGates").is_zero() {
        spec.child("nodeName").forbidden("cannot be set until all schedulingGates have been cleared", errors);
    }
}

/// What is wrong with a change of one part of a pod, and with the pod that comes of it.
pub fn validate_part_update(part: &str, new: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(new, errors);
    parts::changes(part, new, old, errors);
}

/// `ValidatePodTemplateSpec`
pub fn template(template: &Field, errors: &mut FieldErrors) {
    // Upstream leaves `metadata` out of these paths.
    labels(&template.child("metadata.labels").shown_as(format!("{}.labels", template.path)), errors);
    template_annotations(template, errors);
    spec(&template.child("spec"), None, errors);
    if !template.child("spec.ephemeralContainers").is_zero() {
        template
            .child("spec.ephemeralContainers")
            .forbidden("ephemeral containers not allowed in pod template", errors);
    }
}

/// The annotations of a template.
pub fn template_annotations(template: &Field, errors: &mut FieldErrors) {
    let field = template.child("metadata.annotations").shown_as(format!("{}.annotations", template.path));
    annotations(&field, errors);
    specific_annotations(&field, errors);
}

/// A template whose pods are replaced when they end: they restart always, and have no deadline.
pub fn lasting_template(template: &Field, kind: &str, errors: &mut FieldErrors) {
    let policy = template.child("spec.restartPolicy");
    if policy.text() != "Always" {
        policy.not_supported(&["Always"], errors);
    }
    let deadline = template.child("spec.activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported"), errors);
    }
}

fn specific_annotations(field: &Field, errors: &mut FieldErrors) {
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let cost = field.value.get(COST).and_then(Value::as_str);
    let is_cost = |text: &str| text.parse::<i32>().is_ok() && !text.starts_with('+') && !is_padded(text);
    if let Some(cost) = cost.filter(|cost| !is_cost(cost)) {
        errors.invalid(format!("{}[{COST}]", field.path), &cost.into(), "must be a 32bit integer");
    }
}

/// `00`, `-0`: numbers that would be written otherwise.
fn is_padded(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits != "0" && digits.starts_with('0') || text == "-0"
}

/// `ValidatePodSpec`; `pod` is the pod's name, when it is a pod's.
fn spec(spec: &Field, pod: Option<&str>, errors: &mut FieldErrors) {
    if !spec.child("terminationGracePeriodSeconds").is_set() {
        spec.child("terminationGracePeriodSeconds").required("", errors);
    }
    let scope = PodScope {
        volumes: volumes::volumes(spec, pod, errors),
        claims: resource_claims::claims(spec, errors),
        grace_period_seconds: spec.child("terminationGracePeriodSeconds").number(),
        restart_policy: spec.child("restartPolicy").text(),
        uses_host_users: spec.child("hostUsers").value != false,
    };
    containers::containers(spec, &scope, errors);
    containers::init_containers(spec, &scope, errors);
    containers::ephemeral_containers(spec, &scope, errors);
    pod_resources(&spec.child("resources"), errors);
    host_network(spec, pod.is_some(), errors);
    spec.child("restartPolicy").one_of(&["Always", "OnFailure", "Never"], errors);
    spec.child("dnsPolicy").one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    labels(&spec.child("nodeSelector"), errors);
    security::pod_security_context(spec, errors);
    affinity::affinity(&spec.child("affinity"), errors);
    dns_config(spec, errors);
    gates(spec, errors);
    affinity::topology_spread(spec, errors);
    security::host_users(spec, errors);
    names_and_limits(spec, errors);
    tolerations(&spec.child("tolerations"), errors);
    host_aliases(spec, errors);
    references(spec, errors);
    requirements_of_overhead(&spec.child("overhead"), errors);
    security::operating_system(spec, errors);
    references::volumes_of_file_keys(spec, errors);
}

fn pod_resources(resources: &Field, errors: &mut FieldErrors) {
    if !resources.child("claims").is_zero() {
        resources.child("claims").forbidden("claims cannot be set for Resources at pod-level", errors);
    }
    requirements(resources, ResourcePlace::Pod, errors);
}

fn host_network(spec: &Field, is_pod: bool, errors: &mut FieldErrors) {
    if !spec.child("hostNetwork").flag() {
        return;
    }
    for port in spec.each("containers").iter().flat_map(|container| container.each("ports")) {
        let host = port.child("hostPort");
        if (is_pod || host.number() != 0) && host.number() != port.child("containerPort").number() {
            host.invalid("must match `containerPort` when `hostNetwork` is true", errors);
        }
    }
}

fn dns_config(spec: &Field, errors: &mut FieldErrors) {
    let config = spec.child("dnsConfig");
    if spec.child("dnsPolicy").text() == "None" {
        if !config.is_set() {
            return config.required("must provide `dnsConfig` when `dnsPolicy` is None", errors);
        }
        if config.child("nameservers").is_zero() {
            let words = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return config.child("nameservers").required(words, errors);
        }
    }
    let (servers, searches) = (config.child("nameservers"), config.child("searches"));
    if servers.items().len() > 3 {
        servers.invalid("must not have more than 3 nameservers", errors);
    }
    servers.items().iter().for_each(|server| server.invalid_each(ip(server.text()), errors));
    if searches.items().len() > 32 {
        searches.invalid("must not have more than 32 search paths", errors);
    }
    if tree::texts(config.value, "searches").join(" ").len() > 2048 {
        searches
            .invalid("must not have more than 2048 characters (including spaces) in the search list", errors);
    }
    for option in config.each("options").iter().filter(|option| option.child("name").is_zero()) {
        option.required("must not be empty", errors);
    }
}

fn gates(spec: &Field, errors: &mut FieldErrors) {
    for gate in spec.each("readinessGates") {
        let condition = gate.child("conditionType");
        condition.invalid_each(qualified_name(condition.text()), errors);
    }
    let gates = spec.each("schedulingGates");
    let is_again = repeats(gates.iter().map(|gate| gate.child("name").text()));
    for (at, gate) in gates.iter().enumerate() {
        let name = gate.child("name").shown_as(gate.path.as_str());
        name.invalid_each(qualified_name(name.text()), errors);
        if is_again[at] {
            name.duplicate(errors);
        }
    }
}

fn names_and_limits(spec: &Field, errors: &mut FieldErrors) {
    spec.child("serviceAccountName").follows(dns1123_subdomain, errors);
    spec.child("nodeName").follows(dns1123_subdomain, errors);
    let deadline = spec.child("activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.invalid_each(in_range(deadline.number(), 1, i64::from(i32::MAX)), errors);
    }
    spec.child("hostname").follows(dns1123_label, errors);
    spec.child("subdomain").follows(dns1123_label, errors);
    hostname_override(spec, errors);
}

/// The name by which a pod knows itself, instead of any other.
fn hostname_override(spec: &Field, errors: &mut FieldErrors) {
    const MOST_BYTES: usize = 64;
    let name = spec.child("hostnameOverride");
    if name.is_zero() {
        return;
    }
    name.invalid_each(dns1123_subdomain(name.text()), errors);
    if name.text().len() > MOST_BYTES {
        errors.too_long(name.path.as_str(), MOST_BYTES);
    }
    for other in ["hostNetwork", "setHostnameAsFQDN"] {
        if spec.child(other).flag() {
            name.forbidden(format!("may not be set when `{other}` is true"), errors);
        }
    }
}

fn host_aliases(spec: &Field, errors: &mut FieldErrors) {
    for alias in spec.each("hostAliases") {
        let address = alias.child("ip");
        address.invalid_each(ip(address.text()), errors);
        for hostname in alias.each("hostnames") {
            hostname.invalid_each(dns1123_subdomain(hostname.text()), errors);
        }
    }
}

fn references(spec: &Field, errors: &mut FieldErrors) {
    spec.child("priorityClassName").follows(dns1123_subdomain, errors);
    let runtime_class = spec.child("runtimeClassName");
    if runtime_class.is_set() {
        runtime_class.invalid_each(dns1123_subdomain(runtime_class.text()), errors);
    }
    let preemption = spec.child("preemptionPolicy");
    if preemption.is_set() {
        preemption.one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

/// `validateOverhead`: also of a RuntimeClass.
pub fn requirements_of_overhead(overhead: &Field, errors: &mut FieldErrors) {
    if overhead.is_set() {
        let limits = serde_json::json!({ "limits": overhead.value });
        let overhead = Field { path: overhead.path.clone(), value: &limits };
        requirements(&overhead, ResourcePlace::Container, errors);
    }
}
