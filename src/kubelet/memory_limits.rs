//! Limits of memory that the containers of a pod cannot get while they run, since they use as much already
//! (`validateMemoryResizeAction`).

use super::kuberuntime::container::KubeContainer;
use super::pod_workers::PodWorker;
use crate::container_runtime::container_limit::container_limit;
use crate::container_runtime::services::RuntimeService;
use crate::container_runtime::stats::MeasuredContainer;
use crate::volume_manager::cgroup_files::pod_memory_limit;
use apimachinery::time::Time;
use apis::views::pod::{Container as Spec, Pod};

/// Why a pod that has what `pod` says does not get the limits of `wanted`; `restarted` are containers that
/// start again with theirs. Nothing is measured where no limit falls.
pub(crate) fn too_low(
    (worker, pod): (&PodWorker, &Pod),
    wanted: &Pod,
    restarted: &[String],
    runtime: &dyn RuntimeService,
    now: Time,
) -> Option<String> {
    let whole = fallen(pod_memory_limit(pod), pod_memory_limit(wanted));
    let limit = |pod: &Pod, own: &Spec| container_limit(pod, own, "memory").map(|limit| limit.value());
    let falls = |(old, _): &(&Spec, &KubeContainer)| {
        let new = wanted.spec.all_containers().find(|new| new.name == old.name)?;
        let is_kept = !restarted.contains(&old.name);
        fallen(limit(pod, old), limit(wanted, new)).filter(|_| is_kept)
    };
    let spec = &pod.spec;
    let init = spec.init_containers.iter().zip(&worker.init_containers);
    let all = || init.clone().chain(spec.containers.iter().zip(&worker.containers));
    let limits: Vec<Option<i64>> = all().map(|pair| falls(&pair)).collect();
    if whole.is_none() && limits.iter().all(Option::is_none) {
        return None;
    }
    let used: Vec<i64> =
        all().map(|(own, container)| used(worker, (pod, own), container, runtime, now)).collect();
    let total: i64 = used.iter().sum();
    let mut errors = Vec::new();
    if let Some(limit) = whole.filter(|limit| total >= *limit) {
        errors.push(format!("attempting to set pod memory limit ({limit}) below current usage ({total})"));
    }
    for (((own, _), limit), used) in all().zip(limits).zip(used) {
        if let Some(limit) = limit.filter(|limit| used >= *limit) {
            let name = &own.name;
            errors.push(format!(
                "attempting to set container {name:?} memory limit ({limit}) below current usage ({total})"
            ));
        }
    }
    let why = if let [error] = &*errors { error.clone() } else { format!("[{}]", errors.join(", ")) };
    (!errors.is_empty()).then(|| format!("cannot decrease memory limits: {why}"))
}

/// A limit that is less than there was, or where there was none.
fn fallen(old: Option<i64>, new: Option<i64>) -> Option<i64> {
    new.filter(|new| old.is_none_or(|old| *new < old))
}

fn used(
    worker: &PodWorker,
    (pod, own): (&Pod, &Spec),
    container: &KubeContainer,
    runtime: &dyn RuntimeService,
    now: Time,
) -> i64 {
    let Some(started_at) = container.running_id().and_then(|_| container.started_at()) else { return 0 };
    let (metadata, attempt) = (&worker.object.metadata, container.restart_count);
    let measured = MeasuredContainer { pod, metadata, container: own, attempt, started_at };
    runtime.container_stats(&measured, now).memory_bytes.try_into().unwrap_or(i64::MAX)
}
