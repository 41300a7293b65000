//! EndpointSlice: some of the addresses behind a service.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `endpointslices`
pub static ENDPOINT_SLICES: Builtin = LazyLock::new(|| {
    Kind::builtin("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "io.k8s.api.discovery.v1")
        .with_generation()
        .into()
});
