//! IngressClass: who serves an Ingress.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `ingressclasses`
pub static INGRESS_CLASSES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "io.k8s.api.networking.v1")
        .cluster_scoped()
        .with_generation()
        .into()
});
