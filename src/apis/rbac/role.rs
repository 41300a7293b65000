//! Role and ClusterRole: what may be done.

use std::sync::LazyLock;

use crate::apimachinery::names;
use crate::apis::kind::{Builtin, Kind};
use crate::apis::rules::{RULES, Rules};

/// `roles`
pub static ROLES: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "Role", "roles", "io.k8s.api.rbac.v1")
        .governed_by(Rules { allow_create_on_update: true, validate_name: names::path_segment_name, ..RULES })
        .into()
});

/// `clusterroles`
pub static CLUSTER_ROLES: Builtin = LazyLock::new(|| {
    Kind::builtin("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "io.k8s.api.rbac.v1")
        .cluster_scoped()
        .governed_by(Rules { allow_create_on_update: true, validate_name: names::path_segment_name, ..RULES })
        .into()
});
