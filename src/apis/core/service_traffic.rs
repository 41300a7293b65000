//! Where the traffic of a Service comes from (`k8s.io/kubernetes/pkg/api/service`).

use serde_json::Value;

use crate::tree::{count, text};

/// `service.NeedsHealthCheck`
pub(super) fn needs_health_check(service: &Value) -> bool {
    text(service, "spec.type") == "LoadBalancer" && text(service, "spec.externalTrafficPolicy") == "Local"
}

/// `service.ExternallyAccessible`
pub(super) fn is_external(service: &Value) -> bool {
    match text(service, "spec.type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => count(service, "spec.externalIPs") > 0,
        _ => false,
    }
}
