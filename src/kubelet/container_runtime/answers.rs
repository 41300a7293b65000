//! What a probe answers, worked out ahead: nothing comes from outside (`pkg/probe/exec`, `http`, `tcp`,
//! `grpc`).

use std::time::Duration;

use super::declared::forward::PodForwarding;
use super::declared::{self, DeclaredPort};
use super::invocation;
use super::listeners::{self, Listener};
use super::services::{ProbeAnswer as Answer, ProbedContainer};
use apimachinery::duration;
use apimachinery::int_or_string::IntOrString;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use apis::views::probe::{ExecAction, HttpGetAction, PortAction, Probe};
use clock::after;
use machine::bounds::MAX_STEPS;
use machine::file_system::Change;
use machine::servers::{Page, Server};
use machine::surroundings::Surroundings;
use machine::{exec, process, program};

/// So many redirects are followed (`net/http`); the next one fails the probe.
const MAX_REDIRECTS: usize = 10;

/// A run of a container, as far as it is known.
struct Run<'a> {
    pod: &'a Pod,
    spec: &'a Container,
    around: Option<&'a Surroundings>,
    pod_ip: &'a str,
    started_at: Time,
}

/// What a probe answers, from when on.
pub(crate) fn answers(
    probe: &Probe,
    probed: &ProbedContainer<'_>,
    around: Option<&Surroundings>,
) -> Vec<(Time, Answer)> {
    let ProbedContainer { config, pod_ip, started_at, .. } = *probed;
    let run = &Run { pod: config.pod, spec: config.container, around, pod_ip, started_at };
    let found = match (&probe.exec, &probe.http_get, &probe.tcp_socket, &probe.grpc) {
        (Some(exec), ..) => of_exec(exec, run),
        (_, Some(http), ..) => of_http(http, run),
        (_, _, Some(tcp), _) => vec![(Duration::ZERO, of_tcp(tcp, run))],
        (_, _, _, Some(grpc)) => of_grpc(grpc, probe, run),
        _ => vec![(Duration::ZERO, Answer::Success)],
    };
    found.into_iter().map(|(time, answer)| (after(run.started_at, time), answer)).collect()
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

/// Of another host than the pod nobody knows who is there.
fn listener(host: &str, port: i64, run: &Run<'_>) -> Listener {
    if host.is_empty() || host == run.pod_ip {
        return listeners::listener(run.pod, run.spec, port);
    }
    Listener::Unknown
}

fn of_tcp(tcp: &PortAction, run: &Run<'_>) -> Answer {
    let port = port(&tcp.port, run.spec);
    match listener(&tcp.host, port, run) {
        Listener::Nobody => Answer::Failure(refused(run.pod_ip, port)),
        Listener::Unknown | Listener::Known(_) | Listener::Declared => Answer::Success,
    }
}

fn of_http(http: &HttpGetAction, run: &Run<'_>) -> Vec<(Duration, Answer)> {
    let port = port(&http.port, run.spec);
    let scheme = if http.scheme.is_empty() { "http".to_owned() } else { http.scheme.to_lowercase() };
    let path = format!("/{}", http.path.strip_prefix('/').unwrap_or(&http.path));
    let failed =
        |why: &str| Answer::Failure(format!("Get \"{scheme}://{}:{port}{path}\": {why}", run.pod_ip));
    let at_once = |answer| vec![(Duration::ZERO, answer)];
    match listener(&http.host, port, run) {
        Listener::Unknown => at_once(Answer::Success),
        Listener::Declared => at_once(of_declared(port, &path, run)),
        Listener::Nobody => at_once(failed(&refused(run.pod_ip, port))),
        Listener::Known(server) if scheme == "https" && server.is_plain(port) => {
            at_once(failed("http: server gave HTTP response to HTTPS client"))
        }
        Listener::Known(server) => pages(&server, port, &path, run.pod_ip, MAX_REDIRECTS)
            .unwrap_or_else(|| at_once(failed("stopped after 10 redirects"))),
    }
}

/// What is declared and holds whatever comes before is known ahead; of all else nobody knows.
fn of_declared(port: i64, path: &str, run: &Run<'_>) -> Answer {
    let port = u16::try_from(port).unwrap_or_default();
    let declared = declared::declaration(&run.pod.metadata.annotations, port);
    match declared.map(|declared| declared.read(PodForwarding::Anywhere)) {
        Some(Ok(DeclaredPort::Http(routes))) => {
            routes.always(path).map_or(Answer::Success, |(code, _)| answer(Page::Status(code)))
        }
        Some(Err(wrong)) => Answer::Failure(wrong.0),
        _ => Answer::Success,
    }
}

/// What comes of asking for a page; nothing when one redirect follows another.
fn pages(
    server: &Server,
    port: i64,
    path: &str,
    ip: &str,
    redirects_left: usize,
) -> Option<Vec<(Duration, Answer)>> {
    let Some(pages) = server.get(port, path) else { return Some(vec![(Duration::ZERO, Answer::Success)]) };
    if let [(_, Page::Moved(_, location))] = pages.as_slice()
        && let Some(path) = local_path(location, ip, port)
    {
        return self::pages(server, port, path, ip, redirects_left.checked_sub(1)?);
    }
    Some(pages.into_iter().map(|(time, page)| (time, answer(page))).collect())
}

/// The path of a redirect that stays with the server; others are not followed.
fn local_path<'a>(location: &'a str, ip: &str, port: i64) -> Option<&'a str> {
    let own = format!("http://{ip}:{port}");
    let path = location.strip_prefix(&own).unwrap_or(location);
    (path.starts_with('/') && !path.starts_with("//")).then_some(path)
}

fn answer(page: Page) -> Answer {
    match page {
        Page::Status(200..=299) => Answer::Success,
        Page::Status(300..=399) => Answer::Warning("Probe terminated redirects, Response body: ".into()),
        Page::Status(code) => Answer::Failure(format!("HTTP probe failed with statuscode: {code}")),
        Page::Moved(code, location) => {
            let phrase = http::StatusCode::from_u16(code).ok().and_then(|code| code.canonical_reason());
            let link = format!("<a href=\"{location}\">{}</a>.\n\n", phrase.unwrap_or_default());
            Answer::Warning(format!("Probe terminated redirects, Response body: {link}"))
        }
    }
}

fn of_grpc(grpc: &PortAction, probe: &Probe, run: &Run<'_>) -> Vec<(Duration, Answer)> {
    let (ip, port) = (run.pod_ip, port(&grpc.port, run.spec));
    let server = match listener("", port, run) {
        Listener::Unknown | Listener::Declared => return vec![(Duration::ZERO, Answer::Success)],
        Listener::Nobody => None,
        Listener::Known(server) => server.health(port).cloned(),
    };
    let Some(health) = server else {
        let timeout = Duration::from_secs(u64::try_from(probe.timeout_seconds).unwrap_or(0).max(1));
        let within = duration::format(timeout);
        let why = format!(
            "timeout: failed to connect service \"{ip}:{port}\" within {within}: context deadline exceeded"
        );
        return vec![(Duration::ZERO, Answer::Failure(why))];
    };
    if grpc.service.as_deref().unwrap_or_default() != health.service {
        let why = "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service";
        return vec![(Duration::ZERO, Answer::Failure(why.into()))];
    }
    let mut answers = vec![(Duration::ZERO, Answer::Success)];
    answers.extend(health.fails_after.map(|from| {
        let why = "service unhealthy (responded with \"NOT_SERVING\")";
        (from, Answer::Failure(why.into()))
    }));
    answers
}

/// The command is played whenever files have changed; all its answers share the steps of one script.
fn of_exec(action: &ExecAction, run: &Run<'_>) -> Vec<(Duration, Answer)> {
    let nothing = Surroundings::default();
    let around = run.around.unwrap_or(&nothing);
    let snapshots = run.around.and_then(|around| process::snapshots(&invocation::of(run.spec), around));
    let changes = snapshots.iter().flatten().map(|(time, _)| *time);
    let mut times: Vec<Duration> = vec![Duration::ZERO];
    times.extend(changes.chain(around.views.iter().map(|view| view.after)));
    times.sort();
    times.dedup();
    let mut steps = MAX_STEPS;
    let answer = |time: &Duration| {
        let until = |snapshots: &process::Snapshots| {
            let last = snapshots.iter().rev().find(|(at, _)| at <= time);
            last.map(|(_, written)| written.clone()).unwrap_or_default()
        };
        let answer = exec_answer(&mut steps, action, around, snapshots.as_ref().map(until), *time);
        (*time, answer)
    };
    times.iter().map(answer).collect()
}

fn exec_answer(
    steps: &mut usize,
    action: &ExecAction,
    around: &Surroundings,
    written: Option<Vec<Change>>,
    time: Duration,
) -> Answer {
    // Of a process that is not known nobody knows what files it has.
    if written.is_none() && !program::is_constant(&action.command) {
        return Answer::Success;
    }
    let around = around.from(time);
    match exec::exec_within(steps, &action.command, &around, written.unwrap_or_default(), None) {
        Some(executed) => match executed.end {
            // What the network would answer nobody knows ahead.
            _ if executed.question.is_some() => Answer::Success,
            Some((_, 0)) => Answer::Success,
            _ => Answer::Failure(executed.out + &executed.errors),
        },
        None => Answer::Success,
    }
}
