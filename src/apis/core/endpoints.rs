//! Endpoints: the addresses behind a service, all in one object.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `endpoints`
pub static ENDPOINTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Endpoints", "endpoints", "io.k8s.api.core.v1").short(&["ep"]).into()
});
