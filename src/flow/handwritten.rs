//! A record that is written down by hand, for tests.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;

use super::{Flow, Step, StepId, WriteOperation};
use clock::Clock;

/// A cluster's record, written down by hand.
pub(crate) struct Handwritten {
    pub(crate) flow: Flow,
    pub(crate) clock: Clock,
}

impl Handwritten {
    pub(crate) fn new() -> Handwritten {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        Handwritten { flow: Flow::new(clock.clone()), clock }
    }

    pub(crate) fn step(&self, cause: Option<StepId>, step: Step) -> Option<StepId> {
        self.clock.advance(Duration::from_micros(120));
        self.flow.record(cause, step).cause()
    }

    /// A request, as far as its write, and its answer.
    pub(crate) fn write(
        &self,
        cause: Option<StepId>,
        user: &str,
        resource: &str,
        name: &str,
        revision: u64,
    ) -> Option<StepId> {
        let path: Arc<str> = format!("/apis/apps/v1/namespaces/ns/{resource}").into();
        let request = Step::RequestReceived { user: user.into(), verb: "create".into(), path };
        let request = self.step(cause, request);
        let (namespace, name, operation) = ("ns".into(), name.into(), WriteOperation::Create);
        let stored = Step::Stored {
            resource: resource.into(),
            namespace,
            name,
            revision,
            operation,
            uid: None,
            bytes: 0,
        };
        let stored = self.step(request, stored);
        self.step(stored, Step::Responded { code: 201, audit_id: None });
        stored
    }

    /// A key's round through its queue, because of a step.
    pub(crate) fn reconcile_after(
        &self,
        cause: Option<StepId>,
        controller: &str,
        key: &str,
        retries: u32,
        delay_milliseconds: u64,
    ) -> Option<StepId> {
        let (queue, text) = (controller.into(), key.into());
        let enqueued = self.step(cause, Step::Enqueued { queue, key: text, retries, delay_milliseconds });
        let controller = controller.into();
        self.step(enqueued, Step::ReconcileStarted { controller, key: key.into(), coalesced: 0 })
    }

    pub(crate) fn reconcile(
        &self,
        resource: &str,
        controller: &str,
        key: &str,
        revision: u64,
    ) -> Option<StepId> {
        let (component, resource) = ("kube-controller-manager".into(), resource.into());
        let informed = Step::informed(component, resource, key.into(), revision);
        let informed = self.step(None, informed);
        let enqueued = self.step(informed, enqueued_as(controller, key));
        self.step(
            enqueued,
            Step::ReconcileStarted { controller: controller.into(), key: key.into(), coalesced: 0 },
        )
    }
}

fn enqueued_as(queue: &str, key: &str) -> Step {
    Step::Enqueued { queue: queue.into(), key: key.into(), retries: 0, delay_milliseconds: 0 }
}

/// A deployment, what comes of it, and something else that has nothing to do with it.
pub(crate) fn deployment() -> Handwritten {
    let story = Handwritten::new();
    story.write(None, "", "configmaps", "other", 6);
    story.write(None, "", "deployments.apps", "web", 7);
    let deployment = story.reconcile("deployments.apps", "deployment", "ns/web", 7);
    story.write(deployment, "deployment-controller", "replicasets.apps", "web-5d4", 8);
    story.reconcile("configmaps", "other", "ns/other", 6);
    let (component, object) = ("deployment-controller".into(), "ns/web".into());
    let (reason, message) = ("ScalingReplicaSet".into(), "".into());
    let event = Step::EventRecorded { component, object, reason, message, warning: false, host: None };
    story.step(deployment, event);
    story.step(deployment, Step::ReconcileEnded { result: "done".into(), compared: None });
    let replica_set = story.reconcile("replicasets.apps", "replicaset", "ns/web-5d4", 8);
    story.write(replica_set, "replicaset-controller", "pods", "web-5d4-x", 9);
    let (component, resource, key) = ("kube-scheduler".into(), "pods".into(), "ns/web-5d4-x".into());
    let seen = story.step(None, Step::informed(component, resource, key, 9));
    let pod = "ns/web-5d4-x";
    let attempt = story.step(seen, Step::SchedulingAttempt { pod: pod.into() });
    story.step(attempt, Step::Filtered { pod: pod.into(), feasible: 2, nodes: 3, refusals: vec![] });
    let (node, pod) = ("node-1".into(), pod.into());
    let sync = story.step(attempt, Step::PodWorkerSync { node, pod, state: "sync".into() });
    let (node, pod, container) =
        ("node-1".into(), "ns/web-5d4-x".into(), "nginx-with-a-name-too-long-for-it".into());
    story.step(sync, Step::ContainerStarted { node, pod, container });
    story
}
