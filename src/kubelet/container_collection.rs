//! A node's containers that have ended: looked through where their number is limited, or its disk is short
//! (`pkg/kubelet/container.GC`).

use std::collections::HashSet;

use super::container_gc::{CONTAINER_GC_PERIOD, DeadContainer, dead, is_removable};
use super::kubelet::Kubelet;
use super::pod_workers::PodWorker;
use apimachinery::time::Time;

impl Kubelet {
    /// Looks again and again whether its node has too many containers that have ended.
    pub(crate) async fn collect_containers(self) {
        let clock = &self.shared.context.clock;
        loop {
            if let Ok(most) = usize::try_from(self.shared.config.options.maximum_dead_containers) {
                self.shared.garbage.enforce(self.dead_containers(clock.now()), most);
            }
            clock.sleep(CONTAINER_GC_PERIOD).await;
        }
    }

    /// What has ended of pods that have ended themselves goes at once: the disk is short
    /// (`DeleteAllUnusedContainers`).
    pub(crate) fn remove_unused_containers(&self) {
        let ended: HashSet<String> = {
            let state = self.pods.state();
            let ended = state.workers.iter().filter(|(_, entry)| entry.is_terminated);
            ended.map(|(uid, _)| uid.to_string()).collect()
        };
        let all = self.dead_containers(self.shared.context.clock.now());
        let unused = all.iter().filter(|dead| ended.contains(&dead.unit.0)).map(|dead| dead.id.clone());
        self.shared.garbage.remove(unused, &all);
    }

    /// Those of workers that are lent out are seen the next time.
    fn dead_containers(&self, now: Time) -> Vec<DeadContainer> {
        let options = &self.shared.config.options;
        let has_dead = |worker: &PodWorker| worker.kube_containers().any(|it| dead(it).next().is_some());
        let mut all = Vec::new();
        for (uid, entry) in &mut self.pods.state().workers {
            // Most have none, and rest on.
            if !entry.resting().is_some_and(has_dead) {
                continue;
            }
            entry.look(|worker| {
                for (spec, container) in worker.all_containers() {
                    let removable = dead(container).filter(|ended| is_removable(ended, options, now));
                    all.extend(removable.map(|ended| DeadContainer {
                        id: ended.id.clone(),
                        unit: (uid.to_string(), spec.name.clone()),
                        created_at: ended.started_at.unwrap_or(now),
                    }));
                }
            });
        }
        all
    }
}
