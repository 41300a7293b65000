//! Secret: bytes that are not for everybody.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `secrets`
pub static SECRETS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Secret", "secrets", "io.k8s.api.core.v1").selectable_by(&["type"]).into()
});
