//! LimitRange: what one object in a namespace may ask for.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `limitranges`
pub static LIMIT_RANGES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "LimitRange", "limitranges", "io.k8s.api.core.v1").short(&["limits"]).into()
});
