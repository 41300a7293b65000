//! Pods that fill more of the disk than they may are evicted (`localStorageEviction`).

use std::time::Duration;

use serde_json::Value;

use super::container_runtime::stats::MeasuredContainer;
use super::eviction::IMMEDIATE_GRACE_SECONDS;
use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::context::{Happening, PodEvent, SyncContext};
use super::kuberuntime::state::KubeContainerState;
use super::pod_ending::PodEnding;
use super::pod_workers::PodWorker;
use apimachinery::quantity::Quantity;
use apimachinery::time::Time;
use apis::tree::{items, text};
use apis::views::pod::Container;
use clock::after;
use machine::bounds::MAX_FILE_BYTES;

/// How often it is looked at pods of which something is known to fill (`MonitoringInterval`).
const MONITORING_INTERVAL: Duration = Duration::from_secs(10);
const RESOURCE: &str = "ephemeral-storage";

impl PodWorker {
    /// Evicts the pod when something of its local storage is over its limit; else says when to look again. A
    /// pod of which nobody says that it fills anything, and that cannot write too much, is not looked at.
    pub(crate) fn evict_for_storage(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let is_told = context.runtime.fills_storage(context.pod) || may_write_too_much(context);
        let may_fill = is_told || is_limited(context) && self.fills_files(context);
        if !may_fill {
            return None;
        }
        let Some(message) = self.overrun(context) else {
            return Some(after(context.now, MONITORING_INTERVAL));
        };
        context.happenings.push(Happening::Event(PodEvent::warning("Evicted", message.clone())));
        let grace_seconds = Some(IMMEDIATE_GRACE_SECONDS);
        self.end(PodEnding { reason: "Evicted", message, grace_seconds, is_disruption: false });
        None
    }

    /// What is over its limit: volumes first, then the pod as a whole, then its containers.
    fn overrun(&self, context: &SyncContext<'_>) -> Option<String> {
        let tree = self.object.to_value();
        let mut total: u64 = 0;
        for volume in items(&tree, "spec.volumes").iter().filter(|volume| !volume["emptyDir"].is_null()) {
            let name = text(volume, "name");
            let told = context.runtime.volume_bytes(context.pod, name, self.start_time, context.now);
            let files = context.written.files(name);
            let written: usize = files.values().map(|file| file.size()).sum();
            let used = told.unwrap_or(0).max(written as u64);
            total = total.saturating_add(used);
            let limit = quantity(&volume["emptyDir"]["sizeLimit"]);
            if let Some(limit) = limit.filter(|limit| is_over(used, limit)) {
                return Some(format!("Usage of EmptyDir volume {name:?} exceeds the limit \"{limit}\". "));
            }
        }
        let containers = self.filled(context);
        total = containers.iter().fold(total, |sum, (_, used, _)| sum.saturating_add(*used));
        let limits = containers.iter().filter_map(|(_, _, limit)| limit.clone());
        let whole = limits.reduce(|mut sum, limit| {
            sum.add(&limit);
            sum
        });
        if let Some(whole) = whole.filter(|whole| is_over(total, whole)) {
            return Some(format!(
                "Pod ephemeral local storage usage exceeds the total limit of containers {whole}. "
            ));
        }
        let over = |(_, used, limit): &&(&str, u64, Option<Quantity>)| {
            limit.as_ref().is_some_and(|limit| is_over(*used, limit))
        };
        let (name, _, limit) = containers.iter().find(over)?;
        let limit = limit.as_ref()?;
        Some(format!("Container {name} exceeded its local ephemeral storage limit \"{limit}\". "))
    }

    /// Whether a container fills files of which only the size is kept, or has.
    fn fills_files(&self, context: &SyncContext<'_>) -> bool {
        let is_filler = |(container, running): (&Container, &KubeContainer)| {
            running.running_id().is_some_and(|id| context.runtime.may_fill(container, id))
        };
        let is_large = |name: &str| context.written.files(name).values().any(|file| file.unheld > 0);
        let volumes = context.detail.into_iter().flat_map(|detail| &detail.spec.volumes);
        let mut own = volumes.filter(|volume| volume.empty_dir.is_some());
        self.all_containers().any(is_filler) || own.any(|volume| is_large(&volume.name))
    }

    /// What each container that runs has filled, and its limit.
    fn filled<'a>(&'a self, context: &SyncContext<'_>) -> Vec<(&'a str, u64, Option<Quantity>)> {
        let mut filled = Vec::new();
        for (container, running) in self.all_containers() {
            let KubeContainerState::Running { id, started_at } = &running.state else { continue };
            let measured = MeasuredContainer {
                pod: context.pod,
                metadata: context.metadata,
                container,
                attempt: running.restart_count,
                started_at: *started_at,
            };
            let said = context.runtime.container_stats(&measured, context.now).disk_bytes;
            let written = context.runtime.filled_bytes(container, id, context.now);
            let used = said.max(written.unwrap_or_default());
            let limit = container.resources.limits.get(RESOURCE);
            let limit = limit.and_then(|limit| Quantity::parse(limit).ok());
            filled.push((container.name.as_str(), used, limit));
        }
        filled
    }
}

/// Whether anything of its local storage has a limit.
fn is_limited(context: &SyncContext<'_>) -> bool {
    let volumes = context.detail.into_iter().flat_map(|detail| &detail.spec.volumes);
    let mut limits = volumes.filter_map(|volume| volume.empty_dir.as_ref()?.size_limit.as_ref());
    let has_limit = |container: &Container| container.resources.limits.contains_key(RESOURCE);
    limits.next().is_some() || context.pod.spec.all_containers().any(has_limit)
}

/// Whether a volume has a limit so small that what its containers write may be over it.
fn may_write_too_much(context: &SyncContext<'_>) -> bool {
    let Some(detail) = context.detail else { return false };
    let writers = detail.spec.containers.len() + detail.spec.init_containers.len();
    let most = (MAX_FILE_BYTES * writers) as u64;
    let volumes = detail.spec.volumes.iter();
    let limits = volumes.filter_map(|volume| volume.empty_dir.as_ref()?.size_limit.as_deref());
    limits.filter_map(|limit| Quantity::parse(limit).ok()).any(|limit| is_over(most, &limit))
}

fn is_over(used: u64, limit: &Quantity) -> bool {
    i64::try_from(used).is_ok_and(|used| used > limit.value())
}

fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}
