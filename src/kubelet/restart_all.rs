//! All containers of a pod end and begin anew, because one of them ended as its rule says
//! (`RestartAllContainersOnContainerExits`): in the same sandbox with the same volumes, from the first init
//! container on.

use super::kuberuntime::context::SyncContext;
use super::pod_workers::{PodWorker, earliest};
use apimachinery::time::Time;

impl PodWorker {
    /// Ends what runs; when nothing does, and the one who asked for it has waited, all begin anew. Says when
    /// something is due.
    pub(crate) fn restart_all(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let spec = &context.pod.spec;
        let init = self.init_containers.iter_mut().zip(&spec.init_containers);
        let mut due = None;
        let mut are_done = true;
        let mut pause = None;
        for (container, spec) in init.chain(self.containers.iter_mut().zip(&spec.containers)) {
            container.end_now(spec, context);
            due = earliest([due, container.advance(spec, context)]);
            are_done &= container.is_done();
            pause = pause.max(container.pause(spec, context));
        }
        if !are_done {
            return due;
        }
        if pause.is_some_and(|until| until > context.now) {
            return pause;
        }
        let init = self.init_containers.iter_mut().zip(&spec.init_containers);
        init.for_each(|(container, spec)| container.begin_anew(spec, true, context));
        let others = self.containers.iter_mut().zip(&spec.containers);
        others.for_each(|(container, spec)| container.begin_anew(spec, false, context));
        self.restarts_all = false;
        Some(context.now)
    }
}
