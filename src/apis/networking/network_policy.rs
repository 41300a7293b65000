//! NetworkPolicy: who may talk to whom.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `networkpolicies`
pub static NETWORK_POLICIES: Builtin = LazyLock::new(|| {
    Kind::builtin("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "io.k8s.api.networking.v1")
        .short(&["netpol"])
        .with_generation()
        .into()
});
