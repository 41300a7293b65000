//! CronJob of `batch/v1beta1`, field for field what it is today, and of `batch/v2alpha1`, which went before
//! the latest fields came.

use std::sync::LazyLock;

use serde_json::Value;

use crate::batch::cron_job::CRON_JOBS;
use crate::kind::{Builtin, Kind, StoredAs};
use crate::tree::remove;

/// `cronjobs.v1beta1.batch`
pub(super) static BATCH_V1BETA1: Builtin = LazyLock::new(|| {
    let why = "batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+; use batch/v1 CronJob";
    cron_job("v1beta1", "io.k8s.api.batch.v1beta1", |tree| tree).deprecated(why).into()
});

/// `cronjobs.v2alpha1.batch`
pub(super) static BATCH_V2ALPHA1: Builtin = LazyLock::new(|| {
    let kind = cron_job("v2alpha1", "io.k8s.api.batch.v2alpha1", without_later_fields);
    // It was gone before there were any.
    kind.resets(&[]).status_resets(&[]).into()
});

fn cron_job(version: &str, definitions: &str, decode: fn(Value) -> Value) -> Kind {
    Kind::builtin("batch", version, "CronJob", "cronjobs", definitions)
        .looking_like(&CRON_JOBS)
        .stored_as(StoredAs { kind: &CRON_JOBS, encode: |tree| tree, decode })
}

fn without_later_fields(mut cron_job: Value) -> Value {
    remove(&mut cron_job, "spec.timeZone");
    remove(&mut cron_job, "status.lastSuccessfulTime");
    cron_job
}
