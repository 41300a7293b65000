//! How long pods take from their creation until they are seen to run (`pod_startup_latency_tracker.go`).

use std::fmt::Write;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use sync::Mutex;

use super::kuberuntime::context::Happening;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::Pod;
use component_base::metrics::{Histogram, Render, heading};

/// Volumes that a pod may have and still be one without state.
const STATELESS: [&str; 8] =
    ["secret", "configMap", "downwardAPI", "emptyDir", "projected", "gitRepo", "image", "ephemeral"];
/// Of a volume of a CSI driver that is made for its pod alone.
const EPHEMERAL_CSI: &str = "/csi/volumeAttributes/csi.storage.k8s.io~1ephemeral";

/// A pod that has not been seen to run yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodStartup {
    /// How long images were pulled for it, where several at once count once.
    pulling: Duration,
    /// Until when that is counted.
    pulled_until: Option<Time>,
    /// How long its init containers ran.
    initializing: Duration,
}

/// A pod that has been seen to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StartedPod {
    /// Since its creation.
    total: Duration,
    /// Without what it waited for images and init containers.
    own: Duration,
    /// It has volumes that hold something.
    is_stateful: bool,
    is_on_host_network: bool,
}

impl PodStartup {
    /// Of a pod that is new on the node and was scheduled at once; of others nothing is counted.
    pub(crate) fn of(pod: &Pod) -> Option<Box<PodStartup>> {
        (pod.status.start_time.is_none() && !is_unschedulable(pod)).then(Box::default)
    }

    /// What happened to it, by `now`.
    pub(crate) fn note(&mut self, happening: &Happening, now: Time) {
        match happening {
            Happening::ImagePulled { began, .. } => {
                let from = self.pulled_until.map_or(*began, |until| until.max(*began));
                self.pulling += (now - from).to_std().unwrap_or_default();
                self.pulled_until = Some(self.pulled_until.map_or(now, |until| until.max(now)));
            }
            Happening::InitContainerRan(ran) => self.initializing += *ran,
            _ => {}
        }
    }

    /// What is to be told of it once the watch shows that all its containers run.
    pub(crate) fn started(&self, object: &Object, pod: &Pod, now: Time) -> Option<StartedPod> {
        if !has_started(pod) {
            return None;
        }
        let total = (now - object.metadata.creation_timestamp?).to_std().unwrap_or_default();
        let own = total.saturating_sub(self.pulling).saturating_sub(self.initializing);
        let is_stateful = is_stateful(object);
        Some(StartedPod { total, own, is_stateful, is_on_host_network: pod.spec.host_network })
    }
}

fn is_unschedulable(pod: &Pod) -> bool {
    pod.status.conditions.iter().any(|it| it.condition_type == "PodScheduled" && it.status == "False")
}

/// `hasPodStartedSLO`
fn has_started(pod: &Pod) -> bool {
    let statuses = &pod.status.container_statuses;
    !statuses.is_empty() && statuses.iter().all(|status| status.state.running.is_some())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct VolumesOfPod {
    spec: VolumesOfSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct VolumesOfSpec {
    volumes: Option<Vec<Value>>,
}

/// `isStatefulPod`
fn is_stateful(object: &Object) -> bool {
    let volumes = object.view::<VolumesOfPod>();
    let is_ephemeral = |volume: &Value| volume.pointer(EPHEMERAL_CSI).is_some_and(|it| it == "true");
    let has_state =
        |volume: &Value| !STATELESS.iter().any(|kind| volume.get(kind).is_some()) && !is_ephemeral(volume);
    volumes.spec.volumes.iter().flatten().any(has_state)
}

/// What is told of the pods of one node that have started.
pub(crate) struct StartupCounts {
    /// Without images and init containers, and of stateless pods alone.
    own: Histogram,
    total: Histogram,
    /// Of the first that has a network of its own.
    first: Mutex<Option<Duration>>,
}

impl StartupCounts {
    pub(crate) fn new(bounds: &'static [f64]) -> StartupCounts {
        StartupCounts { own: Histogram::new(bounds), total: Histogram::new(bounds), first: Mutex::default() }
    }

    pub(crate) fn note(&self, started: &StartedPod) {
        self.total.observe(started.total);
        if started.is_stateful {
            return;
        }
        self.own.observe(started.own);
        if !started.is_on_host_network {
            self.first.lock().get_or_insert(started.own);
        }
    }
}

impl Render for StartupCounts {
    fn render(&self, out: &mut String) {
        let measured = "measured from pod creation timestamp to when all its containers are reported as started and \
                        observed via watch";
        if let Some(first) = *self.first.lock() {
            let name = "kubelet_first_network_pod_start_sli_duration_seconds";
            let help = format!(
                "[INTERNAL] Duration in seconds to start the first network pod, excluding time to pull images and run \
                 init containers, {measured}"
            );
            heading(out, name, "gauge", &help);
            let _ = writeln!(out, "{name} {}", first.as_secs_f64());
        }
        let histograms = [
            (
                "kubelet_pod_start_sli_duration_seconds",
                "to start a pod, excluding time to pull images and run init containers",
                &self.own,
            ),
            (
                "kubelet_pod_start_total_duration_seconds",
                "to start a pod since creation, including time to pull images and run init containers",
                &self.total,
            ),
        ];
        for (name, what, histogram) in histograms.into_iter().filter(|(.., one)| one.count() > 0) {
            heading(out, name, "histogram", &format!("[ALPHA] Duration in seconds {what}, {measured}"));
            histogram.render(out, name, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(seconds: u64) -> Time {
        Time::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn started(startup: &PodStartup, volumes: &Value, state: &Value) -> Option<StartedPod> {
        let metadata = json!({"name": "p", "creationTimestamp": "1970-01-01T00:00:00Z"});
        let pod = json!({"metadata": metadata, "spec": {"volumes": volumes},
            "status": {"containerStatuses": [{"name": "c", "state": state}]}});
        let object = Object::from_value(&pod, vec![]).unwrap();
        startup.started(&object, &object.view(), at(20))
    }

    #[test]
    fn images_that_come_at_once_and_init_containers_do_not_count() {
        let mut startup = PodStartup::default();
        for (began, until) in [(1, 4), (2, 5), (3, 4), (7, 8)] {
            startup.note(&Happening::ImagePulled { began: at(began), size: 1 }, at(until));
        }
        startup.note(&Happening::InitContainerRan(Duration::from_secs(6)), at(14));
        let running = json!({"running": {"startedAt": "1970-01-01T00:00:18Z"}});
        let told = started(&startup, &json!([{"name": "v", "emptyDir": {}}]), &running).unwrap();
        assert_eq!((told.total.as_secs(), told.own.as_secs(), told.is_stateful), (20, 9, false));
        let claim = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
        assert!(started(&startup, &claim, &running).unwrap().is_stateful);
        for stateless in [
            json!({"projected": {"sources": []}}),
            json!({"csi": {"driver": "d", "volumeAttributes": {"csi.storage.k8s.io/ephemeral": "true"}}}),
        ] {
            assert!(!started(&startup, &json!([stateless]), &running).unwrap().is_stateful, "{stateless}");
        }
        let shared = json!([{"csi": {"driver": "d"}}]);
        assert!(started(&startup, &shared, &running).unwrap().is_stateful);
        assert_eq!(started(&startup, &json!([]), &json!({"waiting": {}})), None);
        assert!(started(&startup, &Value::Null, &running).is_some());
    }

    #[test]
    fn what_waited_for_room_is_not_looked_at() {
        let pod = |status: Value| serde_json::from_value::<Pod>(json!({ "status": status })).unwrap();
        assert!(PodStartup::of(&pod(json!({}))).is_some());
        let waited = json!({"conditions": [{"type": "PodScheduled", "status": "False"}]});
        assert!(PodStartup::of(&pod(waited)).is_none());
        assert!(PodStartup::of(&pod(json!({"startTime": "1970-01-01T00:00:00Z"}))).is_none());
    }
}
