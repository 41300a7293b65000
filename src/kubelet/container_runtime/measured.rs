//! The simulated runtime measures: what is asked for is worked out from the pod and the time.

use std::sync::Arc;

use super::chaos;
use super::layer;
use super::simulated::SimulatedRuntime;
use super::stats::{
    ContainerStats, CpuThrottling, MeasuredContainer, PodSandboxStats, ResourceUse, StatsService,
};
use super::usage_problems;
use super::used::{self, UsageSources};
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use serde_json::Value;
use stages::MeasureBook;
use usage::LoadBook;

impl SimulatedRuntime {
    /// Whose containers use what kwok's objects say, too, and what requests of Services cost them; `node` is
    /// what expressions see of the node.
    #[must_use]
    pub fn with_measures(mut self, book: MeasureBook, loads: LoadBook, node: Value) -> SimulatedRuntime {
        let consumed = self.ports.consumed().clone();
        self.usage_sources = UsageSources { book, node: Arc::new(node), loads, consumed };
        self
    }
}

impl StatsService for SimulatedRuntime {
    fn container_stats(&self, measured: &MeasuredContainer<'_>, now: Time) -> ContainerStats {
        used::container(measured, now, &self.usage_sources)
    }

    fn cpu_throttling(&self, measured: &MeasuredContainer<'_>, now: Time) -> Option<CpuThrottling> {
        used::throttling(measured, now, &self.usage_sources)
    }

    fn resource_use(&self, measured: &MeasuredContainer<'_>, resource: &str, now: Time) -> ResourceUse {
        used::resource(measured, resource, now, &self.usage_sources)
    }

    fn count_usage_changes(&self) -> u64 {
        self.usage_sources.book.count_changes()
    }

    fn pod_sandbox_stats(&self, pod: &Pod, started_at: Time, now: Time) -> PodSandboxStats {
        used::sandbox(pod, started_at, now)
    }

    fn volume_bytes(&self, pod: &Pod, name: &str, started_at: Time, now: Time) -> Option<u64> {
        used::volume(pod, name, started_at, now)
    }

    fn filled_bytes(&self, container: &Container, id: &Arc<str>, now: Time) -> Option<u64> {
        let around = self.container(id)?.around?;
        layer::may_fill(container, &around).then(|| layer::bytes(container, &around, now))
    }

    fn may_fill(&self, container: &Container, id: &Arc<str>) -> bool {
        let around = self.container(id).and_then(|known| known.around);
        around.is_some_and(|around| layer::may_fill(container, &around))
    }

    fn fills_storage(&self, pod: &Pod) -> bool {
        used::fills_storage(pod, &self.usage_sources)
    }

    fn usage_problems(&self, pod: &Pod) -> Vec<String> {
        usage_problems::problems(&pod.metadata.annotations)
    }

    fn usage_failures(&self, measured: &MeasuredContainer<'_>) -> Vec<String> {
        usage_problems::failures(measured, &self.usage_sources)
    }

    fn chaos_problems(&self, pod: &Pod) -> Vec<String> {
        chaos::problems(&pod.metadata.annotations)
    }

    fn look_at_usage_again(&self, measured: &MeasuredContainer<'_>, id: &Arc<str>, now: Time) -> bool {
        let Some(mut container) = self.container(id) else { return false };
        let killed = used::out_of_memory(measured, &self.usage_sources);
        let killed = killed.map(|(at, exit)| (at.max(now), exit));
        container.expect(container.plain.clone(), killed);
        self.containers().insert(id.clone(), container);
        true
    }
}
