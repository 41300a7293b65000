//! Service: one stable address for many pods.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `services`
pub static SERVICES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Service", "services", "io.k8s.api.core.v1")
        .short(&["svc"])
        .in_categories(&["all"])
        .with(&[Subresource::Proxy, Subresource::Status])
        .selectable_by(&["spec.clusterIP", "spec.type"])
        .into()
});
