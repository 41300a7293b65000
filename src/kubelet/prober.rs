//! Probes of a running container (`pkg/kubelet/prober`): when it has started, whether it is ready,
//! whether it is to be restarted.
//!
//! What a probe answers the runtime works out ahead, for nothing comes from outside: a command is played
//! among the files that the container's script has written by then, and a server is one of those that are
//! known. One that passes from now on is asked no more.

use std::time::Duration;

use crate::container_runtime::services::{ProbeAnswer, ProbedContainer, RuntimeService};
use apimachinery::time::Time;
use apis::views::probe::Probe;
use clock::after;

/// Of a probe that does not say.
const DEFAULT_PERIOD: i64 = 10;
const DEFAULT_FAILURES: i64 = 3;

/// What became of a probe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The startup probe passed.
    Started,
    /// Whether it is ready.
    Ready(bool),
    /// A bad answer: the probe's name, and what it said.
    Unhealthy(&'static str, String),
    /// A good answer that is told of: the probe's name, and what it said.
    Warning(&'static str, String),
    /// Too many of those: the probe's name, and the grace of the process, if it has one of its own.
    Kill(&'static str, Option<i64>),
}

/// The probes of one run of a container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Probers {
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
    answers: Vec<(Time, ProbeAnswer)>,
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
        let prober = |kind, probe: &Option<Box<Probe>>, from: Time| {
            probe.as_deref().map(|probe| Prober::new(kind, probe, (runtime, probed), from))
        };
        let startup = prober("Startup", &spec.startup_probe, first);
        let liveness = prober("Liveness", &spec.liveness_probe, first);
        let readiness =
            ready_from.and_then(|from| prober("Readiness", &spec.readiness_probe, from.max(first)));
        let others: Vec<Prober> = liveness.into_iter().chain(readiness).collect();
        (startup.is_some() || !others.is_empty()).then(|| Box::new(Probers { startup, others }))
    }

    /// Whether its startup probe is still to pass.
    pub(crate) fn is_starting(&self) -> bool {
        self.startup.is_some()
    }

    /// It had started before: of a container that is taken up again.
    pub(crate) fn forget_startup(&mut self, is_ready: bool) {
        self.startup = None;
        for prober in self.others.iter_mut().filter(|prober| prober.kind == "Readiness") {
            prober.passes = is_ready;
        }
    }

    /// When one of them is next asked.
    pub(crate) fn due(&self) -> Option<Time> {
        match &self.startup {
            Some(startup) => startup.next,
            None => self.others.iter().filter_map(|prober| prober.next).min(),
        }
    }

    /// Asks those that are due.
    pub(crate) fn ask(&mut self, now: Time) -> Vec<Outcome> {
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
    fn new(
        kind: &'static str,
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
            period: seconds(or(probe.period_seconds, DEFAULT_PERIOD)),
            successes: (0, or(probe.success_threshold, 1)),
            failures: (0, or(probe.failure_threshold, DEFAULT_FAILURES)),
            passes: kind == "Liveness",
            grace_period_seconds: probe.termination_grace_period_seconds,
            answers: runtime.probe_answers(probed, probe),
        }
    }

    fn ask(&mut self, now: Time, outcomes: &mut Vec<Outcome>) {
        let answer = self.answers.iter().rev().find(|(from, _)| *from <= now);
        let is_good = match answer {
            Some((_, ProbeAnswer::Failure(why))) => {
                outcomes.push(Outcome::Unhealthy(self.kind, why.clone()));
                false
            }
            Some((_, ProbeAnswer::Warning(what))) => {
                outcomes.push(Outcome::Warning(self.kind, what.clone()));
                true
            }
            _ => true,
        };
        let (mine, other) = if is_good {
            (&mut self.successes, &mut self.failures)
        } else {
            (&mut self.failures, &mut self.successes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container_runtime::given;
    use serde_json::{Value, json};

    fn told(container: Value, until_seconds: i64) -> Vec<(i64, Outcome)> {
        let given = given::running(container);
        let (config, started_at) = (given.config(), Time::UNIX_EPOCH);
        let probed = ProbedContainer { config, id: &given.id, pod_ip: "10.0.0.1", started_at };
        let mut probers = Probers::new(&given.runtime, &probed, started_at, Some(started_at)).unwrap();
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
    fn a_probe_over_a_bound_does_not_pass() {
        for script in ["x=a; while [ 1 = 1 ]; do x=$x$x; done", "while [ 1 = 1 ]; do :; done", "echo 'open"] {
            let probe = json!({"exec": {"command": ["sh", "-c", script]}, "failureThreshold": 1});
            // The files change often: all answers together cost no more than one.
            let changes = "i=0; while true; do i=$((i+1)); echo $i > /f; sleep 1; done";
            let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", changes],
                "livenessProbe": probe});
            let outcomes = told(container, 60);
            assert_eq!(outcomes.last().unwrap().1, Outcome::Kill("Liveness", None), "{script}");
        }
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
        let asked = |image: &str, words: &[&str], probe: Value| {
            let mut probe = probe;
            probe["failureThreshold"] = 1.into();
            told(json!({"name": "a", "image": image, "args": words, "livenessProbe": probe}), 60)
                .first()
                .cloned()
        };
        let http = |path: &str, port: i64| json!({"httpGet": {"path": path, "port": port}});
        let tcp = |port: i64| json!({"tcpSocket": {"port": port}});
        let grpc = |port: i64, service: &str| json!({"grpc": {"port": port, "service": service}});
        let bad = |at: i64, why: &str| Some((at, Outcome::Unhealthy("Liveness", why.to_owned())));
        let status = |at: i64, code: i64| bad(at, &format!("HTTP probe failed with statuscode: {code}"));
        let refused = |port: i64| format!("dial tcp 10.0.0.1:{port}: connect: connection refused");
        let (agnhost, web) = ("e2e/agnhost:2", &["test-webserver"][..]);
        assert_eq!(asked(agnhost, &["liveness"], http("/healthz", 8080)), status(10, 500));
        assert_eq!(asked(agnhost, &["liveness"], http("/redirect?loc=%2Fhealthz", 8080)), status(10, 500));
        assert_eq!(asked(agnhost, &["liveness"], tcp(8080)), None);
        assert_eq!(asked(agnhost, web, http("/", 80)), None);
        assert_eq!(asked(agnhost, web, http("healthz", 80)), status(0, 404));
        let why = format!("Get \"http://10.0.0.1:81/\": {}", refused(81));
        assert_eq!(asked(agnhost, web, http("/", 81)), bad(0, &why));
        assert_eq!(asked("nginx", &[], http("/", 80)), None);
        assert_eq!(asked("nginx", &[], tcp(8080)), bad(0, &refused(8080)));
        assert_eq!(asked("my-server", &[], http("/any", 81)), None);
        let why = format!("Get \"http://10.0.0.1:8080/healthz\": {}", refused(8080));
        assert_eq!(asked("busybox", &["sleep", "600"], http("/healthz", 8080)), bad(0, &why));
        let https = json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTPS"}});
        let why = "Get \"https://10.0.0.1:80/\": http: server gave HTTP response to HTTPS client";
        assert_eq!(asked("nginx", &[], https), bad(0, why));
        let health = &["grpc-health-checking", "--service=a", "--delay-unhealthy-sec", "20"][..];
        assert_eq!(
            asked(agnhost, health, grpc(5000, "a")),
            bad(20, "service unhealthy (responded with \"NOT_SERVING\")")
        );
        let why = "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service";
        assert_eq!(asked(agnhost, health, grpc(5000, "b")), bad(0, why));
        let why = "timeout: failed to connect service \"10.0.0.1:2333\" within 1s: context deadline exceeded";
        assert_eq!(asked(agnhost, health, grpc(2333, "a")), bad(0, why));
    }

    #[test]
    fn redirects_to_elsewhere_are_told_of_and_not_followed() {
        let probe = json!({"httpGet": {"path": "/redirect?loc=http%3A%2F%2F0.0.0.0%2F", "port": 8080}});
        let container =
            json!({"name": "a", "image": "agnhost", "args": ["liveness"], "livenessProbe": probe});
        let body = "Probe terminated redirects, Response body: <a href=\"http://0.0.0.0/\">Found</a>.\n\n";
        assert_eq!(told(container, 60), [(0, Outcome::Warning("Liveness", body.into()))]);
        let (mut path, own) = ("/redirect?loc=%2F".to_owned(), "%2Fredirect%3Floc%3D");
        for _ in 0..12 {
            path = format!("/redirect?loc={}", path.replace('%', "%25").replace("/redirect?loc=", own));
        }
        let probe = json!({"httpGet": {"path": path, "port": 8080}, "failureThreshold": 1});
        let container =
            json!({"name": "a", "image": "agnhost", "args": ["liveness"], "livenessProbe": probe});
        let outcomes = told(container, 60);
        let Outcome::Unhealthy(_, why) = &outcomes[0].1 else { panic!("{outcomes:?}") };
        assert!(why.ends_with(": stopped after 10 redirects"), "{why}");
    }
}
