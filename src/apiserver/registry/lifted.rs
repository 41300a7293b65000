//! What is refused only as long as a feature gate is off (`HorizontalPodAutoscalerSpecValidationOptions`).

use serde_json::Value;

use apimachinery::feature_gates::FeatureGates;
use apimachinery::field_error::FieldErrors;
use apis::kind::Kind;
use apis::tree::{items, text};

/// Autoscalers may have no replicas at all, when something can be measured without them.
const SCALE_TO_ZERO: &str = "HPAScaleToZero";
const LEAST: &str = "spec.minReplicas";
const WITHOUT_METRIC: &str =
    "must specify at least one Object or External metric to support scaling to zero replicas";

/// Takes the errors back that a gate lifts, and puts those in their place that follow from it.
pub(super) fn lift(kind: &Kind, gates: &FeatureGates, new: &Value, errors: &mut FieldErrors) {
    if &*kind.plural != "horizontalpodautoscalers" || !gates.enabled(SCALE_TO_ZERO) {
        return;
    }
    let count = errors.0.len();
    errors.0.retain(|error| error.path != LEAST || error.shown != "0");
    let is_lifted = errors.0.len() < count;
    let is_own = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if is_lifted && !items(new, "spec.metrics").iter().any(is_own) {
        errors.forbidden("spec.metrics", WITHOUT_METRIC);
    }
}
