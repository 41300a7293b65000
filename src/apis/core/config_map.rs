//! ConfigMap: configuration as text, keyed.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `configmaps`
pub static CONFIG_MAPS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ConfigMap", "configmaps", "io.k8s.api.core.v1").short(&["cm"]).into()
});
