//! `Lane`: where a step happened. Of a real cluster these would be processes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::step::{Step, WriteOperation};

pub(super) const APISERVER: &str = "kube-apiserver";
pub(super) const SCHEDULER: &str = "kube-scheduler";

/// One of four groups of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// kube-apiserver, with etcd behind it.
    Apiserver,
    /// kube-controller-manager and whoever else watches.
    Controllers,
    /// kube-scheduler.
    Scheduler,
    /// The kubelets of all nodes.
    Kubelets,
}

impl Lane {
    /// All of them, in the order of a request's way.
    pub const ALL: [Lane; 4] = [Lane::Apiserver, Lane::Controllers, Lane::Scheduler, Lane::Kubelets];

    /// Of a component by its name.
    pub fn of(component: &str) -> Lane {
        match component {
            APISERVER => Lane::Apiserver,
            SCHEDULER | "default-scheduler" => Lane::Scheduler,
            _ if component.starts_with("kubelet") => Lane::Kubelets,
            _ => Lane::Controllers,
        }
    }

    /// As people name it: `apiserver`, `controllers`, `scheduler`, `kubelets`.
    pub fn name(self) -> &'static str {
        match self {
            Lane::Apiserver => "apiserver",
            Lane::Controllers => "controllers",
            Lane::Scheduler => "scheduler",
            Lane::Kubelets => "kubelets",
        }
    }

    /// Its letter in its column.
    pub(super) fn letter(self) -> &'static str {
        match self {
            Lane::Apiserver => "A...",
            Lane::Controllers => ".C..",
            Lane::Scheduler => "..S.",
            Lane::Kubelets => "...K",
        }
    }
}

/// The resource whose updates say nothing but that somebody is still there.
const LEASES: &str = "leases.coordination.k8s.io";

/// Whether a write of this resource (as `pods`, `deployments.apps`) only says that somebody is still there:
/// an update of a lease. Kubelets and leaders write one every few seconds.
pub fn is_renewal(resource: &str, operation: WriteOperation) -> bool {
    operation == WriteOperation::Update && resource == LEASES
}

impl Step {
    /// A [`Step::Validated`] of which no more is known.
    pub const VALIDATED: Step = Step::Validated { plugins: None, changed: Vec::new() };

    /// An [`Step::InformerUpdated`] of which no more is known.
    pub fn informed(component: Arc<str>, resource: Arc<str>, key: Arc<str>, revision: u64) -> Step {
        Step::InformerUpdated {
            component,
            resource,
            key,
            revision,
            delta: None,
            callback: None,
            handlers: 0,
            deltas: 1,
            merged: 0,
            entry: None,
        }
    }

    /// Whether a field `component` says where it happened.
    pub fn names_component(&self) -> bool {
        use Step::*;
        matches!(self, Started { .. } | InformerUpdated { .. } | Listed { .. } | EventRecorded { .. })
    }

    /// The component that it happened in; none where that is whoever caused it.
    pub fn component(&self) -> Option<String> {
        use Step::*;
        Some(match self {
            Discovered { .. }
            | Routed(_)
            | Decoded(_)
            | ReadBack { .. }
            | RequestReceived { .. }
            | TraceContinued { .. }
            | Authenticated { .. }
            | NotAuthenticated { .. }
            | Impersonated { .. }
            | Authorized { .. }
            | NotAuthorized { .. }
            | Admitted { .. }
            | WebhookCalled(_)
            | Denied { .. }
            | Validated { .. }
            | PassedOn(_)
            | Stored { .. }
            | Terminating { .. }
            | Responded { .. }
            | DryRun { .. }
            | Refused { .. }
            | WatchDelivered { .. } => APISERVER.into(),
            Started { component, .. }
            | InformerUpdated { component, .. }
            | Listed { component, .. }
            | EventRecorded { component, .. } => component.to_string(),
            Enqueued { queue, .. } => format!("{queue}-controller"),
            ReconcileStarted { controller, .. } => format!("{controller}-controller"),
            ReconcileEnded { .. } => return None,
            SchedulingAttempt { .. } | Filtered { .. } | Scored { .. } | Assumed { .. } | Bound { .. } => {
                SCHEDULER.into()
            }
            PodWorkerSync { node, .. }
            | PodPrepared { node, .. }
            | SandboxCreated { node, .. }
            | ImagePulled { node, .. }
            | ContainerCreated { node, .. }
            | ContainerStarted { node, .. }
            | ContainerExited { node, .. }
            | SandboxStopped { node, .. } => format!("kubelet/{node}"),
        })
    }

    /// As `deployments.apps`, of a write.
    pub fn stores(&self) -> Option<&str> {
        match self {
            Step::Stored { resource, .. } => Some(resource),
            _ => None,
        }
    }

    /// The revision of the write that it is about, for those steps whose cause is that write.
    pub fn revision_seen(&self) -> Option<u64> {
        match self {
            Step::WatchDelivered { revision, .. } | Step::InformerUpdated { revision, .. } => Some(*revision),
            _ => None,
        }
    }
}
