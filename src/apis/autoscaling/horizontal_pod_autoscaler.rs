//! HorizontalPodAutoscaler: replicas by load.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `horizontalpodautoscalers`
pub static HORIZONTAL_POD_AUTOSCALERS: Builtin = LazyLock::new(|| {
    Kind::builtin(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "io.k8s.api.autoscaling.v2",
    )
    .short(&["hpa"])
    .in_categories(&["all"])
    .with(&[Subresource::Status])
    .into()
});
