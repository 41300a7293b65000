//! What tests of probes and hooks find: a container that has been running since 1970.

use std::sync::Arc;
use std::time::Duration;

use super::pod_addresses::PodAddresses;
use super::services::{ContainerConfig, ContainerId, RuntimeService};
use super::simulated::SimulatedRuntime;
use super::stages::StageSet;
use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::Pod;
use entropy::Entropy;
use machine::file_system::View;
use machine::surroundings::Surroundings;
use serde_json::{Value, json};

/// A runtime of a node without stages of its own.
pub(crate) fn runtime() -> SimulatedRuntime {
    let addresses = PodAddresses::new(&["10.244.1.0/29"]).unwrap();
    SimulatedRuntime::new(StageSet::builtin(), addresses, &["10.0.0.1".into()], Entropy::seeded(1))
}

/// A pod of one container.
pub(crate) struct Given {
    pub(crate) runtime: SimulatedRuntime,
    pub(crate) pod: Arc<Pod>,
    pub(crate) metadata: ObjectMeta,
    pub(crate) id: ContainerId,
}

/// A pod whose container runs, among nothing when it is known what it does.
pub(crate) fn running(container: Value) -> Given {
    let pod = json!({"spec": {"containers": [container]}});
    let given = Given {
        runtime: runtime(),
        pod: Arc::new(serde_json::from_value(pod).unwrap()),
        metadata: ObjectMeta::default(),
        id: "containerd://1".into(),
    };
    let config = given.config();
    let views = vec![View { after: Duration::ZERO, tree: Arc::default() }];
    let image = config.container.image.clone();
    let found = Surroundings { image, views, ..Surroundings::default() };
    let found = Some(found).filter(|_| given.runtime.knows_process(config.container));
    given.runtime.start_container(&config, &given.id, found, Time::UNIX_EPOCH);
    given
}

impl Given {
    pub(crate) fn config(&self) -> ContainerConfig<'_> {
        let container = &self.pod.spec.containers[0];
        ContainerConfig { pod: &self.pod, metadata: &self.metadata, container, attempt: 0 }
    }
}
