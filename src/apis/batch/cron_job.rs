//! CronJob: Jobs by the clock.

use std::sync::LazyLock;

use crate::apis::kind::{Builtin, Kind, Subresource};

/// `cronjobs`
pub static CRON_JOBS: Builtin = LazyLock::new(|| {
    Kind::builtin("batch", "v1", "CronJob", "cronjobs", "io.k8s.api.batch.v1")
        .short(&["cj"])
        .in_categories(&["all"])
        .with(&[Subresource::Status])
        .with_generation()
        .into()
});
