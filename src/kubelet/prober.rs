//! Probes of a running container (`pkg/kubelet/prober`): when it has started, whether it is ready,
//! whether it is to be restarted.
//!
//! Most answers the runtime works out ahead: a command is played among the files that the container's script
//! has written by then, and a known server says the same to everybody. A probe that passes on such answers is
//! asked no more until they change. Where nobody knows ahead, or something is wrong on the way to the server,
//! the network is asked each time ([`crate::probing`]).

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
            if let Some(probe) = prober.kind.of(probed.config.container) {
                prober.forecast = runtime.probe_forecast(probed, probe);
            }
            prober.look_again(now);
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
                if let (Some(asked), false) = (self.last, matches!(answer, ProbeAnswer::Failure(_))) {
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
        self.count.add(is_good);
        match answer {
            ProbeAnswer::Failure(why) => outcomes.push(Outcome::Unhealthy(self.kind, why)),
            ProbeAnswer::Warning(what) => outcomes.push(Outcome::Warning(self.kind, what)),
            ProbeAnswer::Success => {}
        }
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
            told.extend(probers.ask(due, &|| true).into_iter().map(|outcome| (due.timestamp(), outcome)));
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
                (10, unhealthy(ProbeKind::Liveness)),
                (10, unhealthy(ProbeKind::Readiness)),
                (15, unhealthy(ProbeKind::Liveness)),
                (15, Outcome::Kill(ProbeKind::Liveness, None)),
                (15, unhealthy(ProbeKind::Readiness)),
                (15, Outcome::Ready(false)),
            ]
        );
    }

    #[test]
    fn probes_that_need_not_be_asked_are_counted_all_the_same() {
        let script = "touch /tmp/ok; sleep 32; rm /tmp/ok; sleep 600";
        let exec =
            json!({"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 10, "failureThreshold": 9});
        let http = json!({"exec": {"command": ["true"]}, "periodSeconds": 5});
        let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script],
            "startupProbe": http, "livenessProbe": exec, "readinessProbe": http});
        let given = given::running(container);
        let (config, started_at) = (given.config(), Time::UNIX_EPOCH);
        let probed = ProbedContainer { config, id: &given.id, pod_ip: "10.0.0.1", started_at };
        let mut probers = Probers::new(&given.runtime, &probed, started_at, Some(started_at)).unwrap();
        let mut counts = |second: u64| {
            let now = started_at + Duration::from_secs(second);
            while let Some(due) = probers.due().filter(|due| *due <= now) {
                probers.ask(due, &|| true);
            }
            let all = probers.counts(now).into_iter();
            all.map(|(kind, count)| (kind.name(), count.successful, count.failed)).collect::<Vec<_>>()
        };
        assert_eq!(counts(0), [("Startup", 1, 0), ("Liveness", 1, 0), ("Readiness", 1, 0)]);
        assert_eq!(counts(29), [("Startup", 1, 0), ("Liveness", 3, 0), ("Readiness", 6, 0)]);
        assert_eq!(counts(30), [("Startup", 1, 0), ("Liveness", 4, 0), ("Readiness", 7, 0)]);
        assert_eq!(counts(61), [("Startup", 1, 0), ("Liveness", 4, 3), ("Readiness", 13, 0)]);
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
            assert_eq!(outcomes.last().unwrap().1, Outcome::Kill(ProbeKind::Liveness, None), "{script}");
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
        let bad = |at: i64, why: &str| Some((at, Outcome::Unhealthy(ProbeKind::Liveness, why.to_owned())));
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
        assert_eq!(told(container, 60), [(0, Outcome::Warning(ProbeKind::Liveness, body.into()))]);
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
