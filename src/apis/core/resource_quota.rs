//! ResourceQuota: what all objects of a namespace together may ask for.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `resourcequotas`
pub static RESOURCE_QUOTAS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ResourceQuota", "resourcequotas", "io.k8s.api.core.v1")
        .short(&["quota"])
        .with(&[Subresource::Status])
        .into()
});
