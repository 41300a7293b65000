//! `/pods` and `/runningpods/`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::container_runtime::stats::MeasuredContainer;
use crate::kubelet::Kubelet;
use crate::kuberuntime::state::KubeContainerState;
use crate::pod_manager::pods::Entry;
use crate::pod_workers::PodWorker;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use stages::Governed;

/// A pod of the node, as the kubelet sees it.
#[derive(Clone, Debug)]
pub(super) struct PodHere {
    pub(super) object: Arc<Object>,
    pub(super) pod: Arc<Pod>,
    pub(super) start_time: Time,
    /// Its containers whose processes run.
    pub(super) running: Vec<RunningHere>,
    /// How many of its containers have ended.
    pub(super) ended: usize,
}

/// A container whose process runs.
#[derive(Clone, Debug)]
pub(super) struct RunningHere {
    pub(super) name: String,
    pub(super) image: String,
    /// How often it was restarted.
    pub(super) attempt: i64,
    pub(super) started_at: Time,
}

impl Kubelet {
    /// The pods of the node, by namespace and name: also those that stages play.
    pub(super) async fn pods_here(&self) -> Vec<PodHere> {
        let mut found = self.look_at_each(PodHere::of).await;
        let played = self.pods_played();
        if !played.is_empty() {
            found.extend(played.iter().map(PodHere::of_status));
            found.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        }
        found
    }

    /// What is to be seen of each pod that it runs, by namespace and name.
    pub(super) async fn look_at_each<Seen>(&self, look: impl Fn(&PodWorker) -> Seen) -> Vec<Seen> {
        let mut names: Vec<(String, String)> = {
            let state = self.pods.state();
            state.workers.values().map(Entry::namespace_and_name).collect()
        };
        names.sort();
        let mut found = Vec::new();
        for (namespace, name) in names {
            found.extend(self.pods.look(&namespace, &name, &look).await);
        }
        found
    }

    /// Those of its node that stages play, as far as it has heard.
    fn pods_played(&self) -> Vec<Arc<Object>> {
        if !self.shared.config.book.has_pods() {
            return Vec::new();
        }
        let mut pods = self.pod_informer().lister().all();
        pods.retain(|pod| self.shared.is_played(Governed::Pod, pod));
        pods
    }

    /// One of those.
    pub(super) fn pod_played(&self, uid: &str) -> Option<PodHere> {
        let played = self.pods_played();
        played.iter().find(|pod| pod.metadata.uid == uid).map(PodHere::of_status)
    }
}

impl PodHere {
    pub(super) fn of(worker: &PodWorker) -> PodHere {
        let mut running = Vec::new();
        let mut ended = 0;
        for (spec, container) in worker.all_containers() {
            match &container.state {
                KubeContainerState::Running { started_at, .. } => running.push(RunningHere {
                    name: spec.name.clone(),
                    image: spec.image.clone(),
                    attempt: container.restart_count,
                    started_at: *started_at,
                }),
                KubeContainerState::Terminated(_) => ended += 1,
                KubeContainerState::Waiting { .. } => {}
            }
        }
        let (object, pod, start_time) = (worker.object.clone(), worker.pod.clone(), worker.start_time);
        PodHere { object, pod, start_time, running, ended }
    }

    /// What the pod says of one of its containers that run.
    pub(super) fn spec_of(&self, running: &RunningHere) -> Option<&Container> {
        self.pod.spec.all_containers().find(|container| container.name == running.name)
    }

    /// One of its containers that run, as the runtime is asked what it uses.
    pub(super) fn measured(&self, running: &RunningHere) -> Option<MeasuredContainer<'_>> {
        let container = self.spec_of(running)?;
        let (pod, metadata) = (&*self.pod, &self.object.metadata);
        let RunningHere { attempt, started_at, .. } = *running;
        Some(MeasuredContainer { pod, metadata, container, attempt, started_at })
    }

    /// As its status says, which others write.
    fn of_status(object: &Arc<Object>) -> PodHere {
        let pod = object.view::<Pod>();
        let status = &pod.status;
        let all = status.init_container_statuses.iter().chain(&status.container_statuses);
        let mut running = Vec::new();
        let mut ended = 0;
        for container in all {
            let image = pod.spec.all_containers().find(|spec| spec.name == container.name);
            match (container.state.running.as_ref(), image) {
                (Some(state), Some(spec)) => running.push(RunningHere {
                    name: container.name.clone(),
                    image: spec.image.clone(),
                    attempt: container.restart_count,
                    started_at: state.started_at.unwrap_or(Time::UNIX_EPOCH),
                }),
                _ => ended += usize::from(container.state.terminated.is_some()),
            }
        }
        let start_time = status.start_time.unwrap_or(Time::UNIX_EPOCH);
        PodHere { object: object.clone(), pod, start_time, running, ended }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.object.metadata.namespace
    }

    pub(super) fn name(&self) -> &str {
        &self.object.metadata.name
    }
}

/// A PodList of all.
pub(super) fn list(pods: &[PodHere]) -> String {
    of_items(pods.iter().map(|pod| pod.object.to_value()).collect())
}

/// A PodList of what the runtime knows of those that run.
pub(super) fn running(pods: &[PodHere]) -> String {
    let container =
        |container: &RunningHere| json!({"name": container.name, "image": container.image, "resources": {}});
    let pod = |pod: &PodHere| {
        let metadata = &pod.object.metadata;
        json!({
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "spec": {"containers": pod.running.iter().map(container).collect::<Vec<_>>()},
            "status": {},
        })
    };
    of_items(pods.iter().filter(|pod| !pod.running.is_empty()).map(pod).collect())
}

fn of_items(items: Vec<Value>) -> String {
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}).to_string()
}
