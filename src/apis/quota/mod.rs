//! Quota: what an object uses, and which quotas it uses it of (`k8s.io/apiserver/pkg/quota/v1` and
//! `pkg/quota/v1/evaluator`). Shared by admission, which charges, and the controller, which counts again.

mod devices;
mod pods;
mod scopes;

use serde_json::Value;

use super::resources::{Amounts, amounts};
use super::tree::{annotation, at, count, items, number, text};
use apimachinery::gvk::GroupResource;
use apimachinery::quantity::{Format, Quantity};
use apimachinery::time::Time;

pub use scopes::{Scope, scopes_of};

/// How objects of one resource are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pods,
    Services,
    Claims,
    ResourceClaims,
    /// By number alone.
    Others,
}

/// Measures objects of one resource (`quota.Evaluator`).
#[derive(Clone, Debug)]
pub struct Evaluator {
    resource: GroupResource,
    kind: Kind,
}

/// Between a storage class and what is limited of it.
const BY_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIM_RESOURCES: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// Those of the core group that can be counted by their bare names.
const BARE_NAMES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

impl Evaluator {
    /// For a resource; whatever it is, it can be counted.
    pub fn of(resource: GroupResource) -> Evaluator {
        let kind = match (&*resource.group, &*resource.resource) {
            ("", "pods") => Kind::Pods,
            ("", "services") => Kind::Services,
            ("", "persistentvolumeclaims") => Kind::Claims,
            ("resource.k8s.io", "resourceclaims") => Kind::ResourceClaims,
            _ => Kind::Others,
        };
        Evaluator { resource, kind }
    }

    /// Whether writing this part of an object may change what is used.
    pub fn handles(&self, is_create: bool, subresource: &str) -> bool {
        match self.kind {
            Kind::Pods => is_create && subresource.is_empty() || !is_create && subresource == "resize",
            Kind::Services | Kind::ResourceClaims => subresource.is_empty(),
            Kind::Claims => matches!(subresource, "" | "status"),
            Kind::Others => is_create && subresource.is_empty(),
        }
    }

    /// Whether it measures what a quota calls `name`.
    pub fn measures(&self, name: &str) -> bool {
        if name == self.count_name() {
            return true;
        }
        match self.kind {
            Kind::Pods => pods::measures(name),
            Kind::Services => {
                matches!(name, "services" | "services.nodeports" | "services.loadbalancers")
            }
            Kind::Claims => {
                let of_class = name.split_once(BY_STORAGE_CLASS).map(|(_, of_class)| of_class);
                CLAIM_RESOURCES.contains(&of_class.unwrap_or(name))
            }
            Kind::ResourceClaims => devices::measures(name),
            Kind::Others => name == &*self.resource.resource && self.has_bare_name(),
        }
    }

    /// What an object uses; `now` ends the grace of pods.
    pub fn usage(&self, object: &Value, now: Time) -> Amounts {
        let mut usage = Amounts::from([(self.count_name(), one())]);
        match self.kind {
            Kind::Pods => usage.extend(pods::usage(object, now)),
            Kind::Services => usage.extend(service_usage(object)),
            Kind::Claims => usage.extend(claim_usage(object)),
            Kind::ResourceClaims => usage.extend(devices::usage(object)),
            Kind::Others if self.has_bare_name() => {
                usage.insert(self.resource.resource.to_string(), one());
            }
            Kind::Others => {}
        }
        usage
    }

    /// What a quota on `required` demands of the object itself (`Constraints`): containers that say what they
    /// need.
    ///
    /// # Errors
    /// `must specify limits.cpu for: c; ...`
    pub fn constraints(&self, required: &[&str], object: &Value) -> Result<(), String> {
        if self.kind == Kind::Pods { pods::constraints(required, object) } else { Ok(()) }
    }

    /// Whether an object is in a scope.
    pub fn is_in(&self, scope: &Scope, object: &Value) -> bool {
        match self.kind {
            Kind::Pods => scope.holds_pod(object),
            Kind::Claims => scope.holds_claim(object),
            Kind::Services | Kind::ResourceClaims | Kind::Others => false,
        }
    }

    /// Whether a quota that limits `hard` in these scopes is about the object.
    pub fn matches(&self, hard: &Amounts, scopes: &[Scope], object: &Value) -> bool {
        hard.keys().any(|name| self.measures(name)) && scopes.iter().all(|scope| self.is_in(scope, object))
    }

    /// `count/deployments.apps`
    fn count_name(&self) -> String {
        format!("count/{}", self.resource)
    }

    fn has_bare_name(&self) -> bool {
        self.resource.group.is_empty() && BARE_NAMES.contains(&&*self.resource.resource)
    }
}

/// The resource that a quota counts by `name`: `count/RESOURCE.GROUP`, or a name of old.
pub fn measured_resource(name: &str) -> GroupResource {
    if let Some(counted) = name.strip_prefix("count/") {
        let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
        return GroupResource::new(group, resource);
    }
    if devices::measures(name) {
        return GroupResource::new("resource.k8s.io", "resourceclaims");
    }
    let resource = match name {
        name if name.starts_with("services") => "services",
        name if CLAIM_RESOURCES.contains(&name) || name.contains(BY_STORAGE_CLASS) => {
            "persistentvolumeclaims"
        }
        name if BARE_NAMES.contains(&name) => name,
        _ => "pods",
    };
    GroupResource::new("", resource)
}

fn one() -> Quantity {
    Quantity::new(1, Format::DecimalSi)
}

fn service_usage(service: &Value) -> Amounts {
    let ports = i64::try_from(count(service, "spec.ports")).unwrap_or(i64::MAX);
    let explicit = items(service, "spec.ports").iter().filter(|port| number(port, "nodePort") != 0).count();
    let (node_ports, load_balancers) = match text(service, "spec.type") {
        "NodePort" => (ports, 0),
        "LoadBalancer" if at(service, "spec.allocateLoadBalancerNodePorts") == false => {
            (i64::try_from(explicit).unwrap_or(i64::MAX), 1)
        }
        "LoadBalancer" => (ports, 1),
        _ => (0, 0),
    };
    let number = |number| Quantity::new(number, Format::DecimalSi);
    Amounts::from([
        ("services".into(), one()),
        ("services.nodeports".into(), number(node_ports)),
        ("services.loadbalancers".into(), number(load_balancers)),
    ])
}

fn claim_usage(claim: &Value) -> Amounts {
    let class = match annotation(claim, "volume.beta.kubernetes.io/storage-class") {
        "" => text(claim, "spec.storageClassName"),
        beta => beta,
    };
    let mut usage = Amounts::from([("persistentvolumeclaims".into(), one())]);
    let requested = amounts(claim, "spec.resources.requests").remove("storage");
    let allocated = amounts(claim, "status.allocatedResources").remove("storage");
    if let Some(requested) = requested {
        usage.insert("requests.storage".into(), allocated.into_iter().fold(requested, Quantity::max));
    }
    if !class.is_empty() {
        let of_class = |(name, amount)| (format!("{class}{BY_STORAGE_CLASS}{name}"), amount);
        usage.extend(usage.clone().into_iter().map(of_class).collect::<Amounts>());
    }
    usage
}

/// Only the named amounts.
pub fn mask<'a>(all: &Amounts, names: impl IntoIterator<Item = &'a String>) -> Amounts {
    names.into_iter().filter_map(|name| Some((name.clone(), all.get(name)?.clone()))).collect()
}

/// What is more than before, never less than nothing (`SubtractWithNonNegativeResult`).
pub fn increase(new: &Amounts, old: &Amounts) -> Amounts {
    let mut increase = new.clone();
    for (name, amount) in &mut increase {
        if let Some(old) = old.get(name) {
            amount.sub(old);
        }
        if amount.sign() < 0 {
            *amount = Quantity::default();
        }
    }
    increase
}

/// As written in a status.
pub fn to_value(all: &Amounts) -> Value {
    all.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string()))).collect()
}

/// Whether a pod or a claim changed so that it uses less: what the controller looks for in updates.
pub fn frees(resource: &GroupResource, old: &Value, new: &Value) -> bool {
    let changed = |path: &str| at(old, path) != at(new, path);
    match (&*resource.group, &*resource.resource) {
        ("", "pods") => {
            let ended = |pod: &Value| matches!(text(pod, "status.phase"), "Succeeded" | "Failed");
            !ended(old) && ended(new) || changed("spec.containers")
        }
        ("", "services") => changed("spec.type") || changed("spec.ports"),
        ("", "persistentvolumeclaims") => {
            changed("status.allocatedResources")
                || changed("spec.resources")
                || changed("status.currentVolumeAttributesClassName")
        }
        ("resource.k8s.io", "resourceclaims") => changed("spec.devices"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `resource`, `object`, and what it uses.
    #[test]
    fn usage_is_upstreams() {
        let cases: Vec<Value> = serde_yaml::from_str(include_str!("../testdata/quota.yaml")).unwrap();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        for case in cases {
            let name = text(&case, "resource");
            let (resource, group) = name.split_once('.').unwrap_or((name, ""));
            let evaluator = Evaluator::of(GroupResource::new(group, resource));
            let usage = evaluator.usage(&case["object"], now);
            assert_eq!(to_value(&usage), case["usage"], "{case}");
            for name in usage.keys() {
                assert!(evaluator.measures(name), "{name}");
                assert_eq!(measured_resource(name), evaluator.resource, "{name}");
            }
        }
    }

    #[test]
    fn only_more_is_an_increase() {
        let list = |pairs: &[(&str, &str)]| -> Amounts {
            pairs.iter().map(|(name, text)| ((*name).into(), Quantity::parse(text).unwrap())).collect()
        };
        let increase =
            increase(&list(&[("a", "5"), ("b", "1"), ("c", "2")]), &list(&[("a", "3"), ("b", "2")]));
        assert_eq!(increase, list(&[("a", "2"), ("b", "0"), ("c", "2")]));
    }
}
