//! What a pod waits for before its containers start, and looks at again from time to time: the objects
//! that its volumes and variables are made of (`WaitForAttachAndMount` of `pkg/kubelet/volumemanager`).
//!
//! A worker says what it wants fetched; whoever runs it asks the apiserver and hands over what was found.

use std::sync::Arc;
use std::time::Duration;

use super::container_runtime::services::{ContainerConfig, PodSandboxStatus, ProbedContainer};
use super::dependencies::NodeRuntime;
use super::kuberuntime::container::{CONFIG_ERROR, KubeContainer};
use super::kuberuntime::context::{Happening, PodEvent, SyncContext};
use super::kuberuntime::state::KubeContainerState;
use super::kuberuntime::task::Task;
use super::pod_workers::PodWorker;
use super::volume_manager::claims::{self, ATTACH_TIMEOUT, ClaimRefusal, Unready};
use super::volume_manager::devices;
use super::volume_manager::facts::VolumeFacts;
use super::volume_manager::fetch::Fetch;
use super::volume_manager::host_files::WrittenFiles;
use super::volume_manager::in_use::FAILED_MOUNT;
use super::volume_manager::mounting::Mounting;
use super::volume_manager::sources::{Found, Source, Sources};
use super::volume_manager::volumes;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};
use apis::views::pod_detail::PodDetail;
use clock::after;
use machine::file_system::MountedVolume;

/// The first pause after a volume could not be mounted, and the longest (`exponentialbackoff`).
const MOUNT_RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(122));
/// How often what running containers look at is fetched again (`--sync-frequency`).
const REFRESH_PERIOD: Duration = Duration::from_secs(60);

/// [`VolumeFacts`] that borrow nothing from the worker.
pub(crate) struct HeldFacts {
    pod: Arc<Pod>,
    own: Arc<Pod>,
    object: Arc<Object>,
    detail: Arc<PodDetail>,
    sources: Arc<Sources>,
    pod_ips: PodSandboxStatus,
}

impl HeldFacts {
    /// On the pod's node.
    pub(crate) fn facts<'a>(&'a self, node: &'a NodeRuntime) -> VolumeFacts<'a> {
        VolumeFacts {
            pod: &self.pod,
            metadata: &self.object.metadata,
            annotations: &self.own.metadata.annotations,
            detail: &self.detail,
            sources: &self.sources,
            pod_ips: &self.pod_ips,
            host_ips: &node.host_ips,
            cluster_dns: &node.cluster_dns,
            allocatable: &node.allocatable,
            memory_capacity: node.memory_capacity,
        }
    }
}

impl PodWorker {
    /// Whether it knows nothing yet of what it waits for: nobody is to hear of it before.
    pub fn is_waiting_for_sources(&self) -> bool {
        self.mounting.as_ref().is_some_and(|mounting| !mounting.is_fetched())
    }

    /// Whether it is taken up later, when all is there.
    pub(crate) fn adopts_later(&mut self) -> bool {
        let is_waiting = self.is_waiting_for_sources();
        self.mounting.iter_mut().for_each(|mounting| mounting.is_to_be_adopted = is_waiting);
        is_waiting
    }

    /// Its ephemeral containers find what the others do, also in a pod of which nobody needed to know more so
    /// far.
    pub(crate) fn mount_for_debugging(&mut self, now: Time) {
        if self.pod.spec.ephemeral_containers.len() <= self.ephemeral_containers.len() {
            return;
        }
        match &mut self.mounting {
            Some(mounting) => mounting.detail = self.object.view::<PodDetail>(),
            None => self.mounting = Some(Box::new(Mounting::of_running(&self.object, now))),
        }
    }

    /// What it wants to have fetched, once.
    pub fn take_fetch(&mut self, now: Time) -> Option<Fetch> {
        let asks = self.mounting.as_mut().is_some_and(|mounting| std::mem::take(&mut mounting.asks));
        asks.then(|| self.fetch(now)).flatten()
    }

    /// What it wants to know of afresh, because somebody looks.
    pub fn refresh(&self, now: Time) -> Option<Fetch> {
        let looks = self
            .mounting
            .as_ref()
            .is_some_and(|mounting| mounting.is_looked_at_again() && mounting.is_fetched());
        looks.then(|| self.fetch(now)).flatten()
    }

    fn fetch(&self, now: Time) -> Option<Fetch> {
        let metadata = &self.object.metadata;
        self.mounting.as_ref().map(|mounting| Fetch {
            wanted: mounting.wanted.iter().filter(|wanted| !mounting.has(wanted, now)).cloned().collect(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.as_str().into(),
            service_account: self.pod.spec.service_account_name.clone(),
            node: self.pod.spec.node_name.to_string(),
            devices: devices::claims_of(&self.pod),
        })
    }

    /// Hands over what was found; a sync follows.
    pub fn provide(&mut self, mut found: Sources, node: &NodeRuntime, now: Time) {
        let Some(mounting) = &mut self.mounting else { return };
        keep_tokens(mounting.sources.as_deref(), &mut found);
        // What was there and is gone stays mounted, unless the pod does without.
        for (source, found) in &mut found {
            let old = mounting.sources.as_ref().and_then(|sources| sources.get(source));
            if let (Found::Missing(_), Some(old @ Found::Object(_))) = (&*found, old)
                && mounting.is_mounted
                && !mounting.does_without(source)
            {
                *found = old.clone();
            }
        }
        let uid: Arc<str> = self.object.metadata.uid.as_str().into();
        for volume in found.values().filter_map(Found::volume) {
            node.volumes.want(&uid, volume);
        }
        let had_answers = mounting.found_answers().is_some();
        (mounting.sources, mounting.fetched_at) = (Some(Arc::new(found)), Some(now));
        let changed = self.take_answers();
        self.note_answers(changed, had_answers);
        let Some(mounting) = &mut self.mounting else { return };
        if std::mem::take(&mut mounting.is_to_be_adopted) {
            self.adopt(node, now);
            self.keep_mounted(node, &uid);
        }
        self.look_again(node, now);
    }

    /// What its containers find, as far as it was fetched.
    pub(crate) fn mounted(&self) -> (Option<Arc<PodDetail>>, Option<Arc<Sources>>) {
        match &self.mounting {
            Some(mounting) => (Some(mounting.detail.clone()), mounting.sources.clone()),
            None => (None, None),
        }
    }

    /// The facts about its containers, for as long as these are changed; nothing before they are fetched.
    pub(crate) fn held_facts(&self) -> Option<HeldFacts> {
        let mounting = self.mounting.as_ref()?;
        Some(HeldFacts {
            pod: self.pod.clone(),
            own: self.object.view::<Pod>(),
            object: self.object.clone(),
            detail: mounting.detail.clone(),
            sources: mounting.sources.clone().unwrap_or_default(),
            pod_ips: self.addresses().cloned().unwrap_or_default(),
        })
    }

    /// What containers left in volumes, those that run among them.
    pub(crate) fn written_until(&mut self, node: &NodeRuntime, now: Time) -> WrittenFiles {
        let Some(mounting) = &mut self.mounting else { return WrittenFiles::new() };
        let mut written = std::mem::take(&mut mounting.written);
        written.set_host(&node.host_files, &node.claimed_files);
        for (spec, container) in self.all_containers() {
            let config = self.config(spec, container);
            container.running_id().into_iter().for_each(|id| {
                written.keep(node.runtime.written_files(&config, id, now));
            });
        }
        written
    }

    /// See [`PodWorker::written_until`].
    pub(crate) fn keep(&mut self, written: WrittenFiles) {
        if let Some(mounting) = &mut self.mounting {
            mounting.written = written;
        }
    }

    /// What runs already has what it claims.
    fn keep_mounted(&mut self, node: &NodeRuntime, uid: &Arc<str>) {
        let is_running = self.is_running();
        if is_running {
            // What these have made is there, whatever else is.
            let _ = self.take_host_paths(node);
        }
        let Some(mounting) = self.mounting.as_mut().filter(|_| is_running) else { return };
        mounting.is_mounted = true;
        let sources = mounting.sources.iter().flat_map(|sources| sources.values());
        for volume in sources.filter_map(Found::volume) {
            node.volumes.mount(uid, volume);
            let _ = volume.mount_folder(&node.host_files);
        }
    }

    /// Its volumes are others'.
    pub(crate) fn unmount(&self, node: &NodeRuntime) {
        self.give_devices_back(&node.devices);
        if self.mounting.is_some() {
            node.volumes.release(&self.object.metadata.uid.as_str().into());
        }
    }

    /// Whether it has all that it claims; else what is told of that, if it is time to.
    fn take_claims(&mut self, node: &NodeRuntime, now: Time) -> Result<(), Option<PodEvent>> {
        let Some(mounting) = &mut self.mounting else { return Ok(()) };
        let Some(sources) = &mounting.sources else { return Ok(()) };
        let metadata = &self.object.metadata;
        let pod = (&metadata.uid.as_str().into(), metadata.namespace.as_str(), metadata.name.as_str());
        match claims::mount(pod, &mounting.detail, sources, (&node.volumes, &node.host_files)) {
            Err(ClaimRefusal::Failed(reason, why)) => return Err(Some(PodEvent::warning(reason, why))),
            Err(ClaimRefusal::NotAttached(volumes)) => {
                let unready = Unready { unattached: &volumes, ..Unready::default() };
                return Err(waits_too_long(mounting, now, &unready));
            }
            Err(ClaimRefusal::NotMapped(volumes)) => {
                let unready = Unready { unmapped: &volumes, ..Unready::default() };
                return Err(waits_too_long(mounting, now, &unready));
            }
            Ok(()) => mounting.waits_since = None,
        }
        claims::give(&mounting.detail, sources, &node.host_files, &node.claimed_files);
        match sources.get(&Source::Devices) {
            Some(Found::Missing(why)) => {
                Err(Some(PodEvent::warning("FailedPrepareDynamicResources", why.clone())))
            }
            _ => Ok(()),
        }
    }

    /// Whether the paths of its node are what its volumes say.
    fn take_host_paths(&self, node: &NodeRuntime) -> Result<(), Option<PodEvent>> {
        let volumes = self.mounting.iter().flat_map(|mounting| &mounting.detail.spec.volumes);
        for volume in volumes {
            let Some(host_path) = &volume.host_path else { continue };
            if let Some(why) = node.host_files.mount(&host_path.path, &host_path.path_type) {
                return Err(Some(failed_mount(&volume.name, &why)));
            }
        }
        Ok(())
    }

    /// [`PodWorker::mount`] of a pod for which nothing is fetched.
    fn mount_host_paths(
        &mut self,
        node: &NodeRuntime,
        context: &mut SyncContext<'_>,
    ) -> Result<Option<Time>, Option<Time>> {
        let Some(mounting) = self.mounting.as_ref().filter(|mounting| !mounting.is_mounted) else {
            return Ok(None);
        };
        if let Some((at, _)) = mounting.retry.filter(|(at, _)| *at > context.now) {
            return Err(Some(at));
        }
        let taken = self.take_host_paths(node);
        // One that an earlier kubelet has started has them.
        let has_begun = self.all_containers().any(|(_, container)| container.has_run());
        let Some(mounting) = &mut self.mounting else { return Ok(None) };
        match taken {
            Err(event) if !has_begun => {
                context.happenings.extend(event.map(Happening::Event));
                Err(Some(retry_after(mounting, context.now)))
            }
            _ => {
                (mounting.is_mounted, mounting.retry) = (true, None);
                Ok(None)
            }
        }
    }

    /// Whether its containers may start: then, when it wants to look again; else, when it tries again.
    pub(crate) fn mount(
        &mut self,
        node: &NodeRuntime,
        context: &mut SyncContext<'_>,
    ) -> Result<Option<Time>, Option<Time>> {
        let now = context.now;
        let retried_at = self.config_retry().filter(|at| *at <= now);
        let retried_at = retried_at.or_else(|| self.pull_retry(node).filter(|at| *at <= now));
        let Some(mounting) = &mut self.mounting else { return Ok(None) };
        if mounting.wanted.is_empty() {
            return self.mount_host_paths(node, context);
        }
        let is_stale = |mounting: &Mounting, at: Time| mounting.fetched_at.is_none_or(|fetched| fetched < at);
        let due = mounting.retry.map(|(at, _)| at);
        if let Some(at) = due.filter(|at| *at > now && is_stale(mounting, *at)) {
            return Err(Some(at));
        }
        let wanted_since = due.or(retried_at);
        if mounting.fetched_at.is_none() || wanted_since.is_some_and(|at| is_stale(mounting, at)) {
            mounting.asks = true;
            return Err(None);
        }
        if !mounting.is_mounted {
            let checked = context.facts().map_or(Ok(()), |facts| volumes::check(&facts));
            let checked = checked.map_err(|(volume, why)| Some(failed_mount(&volume, &why)));
            let checked = checked.and_then(|()| self.take_host_paths(node)).and_then(|()| self.has_answers());
            let taken = checked.and_then(|()| self.take_claims(node, now));
            let Some(mounting) = &mut self.mounting else { return Ok(None) };
            if let Err(event) = taken {
                context.happenings.extend(event.map(Happening::Event));
                return Err(Some(retry_after(mounting, now)));
            }
            (mounting.is_mounted, mounting.retry) = (true, None);
            let lacks = mounting.lacks_pull_secrets(&self.pod);
            let lacks = lacks.map(|why| PodEvent::warning("FailedToRetrieveImagePullSecret", why));
            context.happenings.extend(lacks.map(Happening::Event));
        }
        let Some(mounting) = &mut self.mounting else { return Ok(None) };
        let refresh =
            mounting.fetched_at.filter(|_| mounting.is_looked_at_again()).map(|at| after(at, REFRESH_PERIOD));
        mounting.asks |= refresh.is_some_and(|at| at <= now);
        Ok(refresh.filter(|at| *at > now))
    }

    /// When a container that lacked something is tried again.
    fn config_retry(&self) -> Option<Time> {
        let retry = |(_, container): (&Spec, &KubeContainer)| match (&container.state, &container.task) {
            (KubeContainerState::Waiting { reason, .. }, Task::StartBackOff { until })
                if reason == CONFIG_ERROR =>
            {
                Some(*until)
            }
            _ => None,
        };
        self.all_containers().filter_map(retry).min()
    }

    /// When an image is pulled again that a registry did not give: there may be a Secret for it meanwhile.
    fn pull_retry(&self, node: &NodeRuntime) -> Option<Time> {
        let mounting = self.mounting.as_ref()?;
        if node.images.is_free() || mounting.pull_secrets.is_empty() {
            return None;
        }
        let retry = |(_, container): (&Spec, &KubeContainer)| match container.task {
            Task::Pull(ref pull) => pull.retry(),
            _ => None,
        };
        self.all_containers().filter_map(retry).chain(self.image_volumes.retries()).min()
    }

    /// Shows running containers what their volumes hold now; what their commands do may depend on it.
    pub(crate) fn look_again(&mut self, node: &NodeRuntime, now: Time) {
        let Some(held) = self.held_facts() else { return };
        let facts = held.facts(node);
        let VolumeFacts { pod, metadata, .. } = facts;
        let written = self.written_until(node, now);
        let init = pod.spec.init_containers.iter().zip(&mut self.init_containers);
        for (spec, container) in init.chain(pod.spec.containers.iter().zip(&mut self.containers)) {
            let (Some(id), Some(started_at)) = (container.running_id().cloned(), container.started_at())
            else {
                continue;
            };
            let attempt = container.restart_count;
            let config = ContainerConfig { pod, metadata, container: spec, attempt };
            let shown = |mounts: &[MountedVolume]| volumes::view(&facts, spec, mounts, &written);
            let differs = node.runtime.update_container(&config, &id, &shown, now);
            if !differs {
                continue;
            }
            if let Task::Run(running) = &mut container.task {
                node.runtime.container_status(&id).into_iter().for_each(|status| running.note(status));
            }
            if let Some(probers) = container.probers_mut() {
                let probed = ProbedContainer { config, id: &id, pod_ip: &held.pod_ips.ip, started_at };
                probers.look_at_files_again(&*node.runtime, &probed, now);
            }
        }
        self.keep(written);
    }
}

/// Keeps the tokens that there are in place of those that nobody asked for or that were refused: a stale one
/// is better than none.
fn keep_tokens(old: Option<&Sources>, found: &mut Sources) {
    for (source, token) in old.into_iter().flatten().filter(|(_, old)| matches!(old, Found::Token(_))) {
        if !matches!(found.get(source), Some(Found::Token(_))) {
            found.insert(source.clone(), token.clone());
        }
    }
}

/// What a pod is told that has waited for its volumes for so long.
fn waits_too_long(mounting: &mut Mounting, now: Time, unready: &Unready<'_>) -> Option<PodEvent> {
    let since = *mounting.waits_since.get_or_insert(now);
    let is_over = (now - since).to_std().is_ok_and(|waited| waited >= ATTACH_TIMEOUT);
    let why = || claims::unable(unready, "context deadline exceeded");
    is_over.then(|| PodEvent::warning(FAILED_MOUNT, why()))
}

/// When mounting is tried again that has failed now: each time it takes twice as long.
fn retry_after(mounting: &mut Mounting, now: Time) -> Time {
    let pause = mounting.retry.map_or(MOUNT_RETRY.0, |(_, pause)| (pause * 2).min(MOUNT_RETRY.1));
    let at = after(now, pause);
    mounting.retry = Some((at, pause));
    at
}

fn failed_mount(volume: &str, why: &str) -> PodEvent {
    PodEvent::warning(FAILED_MOUNT, format!("MountVolume.SetUp failed for volume {volume:?} : {why}"))
}
