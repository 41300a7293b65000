//! What of a pod's status may change, and what may stand there (`ValidatePodStatusUpdate`).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::validation::texts::address_list;
use crate::validation::{Field, equal};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::{dns1123_label, dns1123_subdomain, qualified_name};

/// What is wrong with a change of a pod's status.
pub fn validate_status_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let (status, was) = (Field::of(new, "status"), Field::of(old, "status"));
    for (at, condition) in status.each("conditions").iter().enumerate() {
        let kind = condition.child("type");
        if !matches!(kind.text(), "PodScheduled" | "Ready" | "Initialized") {
            let path = format!("metadata.conditions[{at}].Type");
            kind.shown_as(path).invalid_each(qualified_name(kind.text()), errors);
        }
    }
    let nominated = status.child("nominatedNodeName");
    if !equal(nominated.value, was.child("nominatedNodeName").value) {
        nominated.follows(dns1123_subdomain, errors);
    }
    status.child("qosClass").immutable(&was.child("qosClass"), errors);
    let policy = Field::of(old, "spec.restartPolicy");
    for (list, policy) in [
        ("containerStatuses", policy.text()),
        ("initContainerStatuses", policy.text()),
        ("ephemeralContainerStatuses", "Never"),
    ] {
        state_transitions(&status, &was, old, list, policy, errors);
    }
    claim_statuses(&status, &Field::of(new, "spec"), errors);
    address_list(&status.child("podIPs"), errors);
    let host_ips = status.child("hostIPs");
    if let Some(first) = host_ips.items().first().map(|first| first.child("ip"))
        && first.text() != status.child("hostIP").text()
    {
        first.invalid("must be equal to `hostIP`", errors);
    }
    address_list(&host_ips, errors);
}

/// The claims that were made for a pod are of those that it names, and of its containers' resources
/// (`validatePodResourceClaimStatuses`, `validatePodExtendedResourceClaimStatus`).
fn claim_statuses(status: &Field, spec: &Field, errors: &mut FieldErrors) {
    let named: Vec<Field> = spec.each("resourceClaims").iter().map(|claim| claim.child("name")).collect();
    let mut seen = BTreeSet::new();
    for claim in status.each("resourceClaimStatuses") {
        let name = claim.child("name");
        if named.iter().all(|named| named.text() != name.text()) {
            name.invalid("must match the name of an entry in `spec.resourceClaims`", errors);
        }
        if !seen.insert(name.text()) {
            name.duplicate(errors);
        }
        let made = claim.child("resourceClaimName");
        if made.is_set() {
            made.invalid_each(dns1123_subdomain(made.text()), errors);
        }
    }
    let extended = status.child("extendedResourceClaimStatus");
    if extended.is_set() {
        request_mappings(&extended, spec, errors);
        extended.child("resourceClaimName").must_follow(dns1123_subdomain, errors);
    }
}

/// Which request of the claim is for which resource of which container.
fn request_mappings(extended: &Field, spec: &Field, errors: &mut FieldErrors) {
    let mappings = extended.each("requestMappings");
    if mappings.is_empty() {
        extended.child("requestMappings").required("at least one request mapping is required", errors);
    }
    let containers = lasting_containers(spec);
    let mut seen = BTreeSet::new();
    for mapping in mappings {
        let [container, resource, request] =
            ["containerName", "resourceName", "requestName"].map(|field| mapping.child(field));
        match containers.iter().find(|of| of.child("name").text() == container.text()) {
            None => container.invalid(NO_CONTAINER, errors),
            Some(of) => {
                let requests = of.child("resources.requests").members();
                if !requests.iter().any(|(name, _)| *name == resource.text()) {
                    resource.invalid(NOT_REQUESTED, errors);
                }
            }
        }
        // Upstream says it of the status, not of the mapping.
        request
            .shown_as(format!("{}.requestName", extended.path))
            .invalid_each(dns1123_label(request.text()), errors);
        let key = [container.text(), resource.text(), request.text()].map(str::to_owned);
        if !seen.insert(key) {
            [container, resource, request].iter().for_each(|field| field.duplicate(errors));
        }
    }
}

const NO_CONTAINER: &str =
    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
const NOT_REQUESTED: &str = "must match the extended resource name of an entry in spec.initContainers.resources.requests \
    or spec.containers.resources.requests";

/// The containers that a pod has from its start; ephemeral ones have no claims and no rules.
fn lasting_containers<'a>(spec: &Field<'a>) -> Vec<Field<'a>> {
    ["containers", "initContainers"].iter().flat_map(|list| spec.each(list)).collect()
}

/// What has ended for good does not run again.
fn state_transitions(
    new: &Field,
    old: &Field,
    pod: &Value,
    list: &str,
    restart_policy: &str,
    errors: &mut FieldErrors,
) {
    if restart_policy == "Always" {
        return;
    }
    for (at, was) in old.each(list).iter().enumerate() {
        let (name, ended) = (was.child("name").text(), was.child("state.terminated"));
        if !ended.is_set() || may_restart(pod, name, ended.child("exitCode").number(), restart_policy) {
            continue;
        }
        let runs = |status: &&Field| {
            status.child("name").text() == name && !status.child("state.terminated").is_set()
        };
        if new.each(list).iter().find(runs).is_some() {
            let path = format!("{}.{list}[{at}].state", new.path);
            errors.forbidden(path, "may not be transitioned to non-terminated state");
        }
    }
}

/// Whether a container is started again that ended with this code: by its own policy, that of its pod, or a
/// rule (`ContainerShouldRestart`, `AllContainersCouldRestart`).
fn may_restart(pod: &Value, name: &str, exit_code: i64, restart_policy: &str) -> bool {
    let spec = Field::of(pod, "spec");
    let containers = lasting_containers(&spec);
    let restarts_all = |container: &Field| {
        container
            .each("restartPolicyRules")
            .iter()
            .any(|rule| rule.child("action").text() == "RestartAllContainers")
    };
    if containers.iter().any(restarts_all) {
        return true;
    }
    let own = containers.iter().find(|container| container.child("name").text() == name);
    let policy = own.map(|own| own.child("restartPolicy").text()).filter(|policy| !policy.is_empty());
    match policy.unwrap_or(restart_policy) {
        "Always" => return true,
        "OnFailure" if exit_code != 0 => return true,
        _ => {}
    }
    own.is_some_and(|own| own.each("restartPolicyRules").iter().any(|rule| is_for(rule, exit_code)))
}

/// Whether a rule is for containers that end with this code.
fn is_for(rule: &Field, exit_code: i64) -> bool {
    let codes = rule.child("exitCodes");
    let is_named = codes.each("values").iter().any(|code| code.number() == exit_code);
    match codes.child("operator").text() {
        "In" => is_named,
        "NotIn" => !is_named,
        _ => false,
    }
}
