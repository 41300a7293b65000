//! Role and ClusterRole: what may be done.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `roles`
pub static ROLES: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "Role", "roles", "io.k8s.api.rbac.v1").into()
});

/// `clusterroles`
pub static CLUSTER_ROLES: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "io.k8s.api.rbac.v1")
        .cluster_scoped()
        .into()
});
