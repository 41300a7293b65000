//! Probes of a running container (`pkg/kubelet/prober`): when it has started, whether it is ready,
//! whether it is to be restarted.
//!
//! Most answers the runtime works out ahead: a command is played among the files that the container's script
//! has written by then, and a known server says the same to everybody. A probe that passes on such answers is
//! asked no more until they change. Where nobody knows ahead, or something is wrong on the way to the server,
//! the network is asked each time ([`crate::probing`]); in a container that somebody else has written into
//! (`exec`, `attach`, `cp`) the command is run each time, among the files that are there then.

use std::time::Duration;

use crate::container_runtime::services::{ProbeAnswer, ProbeForecast, ProbedContainer, RuntimeService};
use crate::probe_counts::ProbeCount;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use apis::views::probe::Probe;
use clock::after;

/// Of a probe that does not say.
const DEFAULT_PERIOD: i64 = 10;
const DEFAULT_FAILURES: i64 = 3;

/// Which of a container's probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Whether it has started: until then nobody asks the others.
    Startup,
    /// Whether it is to be restarted.
    Liveness,
    /// Whether it is ready.
    Readiness,
}

/// What became of a probe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The startup probe passed.
    Started,
    /// Whether it is ready.
    Ready(bool),
    /// A bad answer: the probe, and what it said.
    Unhealthy(ProbeKind, String),
    /// No answer at all: the probe, and why.
    Errored(ProbeKind, String),
    /// A good answer that is told of: the probe, and what it said.
    Warning(ProbeKind, String),
    /// Too many of those: the probe, and the grace of the process, if it has one of its own.
    Kill(ProbeKind, Option<i64>),
    /// Somebody is to ask, and to tell [`Probers::hear`].
    Asks(ProbeKind),
}

/// The probes of one run of a container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Probers {
    startup: Option<Prober>,
    /// How often that was asked which has passed.
    started: Option<ProbeCount>,
    others: Vec<Prober>,
}

#[derive(Clone, Debug, PartialEq)]
struct Prober {
    kind: ProbeKind,
    /// Nothing when the answer is known for ever, or awaited.
    next: Option<Time>,
    /// When it was asked last.
    last: Option<Time>,
    period: Duration,
    successes: (i64, i64),
    failures: (i64, i64),
    passes: bool,
    count: ProbeCount,
    grace_period_seconds: Option<i64>,
    forecast: ProbeForecast,
    question: ProbeQuestion,
}

/// How far a question is that the network was asked.
#[derive(Clone, Debug, PartialEq)]
enum ProbeQuestion {
    None,
    Asked,
    Answered(ProbeAnswer),
}

impl ProbeKind {
    /// As events call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ProbeKind::Startup => "Startup",
            ProbeKind::Liveness => "Liveness",
            ProbeKind::Readiness => "Readiness",
        }
    }

    /// That probe of a container.
    pub(crate) fn of(self, spec: &Spec) -> Option<&Probe> {
        match self {
            ProbeKind::Startup => spec.startup_probe.as_deref(),
            ProbeKind::Liveness => spec.liveness_probe.as_deref(),
            ProbeKind::Readiness => spec.readiness_probe.as_deref(),
        }
    }
}

impl Probers {
    /// Those of a container; nothing when it has none. Nobody asks before `first`, nor whether it is
    /// ready before `ready_from`; without that it never will be.
    pub(crate) fn new(
        runtime: &dyn RuntimeService,
        probed: &ProbedContainer<'_>,
        first: Time,
        ready_from: Option<Time>,
    ) -> Option<Box<Probers>> {
        let spec = probed.config.container;
        let prober = |kind: ProbeKind, from: Time| {
            kind.of(spec).map(|probe| Prober::new(kind, probe, (runtime, probed), from))
        };
        let startup = prober(ProbeKind::Startup, first);
        let liveness = prober(ProbeKind::Liveness, first);
        let readiness = ready_from.and_then(|from| prober(ProbeKind::Readiness, from.max(first)));
        let others: Vec<Prober> = liveness.into_iter().chain(readiness).collect();
        (startup.is_some() || !others.is_empty())
            .then(|| Box::new(Probers { startup, started: None, others }))
    }

    /// Whether its startup probe is still to pass.
    pub(crate) fn is_starting(&self) -> bool {
        self.startup.is_some()
    }

    /// It had started before: of a container that is taken up again.
    pub(crate) fn forget_startup(&mut self, is_ready: bool) {
        self.startup = None;
        for prober in self.others.iter_mut().filter(|prober| prober.kind == ProbeKind::Readiness) {
            prober.passes = is_ready;
        }
    }

    /// What is still asked of a container that is stopped: whether it is ready, if it has started
    /// (`StopLivenessAndStartup`).
    pub(crate) fn stop_liveness_and_startup(mut self: Box<Probers>) -> Option<Box<Probers>> {
        self.others.retain(|prober| prober.kind == ProbeKind::Readiness);
        (self.startup.is_none() && !self.others.is_empty()).then_some(self)
    }

    /// How often each was asked until `now`.
    pub(crate) fn counts(&self, now: Time) -> Vec<(ProbeKind, ProbeCount)> {
        let asked = self.startup.iter().chain(&self.others);
        let started = self.started.map(|count| (ProbeKind::Startup, count));
        started.into_iter().chain(asked.map(|prober| (prober.kind, prober.counted(now)))).collect()
    }

    /// When one of them is next asked.
    pub(crate) fn due(&self) -> Option<Time> {
        match &self.startup {
            Some(startup) => startup.next,
            None => self.others.iter().filter_map(|prober| prober.next).min(),
        }
    }

    /// Asks those that are due. `is_fair` says whether nothing is wrong on the way to the container.
    pub(crate) fn ask(&mut self, now: Time, is_fair: &dyn Fn() -> bool) -> Vec<Outcome> {
        let is_due = |prober: &Prober| prober.next.is_some_and(|next| next <= now);
        let mut outcomes = Vec::new();
        let Some(startup) = &mut self.startup else {
            let due = self.others.iter_mut().filter(|prober| is_due(prober));
            due.for_each(|prober| prober.ask(now, is_fair, &mut outcomes));
            return outcomes;
        };
        if is_due(startup) {
            startup.ask(now, is_fair, &mut outcomes);
        }
        if outcomes.contains(&Outcome::Started) {
            self.started = self.startup.take().map(|startup| startup.count);
            for prober in &mut self.others {
                prober.next = prober.next.map(|next| next.max(now));
            }
        }
        outcomes
    }

    /// What was answered at `now` to a probe that said [`Outcome::Asks`].
    pub(crate) fn hear(&mut self, kind: ProbeKind, answer: ProbeAnswer, now: Time) {
        let mut all = self.startup.iter_mut().chain(&mut self.others);
        if let Some(prober) =
            all.find(|prober| prober.kind == kind && prober.question == ProbeQuestion::Asked)
        {
            (prober.question, prober.next) = (ProbeQuestion::Answered(answer), Some(now));
        }
    }

    /// Who answers may be another now, or on another way: each probe over the network is asked when its
    /// period is over, whatever it knew.
    pub(crate) fn look_again(
        &mut self,
        runtime: &dyn RuntimeService,
        probed: &ProbedContainer<'_>,
        now: Time,
    ) {
        let all = self.startup.iter_mut().chain(&mut self.others);
        for prober in all.filter(|prober| prober.is_over_network()) {
            prober.forecast_again(runtime, probed);
            prober.look_again(now);
        }
    }

    /// What the container finds, or was told, is another now: each probe of which that changes what is known
    /// ahead is asked when its period is over.
    pub(crate) fn look_at_files_again(
        &mut self,
        runtime: &dyn RuntimeService,
        probed: &ProbedContainer<'_>,
        now: Time,
    ) {
        for prober in self.startup.iter_mut().chain(&mut self.others) {
            if prober.forecast_again(runtime, probed) {
                prober.look_again(now);
            }
        }
    }
}

impl Prober {
    fn new(
        kind: ProbeKind,
        probe: &Probe,
        (runtime, probed): (&dyn RuntimeService, &ProbedContainer<'_>),
        first: Time,
    ) -> Prober {
        let or = |value: i64, default: i64| if value > 0 { value } else { default };
        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let delayed = after(probed.started_at, seconds(probe.initial_delay_seconds));
        Prober {
            kind,
            next: Some(delayed.max(first)),
            last: None,
            period: seconds(or(probe.period_seconds, DEFAULT_PERIOD)),
            successes: (0, or(probe.success_threshold, 1)),
            failures: (0, or(probe.failure_threshold, DEFAULT_FAILURES)),
            passes: kind == ProbeKind::Liveness,
            count: ProbeCount::default(),
            grace_period_seconds: probe.termination_grace_period_seconds,
            forecast: runtime.probe_forecast(probed, probe),
            question: ProbeQuestion::None,
        }
    }

    /// With the times that nobody had to ask since its answer was known: each would have passed.
    fn counted(&self, now: Time) -> ProbeCount {
        let Some(last) = self.last.filter(|_| self.question == ProbeQuestion::None && self.failures.0 == 0)
        else {
            return self.count;
        };
        let until = self.next.map_or(now, |next| now.min(next - self.period));
        let unasked = (until - last).to_std().unwrap_or_default().as_nanos() / self.period.as_nanos().max(1);
        self.count.and_successful(u64::try_from(unasked).unwrap_or(u64::MAX))
    }

    /// Whether what is known ahead is something else now.
    fn forecast_again(&mut self, runtime: &dyn RuntimeService, probed: &ProbedContainer<'_>) -> bool {
        let Some(probe) = self.kind.of(probed.config.container) else { return false };
        let forecast = runtime.probe_forecast(probed, probe);
        let differs = forecast != self.forecast;
        self.forecast = forecast;
        differs
    }

    fn is_over_network(&self) -> bool {
        !matches!(self.forecast, ProbeForecast::Played(_))
    }

    /// What is known ahead; nothing when somebody is to ask.
    fn known(&self, now: Time, is_fair: &dyn Fn() -> bool) -> Option<ProbeAnswer> {
        match &self.forecast {
            ProbeForecast::Played(answers) => Some(at(answers, now)),
            ProbeForecast::Served(answers) if is_fair() => Some(at(answers, now)),
            ProbeForecast::Assumed if is_fair() => Some(ProbeAnswer::Success),
            _ => None,
        }
    }

    fn ask(&mut self, now: Time, is_fair: &dyn Fn() -> bool, outcomes: &mut Vec<Outcome>) {
        self.count = self.counted(now);
        let answer = match std::mem::replace(&mut self.question, ProbeQuestion::None) {
            ProbeQuestion::Answered(answer) => {
                let is_bad = matches!(answer, ProbeAnswer::Failure(_) | ProbeAnswer::Errored(_));
                if let (Some(asked), false) = (self.last, is_bad) {
                    self.count.took((self.next.unwrap_or(now) - asked).to_std().unwrap_or_default());
                }
                Some(answer)
            }
            _ => self.known(now, is_fair).inspect(|_| self.last = Some(now)),
        };
        match answer {
            Some(answer) => self.take(answer, now, is_fair, outcomes),
            None => {
                (self.question, self.next, self.last) = (ProbeQuestion::Asked, None, Some(now));
                outcomes.push(Outcome::Asks(self.kind));
            }
        }
    }

    fn take(
        &mut self,
        answer: ProbeAnswer,
        now: Time,
        is_fair: &dyn Fn() -> bool,
        outcomes: &mut Vec<Outcome>,
    ) {
        let is_good = !matches!(answer, ProbeAnswer::Failure(_));
        match answer {
            // The result is thrown away (`worker.doProbe`).
            ProbeAnswer::Errored(why) => {
                outcomes.push(Outcome::Errored(self.kind, why));
                return self.next = self.next_after(now, false, is_fair);
            }
            ProbeAnswer::Failure(why) => outcomes.push(Outcome::Unhealthy(self.kind, why)),
            ProbeAnswer::Warning(what) => outcomes.push(Outcome::Warning(self.kind, what)),
            ProbeAnswer::Success => {}
        }
        self.count.add(is_good);
        let (mine, other) = if is_good {
            (&mut self.successes, &mut self.failures)
        } else {
            (&mut self.failures, &mut self.successes)
        };
        other.0 = 0;
        mine.0 += 1;
        let is_enough = mine.0 >= mine.1;
        self.next = self.next_after(now, is_good && is_enough, is_fair);
        if !is_enough || (self.passes == is_good && (is_good || self.kind == ProbeKind::Readiness)) {
            return;
        }
        self.passes = is_good;
        match (self.kind, is_good) {
            (ProbeKind::Readiness, is_ready) => outcomes.push(Outcome::Ready(is_ready)),
            (ProbeKind::Startup, true) => outcomes.push(Outcome::Started),
            (kind, false) => {
                self.next = None;
                outcomes.push(Outcome::Kill(kind, self.grace_period_seconds));
            }
            _ => {}
        }
    }

    /// A probe that passes on what is known ahead is asked again when that changes; any other when its
    /// period is over. Ticks that fall into the time of a question are lost but for one, as in Go.
    fn next_after(&self, now: Time, is_settled: bool, is_fair: &dyn Fn() -> bool) -> Option<Time> {
        let next = after(self.last.unwrap_or(now), self.period).max(now);
        let answers = match &self.forecast {
            ProbeForecast::Played(answers) => answers,
            ProbeForecast::Served(answers) if is_fair() => answers,
            ProbeForecast::Assumed if is_fair() => &Vec::new(),
            _ => return Some(next),
        };
        if !is_settled {
            return Some(next);
        }
        let (change, _) = answers.iter().find(|(from, _)| *from > now)?;
        let wait = (*change - next).to_std().unwrap_or_default();
        let periods = wait.as_nanos().div_ceil(self.period.as_nanos().max(1));
        Some(after(next, self.period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX))))
    }

    /// One that waits for an answer, or was never asked, has its turn anyway.
    fn look_again(&mut self, now: Time) {
        let Some(last) = self.last.filter(|_| self.question == ProbeQuestion::None) else { return };
        let since = (now - last).to_std().unwrap_or_default();
        let periods = since.as_nanos() / self.period.as_nanos().max(1) + 1;
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        let tick = after(last, self.period.saturating_mul(periods));
        self.next = Some(self.next.map_or(tick, |next| next.min(tick)));
    }
}

/// The answer from the last time on that is not later.
fn at(answers: &[(Time, ProbeAnswer)], now: Time) -> ProbeAnswer {
    let found = answers.iter().rev().find(|(from, _)| *from <= now);
    found.map_or(ProbeAnswer::Success, |(_, answer)| answer.clone())
}

#[cfg(test)]
mod tests;
