//! Ingress: HTTP from outside to services.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `ingresses`
pub static INGRESSES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "Ingress", "ingresses", "io.k8s.api.networking.v1")
        .short(&["ing"])
        .with(&[Subresource::Status])
        .with_generation()
        .into()
});
