//! A turn: what is done with one pod in one go, away from the lock of its node.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::pods::Loan;
use crate::admission::Rejection;
use crate::counted::TurnKind;
use crate::dependencies::Dependencies;
use crate::kuberuntime::context::Happening;
use crate::players::Cause;
use crate::pod_workers::{PodWorker, WorkerState};
use crate::volume_manager::sources::Sources;
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};

/// One turn, before it is taken and after.
pub(crate) struct Turn {
    pub(crate) loan: Loan,
    /// The pod as it was heard of, when its worker is to be made.
    pub(crate) new: Option<(Arc<Object>, Option<Rejection>)>,
    /// What was fetched for it.
    pub(crate) sources: Option<Sources>,
    pub(crate) now: Time,
    /// Why it has one.
    pub(crate) kind: TurnKind,
    /// When it was due.
    pub(crate) due: Time,
    /// Where its worker was before the sync.
    pub(crate) state: WorkerState,
    /// What happened.
    pub(crate) happenings: Vec<Happening>,
}

impl Turn {
    pub(crate) fn new(loan: Loan, now: Time) -> Turn {
        let (state, happenings) = (WorkerState::Sync, Vec::new());
        Turn { loan, new: None, sources: None, now, kind: TurnKind::Sync, due: now, state, happenings }
    }

    /// Whether no script is read or played in it, nor a volume made.
    pub(crate) fn is_light(&self) -> bool {
        match (&self.new, &self.loan.worker) {
            (Some((object, _)), _) => !has_commands(&object.view::<Pod>()),
            (None, Some(worker)) => worker.mounting.is_none() && !has_commands(&worker.pod),
            (None, None) => true,
        }
    }

    /// Makes the worker if there is none, hands over what was fetched, and syncs.
    pub(crate) fn take(mut self, shared: &Dependencies) -> Turn {
        // It may have waited for its turn.
        self.now = shared.context.clock.now();
        let (node, now) = (&shared.node, self.now);
        if let Some((object, rejection)) = self.new.take() {
            let containers = object.view::<Pod>().spec.containers.len();
            shared.counted.pod_comes((now - self.due).to_std().unwrap_or_default(), containers);
            rejection.iter().for_each(|rejection| shared.counted.rejected(rejection.reason));
            let mut worker = PodWorker::new(object, node, now);
            match rejection {
                Some(rejection) => worker.reject(rejection),
                None => worker.take_devices(&node.devices),
            }
            self.loan.worker = Some(Box::new(worker));
        }
        if let Some(sources) = self.sources.take() {
            self.loan.provide(sources, node, now);
        }
        self.state = self.loan.state();
        self.loan.sync(node, now, &mut self.happenings);
        self
    }

    /// Takes it when whoever steps the cluster lets it happen.
    pub(crate) fn take_when_let(self, shared: Arc<Dependencies>) -> BoxFuture<'static, Turn> {
        let of_worker = || self.loan.worker.as_ref().map(|worker| worker.object.clone());
        let object = self.new.as_ref().map(|(object, _)| object.clone()).or_else(of_worker);
        async move {
            if let Some(object) = object {
                shared.hold_sync(&object).await;
            }
            if shared.players.are_at_hand() || self.is_light() {
                self.take(&shared)
            } else {
                self.take_elsewhere(shared).await
            }
        }
        .boxed()
    }

    /// Takes it where scripts are played.
    pub(crate) fn take_elsewhere(self, shared: Arc<Dependencies>) -> BoxFuture<'static, Turn> {
        let players = shared.players.clone();
        async move { players.run(Cause::Sync, move || self.take(&shared)).await }.boxed()
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
