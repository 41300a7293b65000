//! Probes of a running container (`pkg/kubelet/prober`): when it has started, whether it is ready,
//! whether it is to be restarted.
//!
//! What a probe answers is worked out ahead, for nothing comes from outside: a command is played among
//! the files that the container's script has written by then, a server is one of those that are known,
//! and a script that is known serves nothing. One that passes from now on is asked no more.

use std::time::Duration;

use super::runtime::after;
use super::surroundings::Surroundings;
use super::{agnhost, process};
use crate::apimachinery::int_or_string::IntOrString;
use crate::apimachinery::time::Time;
use crate::apis::views::pod::Container;
use crate::apis::views::probe::{ExecAction, Probe};

/// After so long the test image's `liveness` server fails its health check.
const LIVENESS_SERVER_FAILS_AFTER: Duration = Duration::from_secs(10);
/// Where the test image's gRPC server listens.
const GRPC_PORT: i64 = 5000;
/// Of a probe that does not say.
const DEFAULT_PERIOD: i64 = 10;
const DEFAULT_FAILURES: i64 = 3;

/// What became of a probe.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The startup probe passed.
    Started,
    /// Whether it is ready.
    Ready(bool),
    /// A bad answer: the probe's name, and what it said.
    Unhealthy(&'static str, String),
    /// Too many of those: the probe's name, and the grace of the process, if it has one of its own.
    Kill(&'static str, Option<i64>),
}

/// The probes of one run of a container.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probers {
    startup: Option<Prober>,
    others: Vec<Prober>,
}

#[derive(Clone, Debug, PartialEq)]
struct Prober {
    /// `Startup`, `Liveness` or `Readiness`.
    kind: &'static str,
    /// Nothing when the answer is known for ever.
    next: Option<Time>,
    period: Duration,
    successes: (i64, i64),
    failures: (i64, i64),
    passes: bool,
    grace_period_seconds: Option<i64>,
    /// What it answers from a time on.
    answers: Vec<(Time, Result<(), String>)>,
}

/// A run of a container, as far as it is known.
pub(super) struct Run<'a> {
    pub(super) spec: &'a Container,
    pub(super) around: Option<&'a Surroundings>,
    pub(super) pod_ip: &'a str,
    pub(super) started_at: Time,
}

impl Probers {
    /// Those of a container; nothing when it has none. Nobody asks before `first`, nor whether it is
    /// ready before `ready_from`; without that it never will be.
    pub(super) fn new(run: &Run<'_>, first: Time, ready_from: Option<Time>) -> Option<Box<Probers>> {
        let spec = run.spec;
        let prober = |kind, probe: &Option<Box<Probe>>, from: Time| {
            probe.as_deref().map(|probe| Prober::new(kind, probe, run, from))
        };
        let startup = prober("Startup", &spec.startup_probe, first);
        let liveness = prober("Liveness", &spec.liveness_probe, first);
        let readiness =
            ready_from.and_then(|from| prober("Readiness", &spec.readiness_probe, from.max(first)));
        let others: Vec<Prober> = liveness.into_iter().chain(readiness).collect();
        (startup.is_some() || !others.is_empty()).then(|| Box::new(Probers { startup, others }))
    }

    /// Whether its startup probe is still to pass.
    pub(super) fn is_starting(&self) -> bool {
        self.startup.is_some()
    }

    /// It had started before: of a container that is taken up again.
    pub(super) fn forget_startup(&mut self, is_ready: bool) {
        self.startup = None;
        for prober in self.others.iter_mut().filter(|prober| prober.kind == "Readiness") {
            prober.passes = is_ready;
        }
    }

    /// When one of them is next asked.
    pub(super) fn due(&self) -> Option<Time> {
        match &self.startup {
            Some(startup) => startup.next,
            None => self.others.iter().filter_map(|prober| prober.next).min(),
        }
    }

    /// Asks those that are due.
    pub(super) fn ask(&mut self, now: Time) -> Vec<Outcome> {
        let is_due = |prober: &Prober| prober.next.is_some_and(|next| next <= now);
        let mut outcomes = Vec::new();
        let Some(startup) = &mut self.startup else {
            self.others.iter_mut().filter(|prober| is_due(prober)).for_each(|it| it.ask(now, &mut outcomes));
            return outcomes;
        };
        if is_due(startup) {
            startup.ask(now, &mut outcomes);
        }
        if outcomes.contains(&Outcome::Started) {
            self.startup = None;
            for prober in &mut self.others {
                prober.next = prober.next.map(|next| next.max(now));
            }
        }
        outcomes
    }
}

impl Prober {
    fn new(kind: &'static str, probe: &Probe, run: &Run<'_>, first: Time) -> Prober {
        let or = |value: i64, default: i64| if value > 0 { value } else { default };
        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let delayed = after(run.started_at, seconds(probe.initial_delay_seconds));
        Prober {
            kind,
            next: Some(delayed.max(first)),
            period: seconds(or(probe.period_seconds, DEFAULT_PERIOD)),
            successes: (0, or(probe.success_threshold, 1)),
            failures: (0, or(probe.failure_threshold, DEFAULT_FAILURES)),
            passes: kind == "Liveness",
            grace_period_seconds: probe.termination_grace_period_seconds,
            answers: answers(probe, run),
        }
    }

    fn ask(&mut self, now: Time, outcomes: &mut Vec<Outcome>) {
        let answer = self.answers.iter().rev().find(|(from, _)| *from <= now);
        let is_good = match answer {
            Some((_, Err(why))) => {
                outcomes.push(Outcome::Unhealthy(self.kind, why.clone()));
                false
            }
            _ => true,
        };
        let (mine, other) = match is_good {
            true => (&mut self.successes, &mut self.failures),
            false => (&mut self.failures, &mut self.successes),
        };
        other.0 = 0;
        mine.0 += 1;
        let is_enough = mine.0 >= mine.1;
        self.next = self.next_after(now, is_good && is_enough);
        if !is_enough || (self.passes == is_good && (is_good || self.kind == "Readiness")) {
            return;
        }
        self.passes = is_good;
        match (self.kind, is_good) {
            ("Readiness", is_ready) => outcomes.push(Outcome::Ready(is_ready)),
            ("Startup", true) => outcomes.push(Outcome::Started),
            (kind, false) => {
                self.next = None;
                outcomes.push(Outcome::Kill(kind, self.grace_period_seconds));
            }
            _ => {}
        }
    }

    /// A probe that passes is asked again when its answer changes.
    fn next_after(&self, now: Time, is_settled: bool) -> Option<Time> {
        let next = after(now, self.period);
        if !is_settled {
            return Some(next);
        }
        let (change, _) = self.answers.iter().find(|(from, _)| *from > now)?;
        let wait = (*change - next).to_std().unwrap_or_default();
        let periods = wait.as_nanos().div_ceil(self.period.as_nanos().max(1));
        Some(after(next, self.period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX))))
    }
}

/// What a probe answers, from when on.
fn answers(probe: &Probe, run: &Run<'_>) -> Vec<(Time, Result<(), String>)> {
    if let Some(exec) = &probe.exec {
        return exec_answers(exec, run);
    }
    let is_known = process::is_known(run.spec);
    let ip = run.pod_ip;
    let serves = agnhost::serves(&run.spec.image, &run.spec.command, &run.spec.args);
    let always = |answer| vec![(run.started_at, answer)];
    if let Some(http) = &probe.http_get {
        if serves == Some("liveness") {
            let failed = Err("HTTP probe failed with statuscode: 500".to_owned());
            let from = after(run.started_at, LIVENESS_SERVER_FAILS_AFTER);
            return vec![(run.started_at, Ok(())), (from, failed)];
        }
        let (port, scheme) = (port(&http.port, run.spec), http.scheme.to_lowercase());
        let scheme = if scheme.is_empty() { "http" } else { &scheme };
        let path = http.path.trim_start_matches('/');
        return always(match is_known {
            true => Err(format!("Get \"{scheme}://{ip}:{port}/{path}\": {}", refused(ip, port))),
            false => Ok(()),
        });
    }
    if let Some(tcp) = &probe.tcp_socket {
        return always(if is_known { Err(refused(ip, port(&tcp.port, run.spec))) } else { Ok(()) });
    }
    match &probe.grpc {
        Some(grpc) => {
            let port = port(&grpc.port, run.spec);
            let is_there = if serves.is_some() { port == GRPC_PORT } else { !is_known };
            let why = format!(
                "timeout: failed to connect service \"{ip}:{port}\" within 1m0s: context deadline exceeded"
            );
            always(if is_there { Ok(()) } else { Err(why) })
        }
        None => always(Ok(())),
    }
}

fn refused(ip: &str, port: i64) -> String {
    format!("dial tcp {ip}:{port}: connect: connection refused")
}

fn port(port: &Option<IntOrString>, spec: &Container) -> i64 {
    match port {
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            spec.ports.iter().find(|port| port.name == *name).map_or(0, |port| port.container_port.into())
        }
        None => 0,
    }
}

/// The command is played whenever files have changed.
fn exec_answers(exec: &ExecAction, run: &Run<'_>) -> Vec<(Time, Result<(), String>)> {
    let nothing = Surroundings::default();
    let around = run.around.unwrap_or(&nothing);
    let played = run.around.and_then(|around| process::play(run.spec, around, None));
    let changes = played.as_ref().map_or(&[][..], |played| &played.changes);
    let mut times: Vec<Duration> = vec![Duration::ZERO];
    times.extend(changes.iter().copied().chain(around.views.iter().map(|view| view.after)));
    times.sort();
    times.dedup();
    let answer = |time: &Duration| {
        let written = match &played {
            Some(_) => process::play(run.spec, around, Some(*time)).map(|played| played.written),
            None => None,
        };
        (after(run.started_at, *time), exec_answer(exec, around, written, *time))
    };
    times.iter().map(answer).collect()
}

fn exec_answer(
    exec: &ExecAction,
    around: &Surroundings,
    written: Option<Vec<process::Change>>,
    time: Duration,
) -> Result<(), String> {
    // Of a process that is not known nobody knows what files it has.
    if written.is_none() && !process::is_constant(&exec.command) {
        return Ok(());
    }
    let around = around.from(time);
    match process::exec(&exec.command, &around, written.unwrap_or_default(), None) {
        Some(executed) => match executed.end {
            Some((_, 0)) => Ok(()),
            _ => Err(executed.out + &executed.errors),
        },
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(container: Value, until_seconds: i64) -> Vec<(i64, Outcome)> {
        let spec: Container = serde_json::from_value(container).unwrap();
        let around = Surroundings::default();
        let around = process::is_known(&spec).then_some(&around);
        let run = Run { spec: &spec, around, pod_ip: "10.0.0.1", started_at: Time::UNIX_EPOCH };
        let mut probers = Probers::new(&run, Time::UNIX_EPOCH, Some(Time::UNIX_EPOCH)).unwrap();
        let mut told = vec![];
        while let Some(due) = probers.due().filter(|due| due.timestamp() <= until_seconds) {
            told.extend(probers.ask(due).into_iter().map(|outcome| (due.timestamp(), outcome)));
        }
        told
    }

    #[test]
    fn a_file_that_goes_fails_its_probe() {
        let script = "echo ok >/tmp/health; sleep 10; rm -rf /tmp/health; sleep 600";
        let probe = json!({"exec": {"command": ["cat", "/tmp/health"]}, "initialDelaySeconds": 5,
            "periodSeconds": 5, "failureThreshold": 2});
        let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script],
            "livenessProbe": probe, "readinessProbe": probe});
        let why = "cat: can't open '/tmp/health': No such file or directory\n".to_owned();
        let unhealthy = |kind| Outcome::Unhealthy(kind, why.clone());
        assert_eq!(
            told(container, 16),
            [
                (5, Outcome::Ready(true)),
                (10, unhealthy("Liveness")),
                (10, unhealthy("Readiness")),
                (15, unhealthy("Liveness")),
                (15, Outcome::Kill("Liveness", None)),
                (15, unhealthy("Readiness")),
                (15, Outcome::Ready(false)),
            ]
        );
    }

    #[test]
    fn the_others_wait_for_the_startup_probe() {
        let script = "sleep 12; touch /tmp/started; sleep 600";
        let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script],
            "startupProbe": {"exec": {"command": ["test", "-f", "/tmp/started"]}, "failureThreshold": 60},
            "readinessProbe": {"exec": {"command": ["true"]}}});
        let outcomes: Vec<_> = told(container, 60)
            .into_iter()
            .filter(|(_, outcome)| !matches!(outcome, Outcome::Unhealthy(..)))
            .collect();
        assert_eq!(outcomes, [(20, Outcome::Started), (20, Outcome::Ready(true))]);
    }

    #[test]
    fn servers_that_are_known_answer_as_they_do() {
        let http = json!({"httpGet": {"path": "/healthz", "port": 8080}, "failureThreshold": 1});
        let serving = |image: &str, args: Value, probe: &Value| {
            told(json!({"name": "a", "image": image, "args": args, "livenessProbe": probe}), 60)
        };
        let last = |told: Vec<(i64, Outcome)>| told.last().cloned();
        let killed = Some((10, Outcome::Kill("Liveness", None)));
        assert_eq!(last(serving("e2e/agnhost:2", json!(["liveness"]), &http)), killed);
        assert_eq!(last(serving("nginx", json!([]), &http)), None);
        let refused = serving("busybox", json!(["sleep", "600"]), &http);
        let why = "Get \"http://10.0.0.1:8080/healthz\": dial tcp 10.0.0.1:8080: connect: connection refused";
        assert_eq!(refused[0].1, Outcome::Unhealthy("Liveness", why.into()));
        let grpc = |port: i64| json!({"grpc": {"port": port}, "failureThreshold": 1});
        assert_eq!(last(serving("agnhost", json!(["grpc-health-checking"]), &grpc(5000))), None);
        assert!(last(serving("agnhost", json!(["grpc-health-checking"]), &grpc(2333))).is_some());
    }
}
