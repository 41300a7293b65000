//! A container whose process runs: its hooks, its probes, its end.

use std::time::Duration;

use super::hooks;
use super::pod_workers::grace_period;
use super::probes::{self, Probers};
use super::runtime::{Container, Task};
use super::world::World;
use crate::container_runtime::answers::Run;
use crate::container_runtime::invocation;
use crate::container_runtime::stages::{Exit, Next, Step};
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use clock::after;
use machine::bounds::Fault;
use machine::process;
use machine::surroundings::Surroundings;

/// What is due while its process runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Running {
    pub(super) ready_at: Option<Time>,
    pub(super) ends: Option<(Time, Exit)>,
    /// Whether `ends` is as its command says.
    pub(super) follows_command: bool,
    pub(super) probers: Option<Box<Probers>>,
}

impl Container {
    /// The process from its start to its end.
    pub(super) fn run(&mut self, spec: &Spec, started_at: Time, world: &mut World<'_>) -> Box<Running> {
        let around = self.around.as_deref();
        let hook = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
        let hook = hook.filter(|_| started_at == world.now).map(|hook| hooks::run(hook, around));
        let begun = after(world.now, hook.map_or(Duration::ZERO, |hook| hook.took));
        let ready_from = match world.stage(Step::Ready, spec, self.restart_count) {
            (delay, Next::Succeed) => {
                Some(after(started_at, delay).max(if hook.is_some() { begun } else { started_at }))
            }
            _ => None,
        };
        let run = Run { pod: world.pod, spec, around, pod_ip: &world.pod_ip, started_at };
        let probers = Probers::new(&run, begun, ready_from);
        let is_starting = probers.as_ref().is_some_and(|probers| probers.is_starting());
        let ready_at = ready_from.filter(|_| spec.readiness_probe.is_none() && !is_starting);
        let (delay, next) = world.stage(Step::Run, spec, self.restart_count);
        let follows_command = next == Next::FollowCommand;
        let mut ends = match next {
            Next::Exit(exit) => Some((after(started_at, delay), exit)),
            Next::FollowCommand => self.end_of_command(spec, started_at, delay),
            _ => None,
        };
        if hook.is_some_and(|hook| !hook.is_well) {
            world.note(spec, "Warning", "FailedPostStartHook", "PostStartHook failed".into());
            world.note(spec, "Normal", "Killing", "FailedPostStartHook".into());
            ends = Some((begun, Exit { code: 137, ..Exit::default() }));
        }
        (self.started, self.ready) = (!is_starting, false);
        Box::new(Running { ready_at, ends, follows_command, probers })
    }

    /// When its process ends by itself.
    pub(super) fn end_of_command(
        &self,
        spec: &Spec,
        started_at: Time,
        delay: Duration,
    ) -> Option<(Time, Exit)> {
        let nothing = Surroundings::default();
        let around = self.around.as_deref().unwrap_or(&nothing);
        let played = process::play(&invocation::of(spec), around, None)?;
        let (runtime, code) = played.end?;
        let told = |fault: Fault| Exit { code, reason: fault.reason().into(), message: fault.to_string() };
        let exit = played.fault.map_or_else(|| Exit { code, ..Exit::default() }, told);
        Some((after(started_at, delay.saturating_add(runtime)), exit))
    }

    /// It has become ready, or its probes are due.
    pub(super) fn look_at(
        &mut self,
        spec: &Spec,
        mut running: Box<Running>,
        due: Time,
        world: &mut World<'_>,
    ) {
        if running.ready_at.is_some_and(|at| at <= due) {
            (self.ready, running.ready_at) = (true, None);
        }
        let asked = running.probers.as_mut().filter(|probers| probers.due().is_some_and(|at| at <= due));
        let outcomes = asked.map(|probers| probers.ask(due)).unwrap_or_default();
        let mut kill = None;
        for outcome in outcomes {
            match outcome {
                probes::Outcome::Started => {
                    self.started = true;
                    running.ready_at = Some(due).filter(|_| spec.readiness_probe.is_none());
                }
                probes::Outcome::Ready(ready) => self.ready = ready,
                probes::Outcome::Unhealthy(kind, why) => {
                    world.note(spec, "Warning", "Unhealthy", format!("{kind} probe failed: {why}"));
                }
                probes::Outcome::Warning(kind, what) => {
                    world.note(spec, "Warning", "ProbeWarning", format!("{kind} probe warning: {what}"));
                }
                probes::Outcome::Kill(kind, grace) => kill = Some((kind.to_lowercase(), grace)),
            }
        }
        let Some((kind, grace)) = kill else { return self.task = Task::Run(running) };
        let restarts = if self.restart_policy.restarts(137) { ", will be restarted" } else { "" };
        let text = format!("Container {} failed {kind} probe{restarts}", spec.name);
        world.note(spec, "Normal", "Killing", text);
        let (until, exit) = self.signal(spec, grace_period(world.pod, grace), world);
        (self.ready, self.task) = (false, Task::Restart { until, exit });
    }

    pub(super) fn exit(&mut self, spec: &Spec, mut exit: Exit, finished_at: Time, world: &mut World<'_>) {
        if let Some(around) = self.around.clone() {
            let ran = (finished_at - around.started_at).to_std().unwrap_or_default();
            let played = process::play(&invocation::of(spec), &around, Some(ran)).unwrap_or_default();
            if exit.message.is_empty() {
                exit.message = process::termination_message(&played, exit.code, &around);
            }
            world.keep(process::left_in_volumes(&played.written, &around));
            self.unseen_runs = 0;
            if let Some(fault) = played.fault.filter(|fault| exit.message == fault.to_string()) {
                world.note(spec, "Warning", "Failed", format!("Error: container {}: {fault}", spec.name));
            }
        }
        world.note_exit(spec, exit.code);
        self.end(spec, self.ended(exit, finished_at), world);
    }
}

impl Running {
    pub(super) fn due(&self) -> Option<Time> {
        let ends = self.ends.as_ref().map(|(at, _)| *at);
        let probers = self.probers.as_ref().and_then(|probers| probers.due());
        [self.ready_at, ends, probers].into_iter().flatten().min()
    }
}
