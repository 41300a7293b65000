//! Containers that have ended are removed after a while, and their logs with them (`kuberuntime_gc.go`).
//!
//! Once a minute those go of which a container of a pod has too many. When that is can be told from the
//! times alone, so nobody wakes up for it: it is worked out when a log is asked for, which is all that shows
//! it. How many a node has in all is counted, where that is limited.

use std::collections::HashSet;
use std::time::Duration;

use chrono::TimeDelta;

use super::container_runtime::services::ContainerId;
use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::state::{ContainerEnd, KubeContainerState};
use super::options::KubeletOptions;
use apimachinery::time::Time;
use sync::Mutex;

/// How often it is looked (`ContainerGCPeriod`).
pub(crate) const CONTAINER_GC_PERIOD: Duration = Duration::from_secs(60);

/// What is remembered of what was removed.
pub(crate) struct ContainerGarbage {
    /// The first look, and every [`CONTAINER_GC_PERIOD`] another.
    started_at: Time,
    /// Those that went because of their node. Bound: what its pods still tell of, two for each container.
    removed: Mutex<HashSet<ContainerId>>,
}

/// A container that has ended, among those of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadContainer {
    pub(crate) id: ContainerId,
    /// Its pod and its name there.
    pub(crate) unit: (String, String),
    pub(crate) created_at: Time,
}

impl ContainerGarbage {
    /// Of a kubelet that starts now.
    pub(crate) fn new(started_at: Time) -> ContainerGarbage {
        ContainerGarbage { started_at, removed: Mutex::default() }
    }

    /// The last look before `now`.
    fn looked_at(&self, now: Time) -> Time {
        let period = CONTAINER_GC_PERIOD.as_secs();
        let looks = (now - self.started_at).to_std().unwrap_or_default().as_secs() / period;
        let since = i64::try_from(looks * period).unwrap_or(i64::MAX);
        TimeDelta::try_seconds(since)
            .and_then(|since| self.started_at.checked_add_signed(since))
            .unwrap_or(now)
    }

    /// Whether a container that has ended is gone, and its log with it.
    pub(crate) fn has_removed(
        &self,
        container: &KubeContainer,
        id: &ContainerId,
        options: &KubeletOptions,
        now: Time,
    ) -> bool {
        if self.removed.lock().contains(id) {
            return true;
        }
        let Ok(kept) = usize::try_from(options.maximum_dead_containers_per_container) else { return false };
        let looked_at = self.looked_at(now);
        let was_removable = |ended: &&ContainerEnd| is_removable(ended, options, looked_at);
        dead(container).filter(was_removable).skip(kept).any(|ended| ended.id == *id)
    }

    /// These are gone; those that are not among `all` are forgotten.
    pub(crate) fn remove(&self, gone: impl Iterator<Item = ContainerId>, all: &[DeadContainer]) {
        let mut removed = self.removed.lock();
        removed.retain(|id| all.iter().any(|dead| dead.id == *id));
        removed.extend(gone);
    }

    /// Takes away the oldest, until no more are left than may be; forgets those that nobody tells of any
    /// more.
    pub(crate) fn enforce(&self, mut all: Vec<DeadContainer>, most: usize) {
        let mut removed = self.removed.lock();
        removed.retain(|id| all.iter().any(|dead| dead.id == *id));
        all.retain(|dead| !removed.contains(&dead.id));
        removed.extend(beyond(all, most));
    }
}

/// Those that are too many of all: first of each container all but its share, then the oldest.
fn beyond(mut all: Vec<DeadContainer>, most: usize) -> Vec<ContainerId> {
    if all.len() <= most {
        return vec![];
    }
    // The newest first.
    all.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| a.id.cmp(&b.id)));
    let units: HashSet<_> = all.iter().map(|dead| dead.unit.clone()).collect();
    let share = (most / units.len()).max(1);
    let mut going = Vec::new();
    let mut kept = Vec::<DeadContainer>::new();
    for dead in all {
        if kept.iter().filter(|other| other.unit == dead.unit).count() < share {
            kept.push(dead);
        } else {
            going.push(dead.id);
        }
    }
    going.extend(kept.into_iter().skip(most).map(|dead| dead.id));
    going
}

/// The runs of a container that have ended, the newest first.
pub(crate) fn dead(container: &KubeContainer) -> impl Iterator<Item = &ContainerEnd> {
    let current = match &container.state {
        KubeContainerState::Terminated(ended) => Some(&**ended),
        _ => None,
    };
    let all = [current, container.last.as_deref()].into_iter().flatten();
    all.filter(|ended| !ended.id.is_empty())
}

/// Whether it had ended before it was looked, and was old enough.
pub(crate) fn is_removable(ended: &ContainerEnd, options: &KubeletOptions, looked_at: Time) -> bool {
    let (Some(created_at), Some(finished_at)) = (ended.started_at, ended.finished_at) else { return false };
    let age = (looked_at - created_at).to_std();
    finished_at < looked_at && age.is_ok_and(|age| age >= options.minimum_container_ttl_duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_runtime::services::Exit;
    use crate::kuberuntime::state::RestartPolicy;
    use apis::views::pod::Container as Spec;

    fn at(seconds: i64) -> Time {
        Time::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn ended(id: &str, started: i64, finished: i64) -> Box<ContainerEnd> {
        let (started_at, finished_at) = (Some(at(started)), Some(at(finished)));
        Box::new(ContainerEnd { id: id.into(), exit: Exit::default(), started_at, finished_at })
    }

    fn options(kept: i32, ttl: u64) -> KubeletOptions {
        KubeletOptions {
            maximum_dead_containers_per_container: kept,
            minimum_container_ttl_duration: Duration::from_secs(ttl),
            ..KubeletOptions::default()
        }
    }

    #[test]
    fn the_older_run_of_a_container_goes_within_a_minute() {
        let mut container = KubeContainer::new(&Spec::default(), RestartPolicy::OnFailure, "");
        container.last = Some(ended("old", 0, 5));
        container.state = KubeContainerState::Terminated(ended("new", 10, 20));
        let garbage = ContainerGarbage::new(at(-30));
        let gone = |options: KubeletOptions, seconds: i64| {
            ["old", "new"].map(|id| garbage.has_removed(&container, &id.into(), &options, at(seconds)))
        };
        assert_eq!(gone(options(1, 0), 29), [false, false]);
        assert_eq!(gone(options(1, 0), 30), [true, false]);
        assert_eq!(gone(options(0, 0), 30), [true, true]);
        assert_eq!(gone(options(-1, 0), 3000), [false, false]);
        // The newest is looked at when it is old enough: at 90 seconds it is 80 old.
        assert_eq!(gone(options(1, 85), 90), [false, false]);
        assert_eq!(gone(options(1, 80), 90), [true, false]);
    }

    #[test]
    fn a_node_keeps_the_newest_of_every_container() {
        let dead = |id: &str, pod: &str, created: i64| DeadContainer {
            id: id.into(),
            unit: (pod.into(), "c".into()),
            created_at: at(created),
        };
        let all = vec![dead("a1", "a", 1), dead("a2", "a", 9), dead("b1", "b", 2), dead("c1", "c", 3)];
        assert_eq!(beyond(all.clone(), 4), [] as [ContainerId; 0]);
        assert_eq!(beyond(all.clone(), 3), ["a1".into()] as [ContainerId; 1]);
        assert_eq!(beyond(all.clone(), 2), ["a1".into(), "b1".into()] as [ContainerId; 2]);
        assert_eq!(beyond(all.clone(), 0).len(), 4);
        let garbage = ContainerGarbage::new(at(0));
        garbage.enforce(all.clone(), 3);
        // What went stays away, however few are left, until nobody tells of it.
        garbage.enforce(all, 4);
        assert_eq!(garbage.removed.lock().len(), 1);
        garbage.enforce(vec![dead("b1", "b", 2)], 4);
        assert!(garbage.removed.lock().is_empty());
    }
}
