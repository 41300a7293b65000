//! `Measure`: what a quota measures of the objects of a kind beside how many there are (what the evaluators
//! of `pkg/quota/v1/evaluator` do differently).

use serde_json::Value;

use super::scopes::QuotaScope;
use super::surroundings::ClaimSurroundings;
use crate::resources::Amounts;
use apimachinery::quantity::{Format, Quantity};
use apimachinery::time::Time;

golang::text_error! {
    /// What containers do not say and a quota wants to know; in upstream's words.
    pub struct MissingAmounts;
}

/// How objects of a kind are measured; the default counts them.
pub trait Measure: Send + Sync {
    /// Whether writing this part of an object may change what is used.
    fn handles(&self, is_create: bool, subresource: &str) -> bool {
        is_create && subresource.is_empty()
    }

    /// Whether an update of a part that it handles may change what is used, now that it is known.
    fn concerns(&self, _old: &Value, _new: &Value, _subresource: &str) -> bool {
        true
    }

    /// Whether it measures what a quota calls `name`.
    fn measures(&self, _name: &str) -> bool {
        false
    }

    /// Whether what is used depends on other objects, too.
    fn looks_around(&self) -> bool {
        false
    }

    /// Whether anything can be used of what it measures by that name, as the other objects are.
    fn is_known(&self, _name: &str, _around: &ClaimSurroundings) -> bool {
        true
    }

    /// What an object uses; `now` ends the grace of pods.
    fn usage(&self, _object: &Value, _now: Time, _around: &ClaimSurroundings) -> Amounts {
        Amounts::new()
    }

    /// What a quota on `required` demands of the object itself.
    ///
    /// # Errors
    /// `must specify limits.cpu for: c; ...`
    fn constraints(&self, _required: &[&str], _object: &Value) -> Result<(), MissingAmounts> {
        Ok(())
    }

    /// Whether an object is in a scope.
    fn is_in(&self, _scope: &QuotaScope, _object: &Value) -> bool {
        false
    }

    /// Whether an object changed so that it may use less.
    fn frees(&self, _old: &Value, _new: &Value) -> bool {
        false
    }
}

/// By number alone, as `count/deployments.apps`.
pub struct ByNumber;

impl Measure for ByNumber {}

/// By number, and known to quotas by a name of old beside `count/NAME`.
pub struct ByBareName(pub &'static str);

impl Measure for ByBareName {
    fn measures(&self, name: &str) -> bool {
        name == self.0
    }

    fn usage(&self, _object: &Value, _now: Time, _around: &ClaimSurroundings) -> Amounts {
        Amounts::from([(self.0.into(), one())])
    }
}

/// One object.
pub(super) fn one() -> Quantity {
    Quantity::new(1, Format::DecimalSi)
}
