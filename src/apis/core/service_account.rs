//! ServiceAccount: the identity of what runs in a pod.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `serviceaccounts`
pub static SERVICE_ACCOUNTS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "ServiceAccount", "serviceaccounts", "io.k8s.api.core.v1")
        .short(&["sa"])
        .with(&[Subresource::Token])
        .into()
});
