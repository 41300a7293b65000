//! CronJob, as its controller reads it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use apimachinery::object::nullable;
use apimachinery::time::Time;

/// `batch/v1.CronJob`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CronJob {
    /// The desired state, from whoever wrote the object.
    pub spec: CronJobSpec,
    /// The observed state, from whoever acts on the object.
    pub status: CronJobStatus,
}

/// `batch/v1.CronJobSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobSpec {
    /// As `*/5 * * * *`.
    pub schedule: String,
    /// As `Europe/Berlin`; none: that of the controller manager, which is UTC here.
    pub time_zone: Option<String>,
    /// A Job that could not be made in time is not made at all after so long.
    pub starting_deadline_seconds: Option<i64>,
    /// `Allow`, `Forbid`, `Replace`.
    pub concurrency_policy: String,
    /// No Jobs are made while this is set.
    pub suspend: bool,
    /// What a Job is made from, as it stands.
    #[serde(deserialize_with = "nullable")]
    pub job_template: Arc<Value>,
    /// So many Jobs that succeeded are kept; none: all.
    pub successful_jobs_history_limit: Option<i64>,
    /// So many Jobs that failed are kept; none: all.
    pub failed_jobs_history_limit: Option<i64>,
}

/// `batch/v1.CronJobStatus`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// The Jobs that run.
    #[serde(deserialize_with = "nullable")]
    pub active: Vec<ActiveJob>,
    /// The time that the last Job was due.
    pub last_schedule_time: Option<Time>,
    /// When a Job last completed.
    pub last_successful_time: Option<Time>,
}

/// `v1.ObjectReference` of a Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActiveJob {
    /// `batch/v1`
    pub api_version: String,
    /// `Job`
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The CronJob's.
    pub namespace: String,
    /// As it was created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Its uid.
    pub uid: String,
}
