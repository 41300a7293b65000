//! `HeldStep`: what is about to happen, and waits because somebody steps the cluster.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::recorded::StepId;

/// Where steps are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldStage {
    /// A request that would change something has been authenticated, and waits in front of the limits.
    Request,
    /// An admission plugin is about to be asked.
    Admission,
    /// An object is about to be written to etcd.
    Write,
    /// An informer is about to put a watch event into its cache and to tell its handlers.
    Watch,
    /// A worker of a controller has taken a key from its queue.
    Reconcile,
    /// The scheduler has taken a pod from its queue.
    Scheduling,
    /// A kubelet's pod worker is about to sync its pod.
    Sync,
}

impl HeldStage {
    /// All of them, in the order of a request's way.
    pub const ALL: [HeldStage; 7] = [
        HeldStage::Request,
        HeldStage::Admission,
        HeldStage::Write,
        HeldStage::Watch,
        HeldStage::Reconcile,
        HeldStage::Scheduling,
        HeldStage::Sync,
    ];

    /// As it is written: `write`.
    pub fn name(self) -> &'static str {
        match self {
            HeldStage::Request => "request",
            HeldStage::Admission => "admission",
            HeldStage::Write => "write",
            HeldStage::Watch => "watch",
            HeldStage::Reconcile => "reconcile",
            HeldStage::Scheduling => "scheduling",
            HeldStage::Sync => "sync",
        }
    }

    /// Whether a client waits for it, who may give up.
    pub(super) fn is_asked_for(self) -> bool {
        matches!(self, HeldStage::Request | HeldStage::Admission | HeldStage::Write)
    }
}

/// A step before it happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldStep {
    /// Its number among those that were held; the gate gives it.
    pub number: u64,
    /// What is about to happen.
    pub stage: HeldStage,
    /// Where: `kube-apiserver`, `kubelet/node-1`.
    pub component: Arc<str>,
    /// Of a request its verb, of admission the plugin, of a reconcile the controller, else the resource.
    pub of: Arc<str>,
    /// Which object: `default/web`; of a request its path.
    pub object: Arc<str>,
    /// The step that led to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<StepId>,
    /// The breakpoint that it ran into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakpoint: Option<Arc<str>>,
}

impl HeldStep {
    /// In the apiserver.
    pub fn in_apiserver(stage: HeldStage, of: Arc<str>, object: Arc<str>) -> HeldStep {
        HeldStep::new(stage, super::lane::APISERVER.into(), of, object)
    }

    /// In the scheduler; `object` is the pod.
    pub fn in_scheduler(object: Arc<str>) -> HeldStep {
        HeldStep::new(HeldStage::Scheduling, super::lane::SCHEDULER.into(), "pods".into(), object)
    }

    /// In some component.
    pub fn new(stage: HeldStage, component: Arc<str>, of: Arc<str>, object: Arc<str>) -> HeldStep {
        HeldStep { number: 0, stage, component, of, object, cause: None, breakpoint: None }
    }

    /// With what led to it.
    #[must_use]
    pub fn caused_by(self, cause: Option<StepId>) -> HeldStep {
        HeldStep { cause, ..self }
    }
}

impl fmt::Display for HeldStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldStep { component, of, object, .. } = self;
        match self.stage {
            HeldStage::Request => write!(out, "{component}: before the request to {of} {object}"),
            HeldStage::Admission => {
                write!(out, "{component}: before the admission plugin {of} sees {object}")
            }
            HeldStage::Write => write!(out, "{component}: before the write of {of} {object} to etcd"),
            HeldStage::Watch => write!(out, "{component}: before its informer takes in {of} {object}"),
            HeldStage::Reconcile => {
                write!(out, "{component}: before the {of} controller reconciles {object}")
            }
            HeldStage::Scheduling => write!(out, "{component}: before the scheduling cycle of {object}"),
            HeldStage::Sync => write!(out, "{component}: before the sync of {object}"),
        }
    }
}
