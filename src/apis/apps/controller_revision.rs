//! ControllerRevision: a past template of a StatefulSet or DaemonSet.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `controllerrevisions`
pub static CONTROLLER_REVISIONS: Builtin = LazyLock::new(|| {
    Kind::builtin("apps", "v1", "ControllerRevision", "controllerrevisions", "io.k8s.api.apps.v1").into()
});
