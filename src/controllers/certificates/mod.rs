//! CertificateSigningRequests: approved, signed, and taken away again (`pkg/controller/certificates`).
//!
//! In come requests, out go conditions and certificates. Who signs is handed in: these must not know a key.

pub(crate) mod approver;
pub(crate) mod cleaner;
pub(crate) mod signer;

use serde_json::{Value, json};

use apimachinery::time::{Time, rfc3339};
use apis::tree::{items, object_mut, text, texts};

/// The ServiceAccount of kube-system in whose name they ask.
pub(super) const SERVICE_ACCOUNT: &str = "certificate-controller";
/// Signs client certificates of kubelets.
pub(super) const KUBELET_CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// Whether a condition of the type is true (`HasTrueCondition`).
fn has_condition(request: &Value, condition_type: &str) -> bool {
    let is = |condition: &Value| {
        text(condition, "type") == condition_type && matches!(text(condition, "status"), "True" | "")
    };
    items(request, "status.conditions").iter().any(is)
}

/// `IsCertificateRequestApproved`: and not denied.
fn is_approved(request: &Value) -> bool {
    has_condition(request, "Approved") && !has_condition(request, "Denied")
}

fn usages(request: &Value) -> Vec<&str> {
    texts(request, "spec.usages")
}

fn add_condition(request: &mut Value, condition_type: &str, reason: &str, message: &str, now: Time) {
    let now = rfc3339(now);
    let condition = json!({
        "type": condition_type,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    });
    let conditions = object_mut(request, "status").entry("conditions").or_insert(Value::Null);
    match conditions {
        Value::Array(list) => list.push(condition),
        other => *other = json!([condition]),
    }
}
