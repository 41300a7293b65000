//! A container that is stopped: its hook before that, the stop signal, and what it is stopped for.

use std::time::Duration;

use super::container::KubeContainer;
use super::context::{Happening, SyncContext};
use super::hooks::{PreStop, StopPurpose};
use super::state::KubeContainerState;
use super::task::{Task, WhileRunning};
use crate::container_runtime::services::Exit;
use crate::lifecycle::{self, HookForecast, HookKind};
use crate::prober::Probers;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use clock::after;

impl KubeContainer {
    /// What is due while its process runs, when it does: it is up to the caller what it does next.
    pub(crate) fn take_running(&mut self) -> Option<Box<WhileRunning>> {
        match std::mem::replace(&mut self.task, Task::Done) {
            Task::Run(running) => Some(running),
            task => {
                self.task = task;
                None
            }
        }
    }

    /// Asks whether it is still ready: as long as it runs it is, unless a probe says otherwise
    /// (`prober.Manager.UpdatePodStatus`).
    pub(crate) fn look_at_readiness(&mut self, spec: &Spec, due: Time, context: &mut SyncContext<'_>) {
        let Some(readiness) = &mut self.readiness else { return };
        let outcomes = readiness.ask(due, &|| context.is_fair());
        outcomes.into_iter().for_each(|outcome| self.take_outcome(spec, outcome, context));
    }

    /// Its process has ended: it is neither started nor ready, and nobody asks.
    pub(crate) fn end_probes(&mut self) {
        (self.started, self.ready) = (false, false);
        self.readiness = None;
    }

    /// Runs its hook, then sends the stop signal; the process has `grace` for both.
    pub(crate) fn begin_stop(
        &mut self,
        spec: &Spec,
        (grace, running): (Duration, Box<WhileRunning>),
        purpose: StopPurpose,
        context: &mut SyncContext<'_>,
    ) {
        let WhileRunning { ends, probers, .. } = *running;
        self.readiness = probers.and_then(Probers::stop_liveness_and_startup);
        let (Some(id), Some(started_at)) = (self.running_id().cloned(), self.started_at()) else {
            return self.task = task(purpose, context.now, Exit::killed());
        };
        let probed = self.probed(spec, (&id, started_at), context);
        let hook = HookKind::PreStop.of(spec);
        let took = match hook.map(|hook| lifecycle::run(hook, context.runtime, &probed, context.is_fair())) {
            None => Duration::ZERO,
            Some(HookForecast::Known(outcome)) => {
                if !outcome.is_well {
                    context.note(spec, "Warning", "FailedPreStopHook", "PreStopHook failed".into());
                }
                outcome.took.min(grace)
            }
            Some(HookForecast::Asked) => {
                context.happenings.push(Happening::Hooks(spec.name.clone(), HookKind::PreStop));
                let killed_at = after(context.now, grace);
                self.task = Task::PreStop(Box::new(PreStop { killed_at, heard: None, ends, purpose }));
                return;
            }
        };
        self.signal(spec, (grace.saturating_sub(took), after(context.now, took)), purpose, context);
    }

    /// Its hook is over, or its time.
    pub(crate) fn end_pre_stop(
        &mut self,
        spec: &Spec,
        hook: PreStop,
        due: Time,
        context: &mut SyncContext<'_>,
    ) {
        let PreStop { killed_at, heard, ends, purpose } = hook;
        if let Some((at, exit)) = ends.filter(|(at, _)| *at <= due) {
            return self.task = task(purpose, at, exit);
        }
        // Of one that takes longer than the grace nothing is told.
        if heard.is_some_and(|(_, is_well)| !is_well) {
            context.note(spec, "Warning", "FailedPreStopHook", "PreStopHook failed".into());
        }
        let grace = (killed_at - due).to_std().unwrap_or_default();
        self.signal(spec, (grace, due), purpose, context);
    }

    /// CRI `StopContainer` at a time, with so much grace.
    pub(crate) fn signal(
        &mut self,
        spec: &Spec,
        (grace, at): (Duration, Time),
        purpose: StopPurpose,
        context: &mut SyncContext<'_>,
    ) {
        let KubeContainerState::Running { id, started_at } = self.state.clone() else { return };
        let config = context.config(spec, self.restart_count);
        let call = context.runtime.stop_container(&config, &id, grace, at);
        let probed = self.probed(spec, (&id, started_at), context);
        // Most are gone before anybody could ask.
        let lingers = call.returns_at.is_none_or(|end| end > at);
        if let Some(readiness) = self.readiness.as_mut().filter(|_| lingers) {
            readiness.look_at_files_again(context.runtime, &probed, at);
        }
        let exit = call.result.unwrap_or_else(|_| Exit::killed());
        self.signalled_at = Some(at);
        self.task = task(purpose, call.returns_at.unwrap_or(Time::MAX_UTC), exit);
    }

    /// CRI `StopContainer` has returned.
    pub(crate) fn note_stopped(&mut self, context: &mut SyncContext<'_>) {
        if let Some(began) = self.signalled_at.take() {
            context.called("stop_container", began, false);
        }
    }

    /// How many containers the runtime knows of it.
    pub(crate) fn count_known(&self) -> usize {
        let is_there = !matches!(self.state, KubeContainerState::Waiting { .. });
        usize::from(is_there) + usize::from(self.last.is_some())
    }
}

/// What it is busy with until it has ended.
fn task(purpose: StopPurpose, until: Time, exit: Exit) -> Task {
    match purpose {
        StopPurpose::End => Task::Stop { until, exit },
        StopPurpose::Replace => Task::Replace { until, exit },
        StopPurpose::Restart => Task::Restart { until, exit },
    }
}
