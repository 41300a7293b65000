//! The group `batch/v1`.

mod indexes;
mod job_labels;
mod job_status_validation;
mod job_validation;

pub mod cron_job;
pub mod job;
pub mod schedule;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&job::JOBS, &cron_job::CRON_JOBS];
