//! Versions that Kubernetes has stopped to serve, for texts and clients that still speak them; served on
//! request (`--runtime-config=api/legacy=true`). Each is another form of today's object, which is stored.

mod cron_jobs;
mod deployments;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &deployments::APPS_V1BETA1,
    &deployments::APPS_V1BETA2,
    &deployments::EXTENSIONS_V1BETA1,
    &cron_jobs::BATCH_V1BETA1,
    &cron_jobs::BATCH_V2ALPHA1,
];
