//! Job, as its controllers read it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use apimachinery::labels::LabelSelector;
use apimachinery::object::nullable;
use apimachinery::time::Time;

/// `batch/v1.Job`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Job {
    /// The desired state, from whoever wrote the object.
    pub spec: JobSpec,
    /// The observed state, from whoever acts on the object.
    pub status: JobStatus,
}

/// `batch/v1.JobSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// So many pods at a time; the server defaults it to 1.
    pub parallelism: Option<i64>,
    /// So many successes are wanted; none: the first one is enough.
    pub completions: Option<i64>,
    /// `NonIndexed` or `Indexed`.
    pub completion_mode: String,
    /// So many failures are borne; the server defaults it to 6.
    pub backoff_limit: Option<i64>,
    /// So many failures are borne of each index by itself.
    pub backoff_limit_per_index: Option<i64>,
    /// So many indexes may fail before the Job does.
    pub max_failed_indexes: Option<i64>,
    /// The Job fails when it is active for so long.
    pub active_deadline_seconds: Option<i64>,
    /// It has no pods while this is set.
    pub suspend: bool,
    /// What a failed pod means, by how it failed.
    pub pod_failure_policy: Option<PodFailurePolicy>,
    /// When it has succeeded although pods are missing.
    pub success_policy: Option<SuccessPolicy>,
    /// `TerminatingOrFailed` or `Failed`: when a pod is replaced.
    pub pod_replacement_policy: String,
    /// It is deleted so long after its end.
    pub ttl_seconds_after_finished: Option<i64>,
    /// Who looks after it; none: the Job controller.
    pub managed_by: Option<String>,
    /// Which pods.
    pub selector: LabelSelector,
    /// What a pod is made from, as it stands.
    #[serde(deserialize_with = "nullable")]
    pub template: Arc<Value>,
}

/// `batch/v1.PodFailurePolicy`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodFailurePolicy {
    /// The first that matches counts.
    #[serde(deserialize_with = "nullable")]
    pub rules: Vec<PodFailurePolicyRule>,
}

/// `batch/v1.PodFailurePolicyRule`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodFailurePolicyRule {
    /// `FailJob`, `FailIndex`, `Ignore`, `Count`.
    pub action: String,
    /// By the exit codes of containers.
    pub on_exit_codes: Option<OnExitCodes>,
    /// By the pod's conditions.
    #[serde(deserialize_with = "nullable")]
    pub on_pod_conditions: Vec<OnPodCondition>,
}

/// `batch/v1.PodFailurePolicyOnExitCodesRequirement`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OnExitCodes {
    /// Only this container; none: any.
    pub container_name: Option<String>,
    /// `In` or `NotIn`.
    pub operator: String,
    /// The codes.
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<i32>,
}

/// `batch/v1.PodFailurePolicyOnPodConditionsPattern`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OnPodCondition {
    /// As `DisruptionTarget`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
}

/// `batch/v1.SuccessPolicy`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SuccessPolicy {
    /// One that is met is enough.
    #[serde(deserialize_with = "nullable")]
    pub rules: Vec<SuccessPolicyRule>,
}

/// `batch/v1.SuccessPolicyRule`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessPolicyRule {
    /// As `0,2-4`.
    pub succeeded_indexes: Option<String>,
    /// So many of them, or of all.
    pub succeeded_count: Option<i64>,
}

/// `batch/v1.JobStatus`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// `Suspended`, `FailureTarget`, `SuccessCriteriaMet`, `Failed`, `Complete`.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<JobCondition>,
    /// When it was first, or again, not suspended.
    pub start_time: Option<Time>,
    /// When it was complete; failed Jobs have none.
    pub completion_time: Option<Time>,
    /// Pods that are neither at their end nor on their way out.
    pub active: i64,
    /// Pods that succeeded.
    pub succeeded: i64,
    /// Pods that failed.
    pub failed: i64,
    /// Pods that are on their way out.
    pub terminating: Option<i64>,
    /// As `1,3-5,7`.
    pub completed_indexes: String,
    /// As `1,3-5,7`; only beside `backoffLimitPerIndex`.
    pub failed_indexes: Option<String>,
    /// Pods that ended and still have the finalizer: the numbers above do not hold them yet.
    pub uncounted_terminated_pods: Option<UncountedTerminatedPods>,
    /// Active pods that are ready.
    pub ready: Option<i64>,
}

/// `batch/v1.UncountedTerminatedPods`: uids.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct UncountedTerminatedPods {
    /// Of pods that succeeded.
    #[serde(deserialize_with = "nullable")]
    pub succeeded: Vec<String>,
    /// Of pods that failed.
    #[serde(deserialize_with = "nullable")]
    pub failed: Vec<String>,
}

/// `batch/v1.JobCondition`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobCondition {
    /// As `Complete`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// When it was last looked at.
    pub last_probe_time: Option<Time>,
    /// When it last changed.
    pub last_transition_time: Option<Time>,
    /// For machines.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl JobSpec {
    /// Whether this release knows its completion mode: another one may have written to the store.
    pub fn has_known_mode(&self) -> bool {
        matches!(self.completion_mode.as_str(), "" | "NonIndexed" | "Indexed")
    }

    /// Whether each pod has an index, each of which must succeed once.
    pub fn is_indexed(&self) -> bool {
        self.completion_mode == "Indexed"
    }

    /// Whether a pod is replaced only when it has ended, not as soon as it is on its way out.
    pub fn replaces_only_failed(&self) -> bool {
        self.pod_replacement_policy == "Failed" || self.pod_failure_policy.is_some()
    }

    /// Another controller that looks after it.
    pub fn external_controller(&self) -> Option<&str> {
        self.managed_by.as_deref().filter(|name| *name != "kubernetes.io/job-controller")
    }
}

impl JobStatus {
    /// The condition of a type, if it is true.
    pub fn holds(&self, condition_type: &str) -> Option<&JobCondition> {
        let is_it = |it: &&JobCondition| it.condition_type == condition_type && it.status == "True";
        self.conditions.iter().find(is_it)
    }

    /// The condition that says that it ended, well or badly.
    pub fn finished(&self) -> Option<&JobCondition> {
        let is_end = |it: &&JobCondition| {
            matches!(it.condition_type.as_str(), "Complete" | "Failed") && it.status == "True"
        };
        self.conditions.iter().find(is_end)
    }
}
