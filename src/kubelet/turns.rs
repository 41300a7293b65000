//! A turn: what is done with one pod in one go, away from the lock of its node.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::admission::Rejection;
use super::kubelet::Kubelet;
use super::lending::Loan;
use super::players::Cause;
use super::pod_workers::{PodWorker, WorkerState};
use super::world::Happening;
use crate::volume_manager::sources::Sources;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};

/// One turn, before it is taken and after.
pub(super) struct Turn {
    pub(super) loan: Loan,
    /// The pod as it was heard of, when its worker is to be made.
    pub(super) new: Option<(Arc<Object>, Option<Rejection>)>,
    /// What was fetched for it.
    pub(super) sources: Option<Sources>,
    pub(super) now: Time,
    /// Where its worker was before the sync.
    pub(super) state: WorkerState,
    /// What happened.
    pub(super) happenings: Vec<Happening>,
}

impl Turn {
    pub(super) fn new(loan: Loan, now: Time) -> Turn {
        let (state, happenings) = (WorkerState::Sync, Vec::new());
        Turn { loan, new: None, sources: None, now, state, happenings }
    }

    /// Whether no script is read or played in it, nor a volume made.
    pub(super) fn is_light(&self) -> bool {
        match (&self.new, &self.loan.worker) {
            (Some((object, _)), _) => !has_commands(&object.view::<Pod>()),
            (None, Some(worker)) => worker.mounting.is_none() && !has_commands(&worker.pod),
            (None, None) => true,
        }
    }

    /// Makes the worker if there is none, hands over what was fetched, and syncs.
    pub(super) fn take(mut self) -> Turn {
        let shared = self.loan.kubelet().shared.clone();
        // It may have waited for its turn.
        self.now = shared.context.clock.now();
        let (node, now) = (&shared.node, self.now);
        if let Some((object, rejection)) = self.new.take() {
            let mut worker = PodWorker::new(object, node, now);
            rejection.into_iter().for_each(|rejection| worker.reject(rejection));
            self.loan.worker = Some(Box::new(worker));
        }
        if let Some(sources) = self.sources.take() {
            self.loan.provide(sources, node, now);
        }
        self.state = self.loan.state();
        self.loan.sync(node, now, &mut self.happenings);
        self
    }

    /// Takes it where scripts are played.
    pub(super) fn take_elsewhere(self, kubelet: &Kubelet) -> BoxFuture<'static, Turn> {
        let players = kubelet.shared.players.clone();
        async move { players.run(Cause::Sync, move || self.take()).await }.boxed()
    }
}

/// Whether anything is run in it that it says itself.
fn has_commands(pod: &Pod) -> bool {
    pod.spec.all_containers().any(has_command)
}

fn has_command(container: &Container) -> bool {
    let mut probes = [&container.startup_probe, &container.liveness_probe, &container.readiness_probe]
        .into_iter()
        .flatten();
    !container.command.is_empty()
        || !container.args.is_empty()
        || container.lifecycle.is_some()
        || probes.any(|probe| probe.exec.is_some())
}
