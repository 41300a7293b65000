//! A container whose process runs: its hooks, its probes, its end.

use std::time::Duration;

use super::container::{Container, Running, Task, grace_period};
use super::context::{Happening, SyncContext};
use crate::container_runtime::services::{ContainerId, ContainerStatus, Exit, ProbedContainer};
use crate::lifecycle;
use crate::prober::{self, Probers};
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use clock::after;

impl Container {
    /// The process from its start to its end.
    pub(crate) fn run(
        &mut self,
        spec: &Spec,
        (id, started_at): (&ContainerId, Time),
        status: ContainerStatus,
        context: &mut SyncContext<'_>,
    ) -> Box<Running> {
        let hook = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
        let hook = hook.filter(|_| started_at == context.now);
        let hook = hook.map(|hook| lifecycle::run(hook, context.runtime, id));
        let begun = after(context.now, hook.map_or(Duration::ZERO, |hook| hook.took));
        let ready_from = status.ready_at.map(|at| at.max(if hook.is_some() { begun } else { started_at }));
        let config = context.config(spec, self.restart_count);
        let probed = ProbedContainer { config, id, pod_ip: &context.pod_ip, started_at };
        let probers = Probers::new(context.runtime, &probed, begun, ready_from);
        let is_starting = probers.as_ref().is_some_and(|probers| probers.is_starting());
        let ready_at = ready_from.filter(|_| spec.readiness_probe.is_none() && !is_starting);
        let mut ends = status.ends;
        if hook.is_some_and(|hook| !hook.is_well) {
            context.note(spec, "Warning", "FailedPostStartHook", "PostStartHook failed".into());
            context.note(spec, "Normal", "Killing", "FailedPostStartHook".into());
            ends = Some((begun, Exit::killed()));
        }
        (self.started, self.ready) = (!is_starting, false);
        Box::new(Running { ready_at, ends, asks_at: status.asks_at, is_asking: false, probers })
    }

    /// It has become ready, or its probes are due.
    pub(crate) fn look_at(
        &mut self,
        spec: &Spec,
        mut running: Box<Running>,
        due: Time,
        context: &mut SyncContext<'_>,
    ) {
        if running.ready_at.is_some_and(|at| at <= due) {
            (self.ready, running.ready_at) = (true, None);
        }
        if running.asks_at.is_some_and(|at| at <= due) {
            (running.asks_at, running.is_asking) = (None, true);
            context.happenings.push(Happening::Asks(spec.name.clone()));
        }
        let asked = running.probers.as_mut().filter(|probers| probers.due().is_some_and(|at| at <= due));
        let outcomes = asked.map(|probers| probers.ask(due)).unwrap_or_default();
        let mut kill = None;
        for outcome in outcomes {
            match outcome {
                prober::Outcome::Started => {
                    self.started = true;
                    running.ready_at = Some(due).filter(|_| spec.readiness_probe.is_none());
                }
                prober::Outcome::Ready(ready) => self.ready = ready,
                prober::Outcome::Unhealthy(kind, why) => {
                    context.note(spec, "Warning", "Unhealthy", format!("{kind} probe failed: {why}"));
                }
                prober::Outcome::Warning(kind, what) => {
                    context.note(spec, "Warning", "ProbeWarning", format!("{kind} probe warning: {what}"));
                }
                prober::Outcome::Kill(kind, grace) => kill = Some((kind.to_lowercase(), grace)),
            }
        }
        let Some((kind, grace)) = kill else { return self.task = Task::Run(running) };
        let restarts = if self.restart_policy.restarts(137) { ", will be restarted" } else { "" };
        let text = format!("Container {} failed {kind} probe{restarts}", spec.name);
        context.note(spec, "Normal", "Killing", text);
        let (until, exit) = self.signal(spec, grace_period(context.pod, grace), context);
        (self.ready, self.task) = (false, Task::Restart { until, exit });
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
                context.note(spec, "Warning", "Failed", format!("Error: container {}: {fault}", spec.name));
            }
        }
        context.note_exit(spec, exit.code);
        self.end(spec, self.ended(exit, finished_at), context);
    }
}

impl Running {
    /// What is ahead of it is another now.
    pub(crate) fn note(&mut self, status: ContainerStatus) {
        self.ends = status.ends;
        self.is_asking &= status.asks_at.is_some();
        self.asks_at = status.asks_at.filter(|_| !self.is_asking);
    }

    pub(crate) fn due(&self) -> Option<Time> {
        let ends = self.ends.as_ref().map(|(at, _)| *at);
        let probers = self.probers.as_ref().and_then(|probers| probers.due());
        [self.ready_at, ends, self.asks_at, probers].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_meanwhile_makes_nobody_ask_twice() {
        let asks = |at| ContainerStatus { ready_at: None, ends: None, asks_at: at };
        let begun = Some(Time::UNIX_EPOCH);
        let mut running =
            Running { ready_at: None, ends: None, asks_at: None, is_asking: true, probers: None };
        running.note(asks(begun));
        assert_eq!((running.asks_at, running.is_asking), (None, true));
        // It has the answer, and asks the next.
        running.is_asking = false;
        running.note(asks(begun));
        assert_eq!((running.asks_at, running.due()), (begun, begun));
        // What it asked for is not asked any more.
        running.is_asking = true;
        running.note(asks(None));
        assert_eq!((running.asks_at, running.is_asking), (None, false));
    }
}
