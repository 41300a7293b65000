//! How probes are asked and judged, over their time.

use super::*;
use crate::container_runtime::given;
use crate::container_runtime::services::ExecCommand;
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
fn a_probe_whose_program_is_not_there_is_neither_good_nor_bad() {
    let probe =
        json!({"exec": {"command": ["curl", "localhost"]}, "periodSeconds": 10, "failureThreshold": 1});
    let container = json!({"name": "a", "image": "busybox", "command": ["sleep", "600"],
        "livenessProbe": probe, "readinessProbe": probe});
    let why = "rpc error: code = Unknown desc = failed to exec in container: OCI runtime exec failed: exec failed: \
               unable to start container process: exec: \"curl\": executable file not found in $PATH: unknown";
    let errored = |at, kind| (at, Outcome::Errored(kind, why.to_owned()));
    let each = |at| [errored(at, ProbeKind::Liveness), errored(at, ProbeKind::Readiness)];
    assert_eq!(told(container, 25), [each(0), each(10), each(20)].concat());
    let probe = json!({"exec": {"command": ["ps"]}, "periodSeconds": 10});
    let installs = json!({"name": "a", "image": "debian", "readinessProbe": probe,
        "command": ["sh", "-c", "sleep 5; apt-get install -y procps; sleep 600"]});
    assert!(matches!(told(installs, 15).as_slice(), [(0, Outcome::Errored(..)), (10, Outcome::Ready(true))]));
}

#[test]
fn probes_that_need_not_be_asked_are_counted_all_the_same() {
    let script = "touch /tmp/ok; sleep 32; rm /tmp/ok; sleep 600";
    let exec = json!({"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 10, "failureThreshold": 9});
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
        told(json!({"name": "a", "image": image, "args": words, "livenessProbe": probe}), 60).first().cloned()
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
    let container = json!({"name": "a", "image": "agnhost", "args": ["liveness"], "livenessProbe": probe});
    let body = "Probe terminated redirects, Response body: <a href=\"http://0.0.0.0/\">Found</a>.\n\n";
    assert_eq!(told(container, 60), [(0, Outcome::Warning(ProbeKind::Liveness, body.into()))]);
    let (mut path, own) = ("/redirect?loc=%2F".to_owned(), "%2Fredirect%3Floc%3D");
    for _ in 0..12 {
        path = format!("/redirect?loc={}", path.replace('%', "%25").replace("/redirect?loc=", own));
    }
    let probe = json!({"httpGet": {"path": path, "port": 8080}, "failureThreshold": 1});
    let container = json!({"name": "a", "image": "agnhost", "args": ["liveness"], "livenessProbe": probe});
    let outcomes = told(container, 60);
    let Outcome::Unhealthy(_, why) = &outcomes[0].1 else { panic!("{outcomes:?}") };
    assert!(why.ends_with(": stopped after 10 redirects"), "{why}");
}

/// Asks a probe that is due, as often as it can be without the kubelet.
fn ask_at(probers: &mut Probers, second: u64) -> Vec<Outcome> {
    probers.ask(Time::UNIX_EPOCH + Duration::from_secs(second), &|| true)
}

#[test]
fn a_command_is_run_in_a_container_that_somebody_else_has_written_into() {
    let probe = json!({"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 5});
    let given = given::running(json!({"name": "a", "image": "busybox", "command": ["sleep", "600"],
        "readinessProbe": probe}));
    let (config, started_at) = (given.config(), Time::UNIX_EPOCH);
    let probed = ProbedContainer { config, id: &given.id, pod_ip: "10.0.0.1", started_at };
    let mut probers = Probers::new(&given.runtime, &probed, started_at, Some(started_at)).unwrap();
    assert!(matches!(ask_at(&mut probers, 0).as_slice(), [Outcome::Unhealthy(..)]));
    let words = ["touch", "/tmp/ready"].map(str::to_owned).to_vec();
    let touch = ExecCommand { words, ..ExecCommand::default() };
    let now = started_at + Duration::from_secs(2);
    given.runtime.exec(&config, &given.id, &touch, &|| None, now).unwrap();
    probers.look_at_files_again(&given.runtime, &probed, now);
    assert_eq!(probers.due(), Some(started_at + Duration::from_secs(5)));
    assert_eq!(ask_at(&mut probers, 5), [Outcome::Asks(ProbeKind::Readiness)]);
    probers.hear(ProbeKind::Readiness, ProbeAnswer::Success, started_at + Duration::from_secs(5));
    assert_eq!(ask_at(&mut probers, 5), [Outcome::Ready(true)]);
    // One that passes is asked all the same.
    assert_eq!(probers.due(), Some(started_at + Duration::from_secs(10)));
}

#[test]
fn a_known_command_is_run_in_a_container_of_which_nothing_is_known() {
    let asked = |image: &str, command: Value| {
        let probe = json!({"exec": {"command": command}, "periodSeconds": 5});
        let given = given::running(json!({"name": "a", "image": image, "readinessProbe": probe}));
        let (config, started_at) = (given.config(), Time::UNIX_EPOCH);
        let probed = ProbedContainer { config, id: &given.id, pod_ip: "10.0.0.1", started_at };
        let mut probers = Probers::new(&given.runtime, &probed, started_at, Some(started_at)).unwrap();
        ask_at(&mut probers, 0)
    };
    let asks = [Outcome::Asks(ProbeKind::Readiness)];
    assert_eq!(asked("my-server", json!(["ls", "/var/ready"])), asks);
    assert_eq!(asked("my-server", json!(["sh", "-c", "test -f /tmp/ready"])), asks);
    let passes = [Outcome::Ready(true)];
    assert_eq!(asked("postgres", json!(["pg_isready"])), passes);
    assert_eq!(asked("postgres", json!(["sh", "-c", "pg_isready -U postgres || exit 1"])), passes);
    assert_eq!(asked("my-server", json!(["true"])), passes);
    // What its processes are called nobody knows.
    assert_eq!(asked("my-server", json!(["sh", "-c", "pgrep -f server"])), passes);
}
