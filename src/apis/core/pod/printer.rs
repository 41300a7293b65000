//! What `kubectl get pods` shows: READY, STATUS and RESTARTS are worked out of what each container says.

use serde_json::{Value, json};

use crate::print::{name, or};
use crate::table::{Column, age, since};
use crate::views::meta::is_true;
use crate::views::pod::{ContainerStatus, Pod, Terminated};
use apimachinery::object::Object;
use apimachinery::time::Time;

const SPEC: &str = "io.k8s.api.core.v1.PodSpec";
const STATUS: &str = "io.k8s.api.core.v1.PodStatus";

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    let ready = "The aggregate readiness state of this pod for accepting traffic.";
    let status = "The aggregate status of the containers in this pod.";
    let restarts = "The number of times the containers in this pod have been restarted and when the last container in \
        this pod has restarted.";
    vec![
        Column::name(),
        Column::new("Ready", "string", ready),
        Column::new("Status", "string", status),
        Column::new("Restarts", "string", restarts),
        Column::age(),
        Column::of("IP", "string", STATUS, "podIP").wide(),
        Column::of("Node", "string", SPEC, "nodeName").wide(),
        Column::of("Nominated Node", "string", STATUS, "nominatedNodeName").wide(),
        Column::of("Readiness Gates", "string", SPEC, "readinessGates").wide(),
    ]
}

/// The row of a pod.
pub(super) fn cells(object: &Object, now: Time) -> Vec<Value> {
    // Not `Object::view`: the server keeps every pod, and must not keep a view of each that was once printed.
    let pod: Pod = serde_json::from_slice(&object.stored()).unwrap_or_default();
    let summary = Summary::of(&pod, object);
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, since(Some(last), now))
        }
        _ => summary.restarts.to_string(),
    };
    let ip = pod.status.pod_ips.first().map_or("", |pod_ip| pod_ip.ip.as_str());
    vec![
        name(object),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age(object, now),
        json!(or(ip, "<none>")),
        json!(or(&pod.spec.node_name, "<none>")),
        json!(or(&pod.status.nominated_node_name, "<none>")),
        readiness_gates(&pod).into(),
    ]
}

fn readiness_gates(pod: &Pod) -> String {
    let gates = &pod.spec.readiness_gates;
    if gates.is_empty() {
        return "<none>".into();
    }
    let passed = gates.iter().filter(|gate| is_true(&pod.status.conditions, &gate.condition_type)).count();
    format!("{passed}/{}", gates.len())
}

/// What all containers together come to.
#[derive(Default)]
struct Summary {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Time>,
    reason: String,
}

impl Summary {
    fn of(pod: &Pod, object: &Object) -> Summary {
        let sidecars =
            pod.spec.init_containers.iter().filter(|container| is_sidecar(pod, &container.name)).count();
        let mut summary = Summary {
            total: pod.spec.containers.len() + sidecars,
            reason: pod_reason(pod),
            ..Summary::default()
        };
        let initializing = summary.add_init_containers(pod);
        if !initializing || is_true(&pod.status.conditions, "Initialized") {
            summary.add_containers(pod);
        }
        if object.is_deleting() && pod.status.reason == "NodeLost" {
            summary.reason = "Unknown".into();
        } else if object.is_deleting() && !pod.is_terminal() {
            summary.reason = "Terminating".into();
        }
        summary
    }

    /// Goes through the init containers in order, up to the first that holds up the others; whether there is
    /// one.
    fn add_init_containers(&mut self, pod: &Pod) -> bool {
        for (at, status) in pod.status.init_container_statuses.iter().enumerate() {
            self.add_restarts(status);
            let terminated = status.state.terminated.as_deref();
            if terminated.is_some_and(|terminated| terminated.exit_code == 0) {
                continue;
            }
            if is_sidecar(pod, &status.name) && status.started == Some(true) {
                self.ready += usize::from(status.ready);
                continue;
            }
            let waiting = status.state.waiting.as_ref().map_or("", |waiting| waiting.reason.as_str());
            self.reason = match (terminated, waiting) {
                (Some(terminated), _) => format!("Init:{}", ended(terminated)),
                (None, "" | "PodInitializing") => format!("Init:{at}/{}", pod.spec.init_containers.len()),
                (None, reason) => format!("Init:{reason}"),
            };
            return true;
        }
        false
    }

    /// Once initialized, the restarts of init containers that are over no longer count.
    fn add_containers(&mut self, pod: &Pod) {
        (self.restarts, self.last_restart) = (0, None);
        let init = pod.status.init_container_statuses.iter();
        init.filter(|status| is_sidecar(pod, &status.name)).for_each(|status| self.add_restarts(status));
        let mut has_running = false;
        for status in pod.status.container_statuses.iter().rev() {
            self.add_restarts(status);
            let waiting = status.state.waiting.as_ref().map_or("", |waiting| waiting.reason.as_str());
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(terminated) = &status.state.terminated {
                self.reason = ended(terminated);
            } else if status.ready && status.state.running.is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && has_running {
            self.reason = if pod.is_ready() { "Running" } else { "NotReady" }.into();
        }
    }

    fn add_restarts(&mut self, status: &ContainerStatus) {
        self.restarts += status.restart_count;
        let last = status.last_state.terminated.as_deref().and_then(|terminated| terminated.finished_at);
        self.last_restart = self.last_restart.max(last);
    }
}

/// Before any container has a say.
fn pod_reason(pod: &Pod) -> String {
    let gated = |condition: &&crate::views::meta::Condition| {
        condition.condition_type == "PodScheduled" && condition.reason == "SchedulingGated"
    };
    match pod.status.conditions.iter().find(gated) {
        Some(_) => "SchedulingGated".into(),
        None => or(&pod.status.reason, &pod.status.phase).to_owned(),
    }
}

fn ended(terminated: &Terminated) -> String {
    match (terminated.reason.as_str(), terminated.signal) {
        ("", Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        ("", _) => format!("ExitCode:{}", terminated.exit_code),
        (reason, _) => reason.to_owned(),
    }
}

fn is_sidecar(pod: &Pod, name: &str) -> bool {
    let found = pod.spec.init_containers.iter().find(|container| container.name == name);
    found.is_some_and(|container| container.restart_policy.as_deref() == Some("Always"))
}
