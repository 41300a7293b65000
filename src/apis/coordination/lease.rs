//! Lease: who holds something, and until when.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `leases`
pub static LEASES: Builtin = LazyLock::new(|| {
    Kind::builtin("coordination.k8s.io", "v1", "Lease", "leases", "io.k8s.api.coordination.v1").into()
});
