//! Processes that wait for what the network answers: it is asked beside the sync loop, and each process goes
//! on with its answer.

use std::sync::Arc;

use super::container_runtime::services::{ContainerConfig, ContainerId, PendingQuestion, ProbedContainer};
use super::container_runtime::stats::MeasuredContainer;
use super::dependencies::NodeRuntime;
use super::kubelet::Kubelet;
use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::context::SyncContext;
use super::kuberuntime::task::Task;
use super::players::Cause;
use super::pod_workers::PodWorker;
use apimachinery::time::Time;
use machine::questions::{Answered, NetworkReply, Question};

/// Who asks, and what.
struct ProcessAsker {
    uid: Arc<str>,
    container: String,
    id: ContainerId,
    address: String,
    asked: PendingQuestion,
}

impl Kubelet {
    /// Asks what a container's process asks.
    pub(crate) fn begin_asking(&self, worker: &PodWorker, container: &str) {
        let Some(asker) = worker.asker(&self.shared.node, container) else { return };
        let kubelet = self.clone();
        // With the kubelet it ends, too: the next one asks again.
        self.shared.context.tasks.spawn("a question to the network", async move {
            let answered = kubelet.ask_network(&asker.address, &asker.asked.question).await;
            kubelet.hear(asker, answered).await;
        });
    }

    async fn hear(&self, asker: ProcessAsker, answered: Answered) {
        let Some(mut loan) = self.pods.borrow_by_uid(&asker.uid).await else { return };
        let (kubelet, uid) = (self.clone(), asker.uid.clone());
        let now = self.shared.context.clock.now();
        let hear = move || loan.hear(&kubelet.shared.node, &asker, answered, now);
        self.shared.players.run(Cause::Sync, hear).await;
        self.pods.wake(&uid);
    }

    /// Asks in the name of a pod with this address. Loopback of the node's own network leads where a port of
    /// the node leads; else it is the pod's, which the network knows.
    async fn ask_network(&self, from: &str, question: &Question) -> Answered {
        if !from.parse().is_ok_and(|address| self.is_own(address)) {
            return self.shared.ask_network(from, question).await;
        }
        let mut question = question.clone();
        if let Some((to, protocol)) = question.what.destination()
            && to.ip().is_loopback()
            && let Some(behind) = self.behind_host_port(*to, protocol)
        {
            *to = behind;
        }
        self.shared.ask_network(from, &question).await
    }

    /// What the network answers somebody in a pod.
    pub(crate) async fn answer(&self, namespace: &str, pod: &str, question: &Question) -> Answered {
        let address = self.pods.look(namespace, pod, |worker| worker.address().to_owned()).await;
        match address {
            Some(address) => self.ask_network(&address, question).await,
            None => Answered { reply: NetworkReply::Unreachable, took: std::time::Duration::ZERO },
        }
    }
}

impl PodWorker {
    fn asker(&self, node: &NodeRuntime, container: &str) -> Option<ProcessAsker> {
        let id = self.container(container)?.1.running_id()?.clone();
        let asked = node.runtime.question(&id)?;
        Some(ProcessAsker {
            uid: self.object.metadata.uid.as_str().into(),
            container: container.to_owned(),
            id,
            address: self.address().to_owned(),
            asked,
        })
    }

    /// One that has ended or was started again meanwhile hears nothing.
    fn hear(&mut self, node: &NodeRuntime, asker: &ProcessAsker, answered: Answered, now: Time) {
        let (pod, object) = (self.pod.clone(), self.object.clone());
        let Some(spec) = pod.spec.all_containers().find(|spec| spec.name == asker.container) else { return };
        let Some(container) = self.container_mut(&asker.container) else { return };
        if container.running_id() != Some(&asker.id) {
            return;
        }
        let attempt = container.restart_count;
        let config = ContainerConfig { pod: &pod, metadata: &object.metadata, container: spec, attempt };
        node.runtime.hear(&config, &asker.id, &asker.asked, answered);
        let status = node.runtime.container_status(&asker.id);
        if let (Task::Run(running), Some(status)) = (&mut container.task, status) {
            running.is_asking = false;
            running.note(status);
        }
        self.look_at_files_again(node, &asker.container, now);
    }

    /// What a container finds, or was told, is another now: its probes look at that.
    pub(crate) fn look_at_files_again(&mut self, node: &NodeRuntime, name: &str, now: Time) {
        let (pod, object) = (self.pod.clone(), self.object.clone());
        let pod_ip = self.address().to_owned();
        let Some(spec) = pod.spec.all_containers().find(|spec| spec.name == name) else { return };
        let Some(container) = self.container_mut(name) else { return };
        let (Some(id), Some(started_at)) = (container.running_id().cloned(), container.started_at()) else {
            return;
        };
        let attempt = container.restart_count;
        let config = ContainerConfig { pod: &pod, metadata: &object.metadata, container: spec, attempt };
        let probed = ProbedContainer { config, id: &id, pod_ip: &pod_ip, started_at };
        if let Some(probers) = container.probers_mut() {
            probers.look_at_files_again(&*node.runtime, &probed, now);
        }
    }

    pub(crate) fn container_mut(&mut self, name: &str) -> Option<&mut KubeContainer> {
        let spec = &self.pod.spec;
        let init = spec.init_containers.iter().zip(&mut self.init_containers);
        let ephemeral = spec.ephemeral_containers.iter().zip(&mut self.ephemeral_containers);
        let mut all = init.chain(spec.containers.iter().zip(&mut self.containers)).chain(ephemeral);
        all.find(|(spec, _)| spec.name == name).map(|(_, container)| container)
    }
}

impl PodWorker {
    /// Whether annotations or the network say otherwise who listens.
    pub(crate) fn note_what_listens(&mut self, context: &mut SyncContext<'_>) {
        let changes = context.network.count_changes();
        let has_new_network = std::mem::replace(&mut self.network_changes, changes) != changes;
        let has_new_listeners = std::mem::take(&mut self.has_new_listeners);
        let changes = context.runtime.count_usage_changes();
        let has_new_usage = std::mem::replace(&mut self.usage_changes, changes) != changes;
        if has_new_listeners {
            context.tell_of_annotations();
        }
        if has_new_listeners || has_new_usage {
            self.look_at_usage_again(context);
        }
        if has_new_listeners || has_new_network {
            self.look_at_probes_again(context);
        }
    }

    /// Who goes over a limit of memory now, and did not, is killed at once; who would have is not.
    fn look_at_usage_again(&mut self, context: &mut SyncContext<'_>) {
        let specs = context.pod.spec.init_containers.iter().chain(&context.pod.spec.containers);
        let containers = self.init_containers.iter_mut().chain(&mut self.containers);
        for (container, spec) in containers.zip(specs) {
            let Some(id) = container.running_id().cloned() else { continue };
            let Some(started_at) = container.started_at() else { continue };
            let measured = MeasuredContainer {
                pod: context.pod,
                metadata: context.metadata,
                container: spec,
                attempt: container.restart_count,
                started_at,
            };
            if let Task::Run(running) = &mut container.task
                && context.runtime.look_at_usage_again(&measured, &id, context.now)
            {
                context.runtime.container_status(&id).into_iter().for_each(|status| running.note(status));
            }
        }
    }

    /// Who answers its probes may be another now.
    fn look_at_probes_again(&mut self, context: &mut SyncContext<'_>) {
        context.pod_ips = self.addresses().cloned().unwrap_or_default();
        let specs = context.pod.spec.init_containers.iter().chain(&context.pod.spec.containers);
        let containers = self.init_containers.iter_mut().chain(&mut self.containers);
        for (container, spec) in containers.zip(specs) {
            container.look_at_probes_again(spec, context);
        }
    }
}
