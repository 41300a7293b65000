//! Quota: what an object uses, and which quotas it uses it of (`k8s.io/apiserver/pkg/quota/v1` and
//! `pkg/quota/v1/evaluator`). Shared by admission, which charges, and the controller, which counts again.

pub mod measure;

pub mod claims;
pub mod devices;
pub mod pods;
mod scopes;
pub mod services;
mod surroundings;

use std::sync::Arc;

use serde_json::Value;

use super::kind::Kind;
use super::resources::Amounts;
use apimachinery::gvk::GroupResource;
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;
use measure::{Measure, MissingAmounts, one};

pub use scopes::{QuotaScope, scopes_of};
pub use surroundings::ClaimSurroundings;

/// Measures objects of one resource (`quota.Evaluator`).
#[derive(Clone)]
pub struct Evaluator {
    resource: GroupResource,
    measure: &'static dyn Measure,
    /// None where nobody has looked.
    around: Option<Arc<ClaimSurroundings>>,
}

impl Evaluator {
    /// For a kind; whatever it is, it can be counted.
    pub fn of(kind: &Kind) -> Evaluator {
        Evaluator { resource: kind.group_resource(), measure: kind.measure, around: None }
    }

    /// Whether an update of a part that it handles may change what is used (`Evaluator.Handles`).
    pub fn concerns(&self, old: &Value, new: &Value, subresource: &str) -> bool {
        self.measure.concerns(old, new, subresource)
    }

    /// Whether what is used depends on other objects, which [`Evaluator::among`] wants to have.
    pub fn looks_around(&self) -> bool {
        self.measure.looks_around()
    }

    /// As other objects are.
    pub fn among(mut self, around: ClaimSurroundings) -> Evaluator {
        self.around = Some(Arc::new(around));
        self
    }

    /// Whether writing this part of an object may change what is used.
    pub fn handles(&self, is_create: bool, subresource: &str) -> bool {
        self.measure.handles(is_create, subresource)
    }

    /// Whether it measures what a quota calls `name`.
    pub fn measures(&self, name: &str) -> bool {
        let is_known = || self.around.as_ref().is_none_or(|around| self.measure.is_known(name, around));
        name == self.count_name() || self.measure.measures(name) && is_known()
    }

    /// What an object uses; `now` ends the grace of pods.
    pub fn usage(&self, object: &Value, now: Time) -> Amounts {
        let mut usage = Amounts::from([(self.count_name(), one())]);
        let unknown = ClaimSurroundings::default();
        usage.extend(self.measure.usage(object, now, self.around.as_deref().unwrap_or(&unknown)));
        usage
    }

    /// What a quota on `required` demands of the object itself (`Constraints`): containers that say what they
    /// need.
    ///
    /// # Errors
    /// `must specify limits.cpu for: c; ...`
    pub fn constraints(&self, required: &[&str], object: &Value) -> Result<(), MissingAmounts> {
        self.measure.constraints(required, object)
    }

    /// Whether an object is in a scope.
    pub fn is_in(&self, scope: &QuotaScope, object: &Value) -> bool {
        self.measure.is_in(scope, object)
    }

    /// Whether an object changed so that it may use less: what the controller looks for in updates.
    pub fn frees(&self, old: &Value, new: &Value) -> bool {
        self.measure.frees(old, new)
    }

    /// Whether a quota that limits `hard` in these scopes is about the object.
    pub fn matches(&self, hard: &Amounts, scopes: &[QuotaScope], object: &Value) -> bool {
        hard.keys().any(|name| self.measures(name)) && scopes.iter().all(|scope| self.is_in(scope, object))
    }

    /// `count/deployments.apps`
    fn count_name(&self) -> String {
        format!("count/{}", self.resource)
    }
}

/// The resources that a quota counts by `name`: that of `count/RESOURCE.GROUP`, or those with a name of old.
/// Devices may be asked for by pods and by claims.
pub fn measured_resources(name: &str) -> Vec<GroupResource> {
    if let Some(counted) = name.strip_prefix("count/") {
        let (resource, group) = counted.split_once('.').unwrap_or((counted, ""));
        return vec![GroupResource::new(group, resource)];
    }
    let kinds = crate::all();
    let measured = kinds.into_iter().filter(|kind| kind.measure.measures(name));
    measured.map(|kind| kind.group_resource()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{is_set, items, text};

    /// `resource`, `object`, what is `around` it, and what it uses.
    #[test]
    fn usage_is_upstreams() {
        let cases: Vec<Value> = serde_yaml::from_str(include_str!("../testdata/quota.yaml")).unwrap();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        for case in cases {
            let name = text(&case, "resource");
            let (resource, group) = name.split_once('.').unwrap_or((name, ""));
            let wanted = GroupResource::new(group, resource);
            let custom = Kind::builtin(group, "v1", "Custom", resource, "custom");
            let builtin = crate::all().into_iter().find(|kind| kind.group_resource() == wanted);
            let evaluator = Evaluator::of(builtin.map_or(&custom, |kind| kind));
            let list = |name: &str| -> Vec<Value> { items(&case, &format!("around.{name}")).to_vec() };
            let around = ClaimSurroundings::new(&list("classes"), list("pods"), list("claims"));
            let evaluator = if is_set(&case, "around") { evaluator.among(around) } else { evaluator };
            let usage = evaluator.usage(&case["object"], now);
            assert_eq!(to_value(&usage), case["usage"], "{case}");
            for name in usage.keys() {
                assert!(evaluator.measures(name), "{name}");
                assert!(measured_resources(name).contains(&evaluator.resource), "{name}");
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
