//! PodTemplate: a pod to be.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind};

/// `podtemplates`
pub static POD_TEMPLATES: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "PodTemplate", "podtemplates", "io.k8s.api.core.v1").with_generation().into()
});
