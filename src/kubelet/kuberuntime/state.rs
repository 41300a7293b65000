//! What a container does, and whether it is started again when it ends.

use crate::container_runtime::services::{ContainerId, Exit};
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};

/// What a container does now (`v1.ContainerState`).
#[derive(Clone, Debug, PartialEq)]
pub enum KubeContainerState {
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
    Terminated(Box<ContainerEnd>),
}

/// How a container ended (`v1.ContainerStateTerminated`).
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerEnd {
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
    /// It is stopped for good: no rule starts it again either.
    Ended,
}

/// What a rule has done when a container has ended (`v1.ContainerRestartRuleAction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartAction {
    /// It is started again.
    Restart,
    /// All containers of the pod are.
    RestartAll,
}

const RESTART_ALL: &str = "RestartAllContainers";

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
            RestartPolicy::Never | RestartPolicy::Ended => false,
        }
    }
}

impl RestartAction {
    /// What the first rule of a container says that is for this end (`findMatchingContainerRestartRule`). An
    /// init container that has done its work is not asked.
    pub(crate) fn of(pod: &Pod, spec: &Spec, exit_code: i32) -> Option<RestartAction> {
        let rule = spec.restart_policy_rules.iter().find(|rule| rule.matches(exit_code))?;
        let is_init = pod.spec.init_containers.iter().any(|init| init.name == spec.name);
        if is_init && exit_code == 0 && !is_sidecar(spec) {
            return None;
        }
        match rule.action.as_str() {
            "Restart" => Some(RestartAction::Restart),
            RESTART_ALL => Some(RestartAction::RestartAll),
            _ => None,
        }
    }
}

/// Whether a container of the pod may have all of them started again (`AllContainersCouldRestart`).
pub(crate) fn may_restart_all(pod: &Pod) -> bool {
    let rules = |spec: &Spec| spec.restart_policy_rules.iter().any(|rule| rule.action == RESTART_ALL);
    pod.spec.init_containers.iter().chain(&pod.spec.containers).any(rules)
}

/// Whether an init container stays beside the others; another restart policy than `Always` makes none of it.
pub(crate) fn is_sidecar(spec: &Spec) -> bool {
    spec.restart_policy.as_deref() == Some("Always")
}

pub(crate) fn waiting(reason: &str, message: &str) -> KubeContainerState {
    KubeContainerState::Waiting { reason: reason.into(), message: message.into() }
}
