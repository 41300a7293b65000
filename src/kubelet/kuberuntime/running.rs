//! A container whose process runs: its hooks, its probes, its end.

use std::time::Duration;

use super::container::{KubeContainer, grace_period};
use super::context::{Happening, SyncContext};
use super::hooks::{PostStart, StopPurpose};
use super::task::{Task, WhileRunning};
use crate::container_runtime::services::{ContainerId, Exit, ProbedContainer, RuntimeContainerStatus};
use crate::lifecycle::{self, HookForecast, HookKind, HookOutcome};
use crate::prober::{self, Probers};
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use clock::after;
use machine::bounds::START_ERROR;

impl KubeContainer {
    /// The process from its start to its end.
    pub(crate) fn run(
        &mut self,
        spec: &Spec,
        (id, started_at): (&ContainerId, Time),
        status: RuntimeContainerStatus,
        context: &mut SyncContext<'_>,
    ) -> Box<WhileRunning> {
        let is_start = started_at == context.now;
        let hook = HookKind::PostStart.of(spec).filter(|_| is_start);
        let probed = self.probed(spec, (id, started_at), context);
        match hook.map(|hook| lifecycle::run(hook, context.runtime, &probed, context.is_fair())) {
            None => self.begin(spec, (id, started_at), status, None, context),
            Some(HookForecast::Known(outcome)) => {
                self.begin(spec, (id, started_at), status, Some(outcome), context)
            }
            Some(HookForecast::Asked) => {
                context.happenings.push(Happening::Hooks(spec.name.clone(), HookKind::PostStart));
                (self.started, self.ready) = (false, false);
                let hook = Some(PostStart { ready_at: status.ready_at, heard: None });
                let RuntimeContainerStatus { ends, asks_at, .. } = status;
                Box::new(WhileRunning {
                    ready_at: None,
                    ends,
                    asks_at,
                    is_asking: false,
                    probers: None,
                    hook,
                })
            }
        }
    }

    /// Its probes from now on, and what comes of its hook.
    fn begin(
        &mut self,
        spec: &Spec,
        (id, started_at): (&ContainerId, Time),
        status: RuntimeContainerStatus,
        hook: Option<HookOutcome>,
        context: &mut SyncContext<'_>,
    ) -> Box<WhileRunning> {
        let begun = after(context.now, hook.map_or(Duration::ZERO, |hook| hook.took));
        let ready_from = status.ready_at.map(|at| at.max(if hook.is_some() { begun } else { started_at }));
        let probed = self.probed(spec, (id, started_at), context);
        let probers = Probers::new(context.runtime, &probed, begun, ready_from);
        let is_starting = probers.as_ref().is_some_and(|probers| probers.is_starting());
        let ready_at = ready_from.filter(|_| spec.readiness_probe.is_none() && !is_starting);
        let RuntimeContainerStatus { mut ends, asks_at, .. } = status;
        if hook.is_some_and(|hook| !hook.is_well) {
            context.note(spec, "Warning", "FailedPostStartHook", "PostStartHook failed".into());
            context.note(spec, "Normal", "Killing", "FailedPostStartHook".into());
            ends = Some((begun, Exit::killed()));
        }
        (self.started, self.ready) = (!is_starting, false);
        Box::new(WhileRunning { ready_at, ends, asks_at, is_asking: false, probers, hook: None })
    }

    /// What a probe told, other than that the container has started or is to end.
    pub(crate) fn take_outcome(
        &mut self,
        spec: &Spec,
        outcome: prober::Outcome,
        context: &mut SyncContext<'_>,
    ) {
        let mut warn = |reason, text| context.note(spec, "Warning", reason, text);
        match outcome {
            prober::Outcome::Started | prober::Outcome::Kill(..) => {}
            prober::Outcome::Ready(ready) => self.ready = ready,
            prober::Outcome::Unhealthy(kind, why) => {
                warn("Unhealthy", format!("{} probe failed: {why}", kind.name()));
            }
            prober::Outcome::Errored(kind, why) => {
                warn(
                    "Unhealthy",
                    format!("{} probe errored and resulted in unknown state: {why}", kind.name()),
                );
            }
            prober::Outcome::Warning(kind, what) => {
                warn("ProbeWarning", format!("{} probe warning: {what}", kind.name()));
            }
            prober::Outcome::Asks(kind) => {
                context.happenings.push(Happening::Probes(spec.name.clone(), kind))
            }
        }
    }

    /// What probes it, while it runs and while it is stopped.
    pub(crate) fn probers(&self) -> Option<&Probers> {
        match &self.task {
            Task::Run(running) => running.probers.as_deref(),
            _ => self.readiness.as_deref(),
        }
    }

    /// What probes it, to be told something.
    pub(crate) fn probers_mut(&mut self) -> Option<&mut Probers> {
        match &mut self.task {
            Task::Run(running) => running.probers.as_deref_mut(),
            _ => self.readiness.as_deref_mut(),
        }
    }

    /// As a probe finds it.
    pub(crate) fn probed<'a>(
        &self,
        spec: &'a Spec,
        (id, started_at): (&'a ContainerId, Time),
        context: &'a SyncContext<'_>,
    ) -> ProbedContainer<'a> {
        let config = context.config(spec, self.restart_count);
        ProbedContainer { config, id, pod_ip: &context.pod_ips.ip, started_at }
    }

    /// Who answers its probes may be another now.
    pub(crate) fn look_at_probes_again(&mut self, spec: &Spec, context: &SyncContext<'_>) {
        let (Some(id), Some(started_at)) = (self.running_id().cloned(), self.started_at()) else { return };
        let probed = self.probed(spec, (&id, started_at), context);
        if let Some(probers) = self.probers_mut() {
            probers.look_again(context.runtime, &probed, context.now);
        }
    }

    /// How a hook went that somebody asked.
    pub(crate) fn hear_hook(&mut self, kind: HookKind, is_well: bool, now: Time) {
        match (&mut self.task, kind) {
            (Task::Run(running), HookKind::PostStart) => {
                running.hook.iter_mut().for_each(|hook| hook.heard = Some((now, is_well)));
            }
            (Task::PreStop(hook), HookKind::PreStop) => hook.hear(is_well, now),
            _ => {}
        }
    }

    /// It has become ready, or its probes are due.
    pub(crate) fn look_at(
        &mut self,
        spec: &Spec,
        mut running: Box<WhileRunning>,
        due: Time,
        context: &mut SyncContext<'_>,
    ) {
        if let Some((_, is_well)) = running.hook.as_ref().and_then(|hook| hook.heard)
            && let (Some(id), Some(started_at)) = (self.running_id().cloned(), self.started_at())
        {
            let WhileRunning { ends, asks_at, is_asking, hook, .. } = *running;
            let status =
                RuntimeContainerStatus { ready_at: hook.and_then(|hook| hook.ready_at), ends, asks_at };
            let outcome = Some(HookOutcome { took: Duration::ZERO, is_well });
            running = self.begin(spec, (&id, started_at), status, outcome, context);
            running.is_asking = is_asking;
            self.task = Task::Run(running);
            return;
        }
        if running.ready_at.is_some_and(|at| at <= due) {
            (self.ready, running.ready_at) = (true, None);
        }
        if running.asks_at.is_some_and(|at| at <= due) {
            (running.asks_at, running.is_asking) = (None, true);
            context.happenings.push(Happening::Asks(spec.name.clone()));
        }
        let asked = running.probers.as_mut().filter(|probers| probers.due().is_some_and(|at| at <= due));
        let outcomes = asked.map(|probers| probers.ask(due, &|| context.is_fair())).unwrap_or_default();
        let mut kill = None;
        for outcome in outcomes {
            match outcome {
                prober::Outcome::Started => {
                    self.started = true;
                    running.ready_at = Some(due).filter(|_| spec.readiness_probe.is_none());
                }
                prober::Outcome::Kill(kind, grace) => kill = Some((kind.name().to_lowercase(), grace)),
                told => self.take_outcome(spec, told, context),
            }
        }
        let Some((kind, grace)) = kill else { return self.task = Task::Run(running) };
        let restarts = if self.restarts(context.pod, spec, 137) { ", will be restarted" } else { "" };
        let text = format!("Container {} failed {kind} probe{restarts}", spec.name);
        context.note(spec, "Normal", "Killing", text);
        let grace = grace_period(context.pod, grace);
        self.begin_stop(spec, (grace, running), StopPurpose::Restart, context);
    }

    pub(crate) fn exit(
        &mut self,
        spec: &Spec,
        mut exit: Exit,
        finished_at: Time,
        context: &mut SyncContext<'_>,
    ) {
        if let Some(id) = self.running_id() {
            let config = context.config(spec, self.restart_count);
            let exited = context.runtime.exited_container(&config, id, &exit, finished_at);
            if exited.is_known {
                exit.message = exited.message;
                self.unseen_runs = 0;
            }
            context.keep(exited.left);
            if let Some(fault) = exited.fault {
                let whose =
                    if exit.reason == START_ERROR { "" } else { &format!("container {}: ", spec.name) };
                context.note(spec, "Warning", "Failed", format!("Error: {whose}{fault}"));
            }
        }
        context.note_exit(spec, &exit);
        let ended = self.ended(exit, finished_at);
        context.note_init_run(spec, &ended);
        self.end(spec, ended, context);
    }
}
