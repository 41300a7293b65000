//! Resource names and quantities (`ValidateResourceRequirements`, `pkg/apis/core/helper`).

use serde_json::Value;

use super::{Field, NOT_NEGATIVE};
use apimachinery::field_error::FieldErrors;
use apimachinery::names::qualified_name;
use apimachinery::quantity::Quantity;

const CONTAINER: &[&str] = &["cpu", "memory", "ephemeral-storage"];
const OBJECTS: &[&str] = &[
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const QUOTA: &[&str] = &[
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// What a resource may be called, by where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourcePlace {
    /// In a container, and in limit ranges of pods and containers.
    Container,
    /// In a pod.
    Pod,
    /// In a resource quota.
    Quota,
    /// In limit ranges of anything else.
    Any,
}

/// The quantity of a field; zero when there is none. That it is one is seen to in decoding.
pub fn quantity(field: &Field) -> Quantity {
    Quantity::parse(field.text()).unwrap_or_default()
}

/// A resource's name; the field is its value.
pub fn resource_name(name: &str, field: &Field, place: ResourcePlace, errors: &mut FieldErrors) {
    let before = errors.0.len();
    let value: Value = name.into();
    let field = Field { path: field.path.clone(), value: &value };
    field.invalid_each(qualified_name(name), errors);
    let is_plain = !name.contains('/');
    if errors.0.len() == before && is_plain && !is_standard(name) {
        field.invalid("must be a standard resource type or fully qualified", errors);
    }
    match place {
        ResourcePlace::Pod if errors.0.len() > before => {}
        ResourcePlace::Container if is_plain && !is_container_standard(name) => {
            field.invalid("must be a standard resource for containers", errors);
        }
        ResourcePlace::Container if !is_plain && !is_native(name) && !is_extended(name) => {
            field.invalid("doesn't follow extended resource name standard", errors);
        }
        ResourcePlace::Pod if !matches!(name, "cpu" | "memory") && !is_huge_page(name) => {
            field.not_supported(&["cpu", "hugepages-", "memory"], errors);
        }
        ResourcePlace::Quota if is_plain && !is_quota_standard(name) => {
            field.invalid("must be a standard resource for quota", errors);
        }
        _ => {}
    }
}

/// `IsExtendedResourceName`: the field is the name.
pub fn extended_resource_name(field: &Field, errors: &mut FieldErrors) {
    if !is_extended(field.text()) {
        field.invalid("must be a valid extended resource name", errors);
    }
}

/// `ValidateResourceQuantityValue`
pub fn resource_quantity(name: &str, field: &Field, errors: &mut FieldErrors) {
    let quantity = quantity(field);
    if quantity.sign() < 0 {
        field.invalid(NOT_NEGATIVE, errors);
    }
    if (OBJECTS.contains(&name) || is_extended(name)) && quantity.milli_value() % 1000 != 0 {
        field.invalid("must be an integer", errors);
    }
}

/// `validateResourceRequirements`
pub fn requirements(field: &Field, place: ResourcePlace, errors: &mut FieldErrors) {
    let (limits, requests) = (field.child("limits"), field.child("requests"));
    for (name, limit) in limits.members() {
        resource_name(name, &limit, place, errors);
        resource_quantity(name, &limit, errors);
        huge_page(name, &limit, errors);
    }
    for (name, request) in requests.members() {
        resource_name(name, &request, place, errors);
        resource_quantity(name, &request, errors);
        request_within_limit(name, &request, &limits, &requests, errors);
        huge_page(name, &request, errors);
    }
    let names = || limits.members().into_iter().chain(requests.members()).map(|(name, _)| name);
    if names().any(is_huge_page) && !names().any(|name| matches!(name, "cpu" | "memory")) {
        field.forbidden("HugePages require cpu or memory", errors);
    }
}

fn request_within_limit(
    name: &str,
    request: &Field,
    limits: &Field,
    requests: &Field,
    errors: &mut FieldErrors,
) {
    let shown = request.shown_as(requests.path.as_str());
    let limit = limits.value.get(name).map(|value| Field { path: limits.path.clone(), value });
    match limit {
        Some(limit) if !may_overcommit(name) && quantity(request) != quantity(&limit) => {
            shown.invalid(format!("must be equal to {name} limit of {}", limit.text()), errors);
        }
        Some(limit) if quantity(request) > quantity(&limit) => {
            shown.invalid(format!("must be less than or equal to {name} limit of {}", limit.text()), errors);
        }
        None if !may_overcommit(name) => {
            limits.required("Limit must be set for non overcommitable resources", errors);
        }
        _ => {}
    }
}

fn huge_page(name: &str, field: &Field, errors: &mut FieldErrors) {
    let Some(size) = name.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok()) else {
        return;
    };
    let value = quantity(field);
    if size.sign() <= 0 || value.value() % size.value() != 0 {
        field.invalid(format!("{} is not positive integer multiple of {name}", field.text()), errors);
    }
}

/// Whether more of it may be limited than requested (`IsOvercommitAllowed`).
pub fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// `IsStandardQuotaResourceName`
pub fn is_quota_standard(name: &str) -> bool {
    CONTAINER.contains(&name)
        || OBJECTS.contains(&name)
        || QUOTA.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

fn is_standard(name: &str) -> bool {
    name == "storage" || is_quota_standard(name)
}

fn is_container_standard(name: &str) -> bool {
    CONTAINER.contains(&name) || is_huge_page(name)
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// `IsExtendedResourceName`
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && qualified_name(&format!("requests.{name}")).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_limits_and_names() {
        for (resources, wrong) in [
            (json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1000m", "memory": "1Gi"}}), "[]"),
            (
                json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
                "r.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ),
            (
                json!({"limits": {"gpu": "1"}}),
                "[r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified, \
                 r.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for containers]",
            ),
            (
                json!({"limits": {"pods": "1"}}),
                "r.limits[pods]: Invalid value: \"pods\": must be a standard resource for containers",
            ),
            (
                json!({"limits": {"cpu": "-1"}}),
                "r.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            ),
            (
                json!({"limits": {"a.b/c": "500m"}}),
                "r.limits[a.b/c]: Invalid value: \"500m\": must be an integer",
            ),
            (
                json!({"requests": {"a.b/c": "1"}}),
                "r.limits: Required value: Limit must be set for non overcommitable resources",
            ),
        ] {
            let tree = json!({"r": resources});
            let mut errors = FieldErrors::default();
            requirements(&Field::of(&tree, "r"), ResourcePlace::Container, &mut errors);
            assert_eq!(errors.to_string(), wrong);
        }
    }
}
