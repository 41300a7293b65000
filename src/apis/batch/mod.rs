//! The group `batch/v1`.

pub mod cron_job;
pub mod job;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&job::JOBS, &cron_job::CRON_JOBS];
