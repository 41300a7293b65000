//! RoleBinding and ClusterRoleBinding: who may do it.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `rolebindings`
pub static ROLE_BINDINGS: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "io.k8s.api.rbac.v1")
        .into()
});

/// `clusterrolebindings`
pub static CLUSTER_ROLE_BINDINGS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "rbac.authorization.k8s.io",
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "io.k8s.api.rbac.v1",
    )
    .cluster_scoped()
    .into()
});
