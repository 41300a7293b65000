//! What a container does, and whether it is started again when it ends.

use crate::container_runtime::services::{ContainerId, Exit};
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};

/// What a container does now (`v1.ContainerState`).
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Not running yet, or not again.
    Waiting {
        /// As `ContainerCreating`.
        reason: String,
        /// For people.
        message: String,
    },
    /// Its process runs.
    Running {
        /// As `containerd://...`.
        id: ContainerId,
        /// Since when.
        started_at: Time,
    },
    /// Its process has ended.
    Terminated(Box<Terminated>),
}

/// How a container ended (`v1.ContainerStateTerminated`).
#[derive(Clone, Debug, PartialEq)]
pub struct Terminated {
    /// As `containerd://...`; empty when it never was.
    pub id: ContainerId,
    /// Its exit code, its reason, its last word.
    pub exit: Exit,
    /// When it started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
}

/// Whether a container that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// However it ended.
    Always,
    /// When it failed.
    OnFailure,
    /// It is never started again.
    Never,
}

impl RestartPolicy {
    /// Of a container of a pod: an init container that succeeded is not repeated, a sidecar always is.
    pub fn of(pod: &Pod, spec: &Spec, is_init: bool) -> RestartPolicy {
        let policy = spec.restart_policy.as_deref().unwrap_or(&pod.spec.restart_policy);
        match policy {
            "Never" => RestartPolicy::Never,
            "Always" | "" if !is_init || spec.restart_policy.is_some() => RestartPolicy::Always,
            _ => RestartPolicy::OnFailure,
        }
    }

    pub(crate) fn restarts(self, exit_code: i32) -> bool {
        match self {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => exit_code != 0,
            RestartPolicy::Never => false,
        }
    }
}

/// Whether an init container stays beside the others; another restart policy than `Always` makes none of it.
pub(crate) fn is_sidecar(spec: &Spec) -> bool {
    spec.restart_policy.as_deref() == Some("Always")
}

pub(crate) fn waiting(reason: &str, message: &str) -> State {
    State::Waiting { reason: reason.into(), message: message.into() }
}
