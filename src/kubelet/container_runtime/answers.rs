//! What is known ahead of the answers to a probe (`pkg/probe/exec`, `http`, `tcp`, `grpc`). What is not, the
//! kubelet asks the network.

use std::net::IpAddr;
use std::time::Duration;

use super::declared::forward::PodForwarding;
use super::declared::{self, DeclaredPort};
use super::invocation;
use super::listeners::{self, Listener};
use super::services::{ProbeAnswer as Answer, ProbeForecast, ProbedContainer};
use apimachinery::duration;
use apimachinery::int_or_string::IntOrString;
use apimachinery::time::Time;
use apis::views::pod::{Container, Pod};
use apis::views::probe::{ExecAction, HttpGetAction, PortAction, Probe};
use clock::after;
use golang::first_bytes::first_bytes;
use machine::bounds::{MAX_STEPS, not_executed};
use machine::byte_text;
use machine::exec::Executed;
use machine::file_system::FileChange;
use machine::servers::{ContainerServer, Page};
use machine::surroundings::Surroundings;
use machine::{exec, process, program};

/// So many redirects are followed (`net/http`); the next one fails the probe.
pub(crate) const MAX_REDIRECTS: usize = 10;
/// So much of what a command says is told (`maxReadLength`).
const MAX_SAID_BYTES: usize = 10 << 10;

/// A run of a container, as far as it is known.
struct KnownRun<'a> {
    pod: &'a Pod,
    spec: &'a Container,
    around: Option<&'a Surroundings>,
    pod_ip: &'a str,
    heard: &'a ListenersHeard<'a>,
}

/// What a runtime knows of who listens beside what a pod says.
pub(crate) struct ListenersHeard<'a> {
    /// Whether the user gave who answers at a port.
    pub(crate) is_given: &'a dyn Fn(u16) -> bool,
    /// Whether somebody told the server to answer otherwise.
    pub(crate) is_told: bool,
}

/// What a probe answers, by how long after the start; nothing in it when somebody is to ask.
enum Ahead {
    Played(Vec<(Duration, Answer)>),
    Served(Vec<(Duration, Answer)>),
    Assumed,
    Asked,
}

/// What is known ahead of what a probe answers.
pub(crate) fn forecast(
    probe: &Probe,
    probed: &ProbedContainer<'_>,
    around: Option<&Surroundings>,
    heard: &ListenersHeard<'_>,
) -> ProbeForecast {
    let ProbedContainer { config, pod_ip, started_at, .. } = *probed;
    let run = &KnownRun { pod: config.pod, spec: config.container, around, pod_ip, heard };
    let ahead = match (&probe.exec, &probe.http_get, &probe.tcp_socket, &probe.grpc) {
        (Some(exec), ..) => of_exec(exec, timeout(probe), run).map_or(Ahead::Asked, Ahead::Played),
        (_, Some(http), ..) => of_http(http, run),
        (_, _, Some(tcp), _) => of_tcp(tcp, run),
        (_, _, _, Some(grpc)) => of_grpc(grpc, probe, run),
        _ => Ahead::Played(vec![(Duration::ZERO, Answer::Success)]),
    };
    let timed = |answers: Vec<(Duration, Answer)>| -> Vec<(Time, Answer)> {
        answers.into_iter().map(|(time, answer)| (after(started_at, time), answer)).collect()
    };
    match ahead {
        Ahead::Played(answers) => ProbeForecast::Played(timed(answers)),
        Ahead::Served(answers) => ProbeForecast::Served(timed(answers)),
        Ahead::Assumed => ProbeForecast::Assumed,
        Ahead::Asked => ProbeForecast::Asked,
    }
}

/// How long an answer may take.
pub(crate) fn timeout(probe: &Probe) -> Duration {
    Duration::from_secs(u64::try_from(probe.timeout_seconds).unwrap_or(0).max(1))
}

pub(crate) fn refused(ip: &str, port: i64) -> String {
    format!("dial tcp {ip}:{port}: connect: connection refused")
}

/// A port of a container by its number or its name; 0 for one that it does not have.
pub(crate) fn port(port: &Option<IntOrString>, spec: &Container) -> i64 {
    let named = |name: &String| spec.ports.iter().find(|port| port.name == *name);
    match port {
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => match name.parse() {
            Ok(number) => number,
            Err(_) => named(name).map_or(0, |port| port.container_port.into()),
        },
        None => 0,
    }
}

/// The host of a URL, as HTTP wants it.
pub(crate) fn in_url(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl KnownRun<'_> {
    /// Who listens at the host and the port of a probe.
    ///
    /// # Errors
    /// What else is known of who is there.
    fn listener(&self, host: &str, port: i64) -> Result<Listener, Ahead> {
        if !self.is_own(host) {
            // Names of hosts outside are not resolved: nobody knows whether anybody is there.
            let is_address = host.parse::<IpAddr>().is_ok();
            let unknown = || Ahead::Played(vec![(Duration::ZERO, Answer::Success)]);
            return Err(if is_address { Ahead::Asked } else { unknown() });
        }
        if u16::try_from(port).is_ok_and(self.heard.is_given) {
            return Err(Ahead::Asked);
        }
        match listeners::listener(self.pod, self.spec, port) {
            Listener::Assumed => Err(Ahead::Assumed),
            Listener::Beside => Err(Ahead::Asked),
            listener => Ok(listener),
        }
    }

    /// Whether somebody wrote files beside its process.
    fn has_foreign_files(&self) -> bool {
        self.around.is_some_and(|around| !around.foreign.is_empty())
    }

    /// Loopback is the node's own, which pods of its network share.
    fn is_own(&self, host: &str) -> bool {
        let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        host.is_empty() || host == self.pod_ip || self.pod.spec.host_network && is_loopback
    }
}

fn at_once(answer: Answer) -> Ahead {
    Ahead::Served(vec![(Duration::ZERO, answer)])
}

fn of_tcp(tcp: &PortAction, run: &KnownRun<'_>) -> Ahead {
    let port = port(&tcp.port, run.spec);
    match run.listener(&tcp.host, port) {
        Err(ahead) => ahead,
        Ok(Listener::Nobody) => at_once(Answer::Failure(refused(run.pod_ip, port))),
        Ok(_) => at_once(Answer::Success),
    }
}

fn of_http(http: &HttpGetAction, run: &KnownRun<'_>) -> Ahead {
    let port = port(&http.port, run.spec);
    let scheme = if http.scheme.is_empty() { "http".to_owned() } else { http.scheme.to_lowercase() };
    let path = format!("/{}", http.path.strip_prefix('/').unwrap_or(&http.path));
    let host = in_url(run.pod_ip);
    let failed = |why: &str| Answer::Failure(format!("Get \"{scheme}://{host}:{port}{path}\": {why}"));
    match run.listener(&http.host, port) {
        Err(ahead) => ahead,
        Ok(Listener::Declared) => of_declared(port, &path, &scheme, run),
        Ok(Listener::Known(server)) if scheme == "https" && server.is_plain(port) => {
            at_once(failed("http: server gave HTTP response to HTTPS client"))
        }
        Ok(Listener::Known(server)) if server.serves_files() && run.has_foreign_files() => Ahead::Asked,
        // Whether its certificate is there, and what headers change, only the server knows.
        Ok(Listener::Known(server)) if !server.is_plain(port) || !http.http_headers.is_empty() => {
            Ahead::Asked
        }
        Ok(Listener::Known(server)) => pages(&server, port, &path, run.pod_ip, MAX_REDIRECTS)
            .unwrap_or_else(|| at_once(failed("stopped after 10 redirects"))),
        Ok(_) => at_once(failed(&refused(run.pod_ip, port))),
    }
}

/// What is declared and holds whatever comes before is known ahead; all else is asked.
fn of_declared(port: i64, path: &str, scheme: &str, run: &KnownRun<'_>) -> Ahead {
    let port = u16::try_from(port).unwrap_or_default();
    let declared = declared::declaration(&run.pod.metadata.annotations, port);
    match declared.map(|declared| declared.read(PodForwarding::Anywhere)) {
        Some(Ok(DeclaredPort::Http(routes))) if scheme == "http" => {
            let always = routes.always(path);
            always.map_or(Ahead::Asked, |(code, _)| at_once(answer(Page::Status(code))))
        }
        Some(Err(wrong)) => at_once(Answer::Failure(wrong.0)),
        _ => Ahead::Asked,
    }
}

/// What comes of asking for a page; nothing when one redirect follows another.
fn pages(server: &ContainerServer, port: i64, path: &str, ip: &str, redirects_left: usize) -> Option<Ahead> {
    let Some(pages) = server.get(port, path) else { return Some(Ahead::Asked) };
    if let [(_, Page::Moved(_, location))] = pages.as_slice()
        && let Some(path) = local_path(location, ip, port)
    {
        return self::pages(server, port, path, ip, redirects_left.checked_sub(1)?);
    }
    if pages.iter().any(|(_, page)| matches!(page, Page::Status(300..=399))) {
        return Some(Ahead::Asked);
    }
    Some(Ahead::Served(pages.into_iter().map(|(time, page)| (time, answer(page))).collect()))
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
        Page::Status(300..=399) => Answer::Warning(redirected("")),
        Page::Status(code) => Answer::Failure(format!("HTTP probe failed with statuscode: {code}")),
        Page::Moved(code, location) => {
            let phrase = http::StatusCode::from_u16(code).ok().and_then(|code| code.canonical_reason());
            let link = format!("<a href=\"{location}\">{}</a>.\n\n", phrase.unwrap_or_default());
            Answer::Warning(redirected(&link))
        }
    }
}

/// A redirect that was not followed.
pub(crate) fn redirected(body: &str) -> String {
    format!("Probe terminated redirects, Response body: {body}")
}

fn of_grpc(grpc: &PortAction, probe: &Probe, run: &KnownRun<'_>) -> Ahead {
    let (ip, port) = (in_url(run.pod_ip), port(&grpc.port, run.spec));
    let server = match run.listener("", port) {
        Err(ahead) => return ahead,
        Ok(Listener::Declared) => return Ahead::Asked,
        Ok(Listener::Known(server)) => server.health(port).cloned(),
        Ok(_) => None,
    };
    let Some(health) = server else {
        return at_once(Answer::Failure(no_grpc(&format!("{ip}:{port}"), timeout(probe))));
    };
    if grpc.service.as_deref().unwrap_or_default() != health.service {
        return at_once(Answer::Failure(grpc_failed(UNKNOWN_SERVICE, "unknown service")));
    }
    if run.heard.is_told {
        return Ahead::Asked;
    }
    let mut answers = vec![(Duration::ZERO, Answer::Success)];
    answers.extend(health.fails_after.map(|from| (from, Answer::Failure(unhealthy("NOT_SERVING")))));
    Ahead::Served(answers)
}

/// A server that is not well, by its own word.
pub(crate) fn unhealthy(status: &str) -> String {
    format!("service unhealthy (responded with {status:?})")
}

/// Nobody speaks gRPC there.
pub(crate) fn no_grpc(address: &str, within: Duration) -> String {
    let within = duration::format(within);
    format!("timeout: failed to connect service \"{address}\" within {within}: context deadline exceeded")
}

/// `NotFound`
const UNKNOWN_SERVICE: &str = "NotFound";

/// A call that ended with a code that is not looked at.
pub(crate) fn grpc_failed(code: &str, message: &str) -> String {
    format!("error: health rpc probe failed: rpc error: code = {code} desc = {message}")
}

/// A command that took too long (`ErrCommandTimedOut`).
pub(crate) fn timed_out(command: &[String], within: Duration) -> String {
    let (line, within) = (command.join(" "), duration::format(within));
    format!("command timed out: {line:?} timed out after {within}")
}

/// The command is played whenever files have changed; all its answers share the steps of one script. Nothing
/// when it is to be run: it asks the network, or others have written into the container, or what that writes
/// depends on what it is answered, or nobody has looked yet what it finds.
fn of_exec(action: &ExecAction, within: Duration, run: &KnownRun<'_>) -> Option<Vec<(Duration, Answer)>> {
    if let Some(executed) = declared::executed(&run.pod.metadata.annotations, &action.command) {
        return Some(vec![(Duration::ZERO, judge_command(executed, &action.command, within))]);
    }
    let nothing = Surroundings { image: run.spec.image.clone(), ..Surroundings::default() };
    let found = run.around.unwrap_or(&nothing);
    let told = program::looks_at_listeners(&action.command)
        .then(|| Surroundings { listens: listeners::open_ports(run.pod), ..found.clone() });
    let around = told.as_ref().unwrap_or(found);
    let invocation = invocation::of(run.spec);
    let is_changed = !around.foreign.is_empty() || !around.answers.is_empty();
    let snapshots =
        run.around.filter(|_| !is_changed).and_then(|around| process::snapshots(&invocation, around));
    let is_played = snapshots.is_some() || is_changed && program::is_known(&invocation);
    if !is_played && !program::is_constant(&action.command) {
        // What stands in a volume nobody has seen.
        let is_seen = run.around.is_some() || run.spec.volume_mounts.is_empty();
        if is_seen && exec::is_absent(&action.command, around, &[]) {
            return Some(vec![(Duration::ZERO, absent(&action.command))]);
        }
        if is_own(action, around, run) {
            return Some(vec![(Duration::ZERO, Answer::Success)]);
        }
        run.around?;
    }
    if is_changed {
        let is_run = exec::is_absent(&action.command, around, &[])
            || exec::exec_told(&action.command, around, vec![], None).is_some();
        return (!is_run).then(|| vec![(Duration::ZERO, Answer::Success)]);
    }
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
        let written = snapshots.as_ref().map(until).unwrap_or_default();
        Some((*time, exec_answer(&mut steps, action, within, (&around.from(*time), written))?))
    };
    times.iter().map(answer).collect()
}

/// Whether a command is taken to be one of the image's own, which passes: one that nobody knows, one that
/// looks at the image's processes, and one that asks the network where it is not known what listens.
fn is_own(action: &ExecAction, around: &Surroundings, run: &KnownRun<'_>) -> bool {
    if program::looks_at_processes(&action.command) {
        return true;
    }
    let executed = exec::exec(&action.command, around, vec![], None);
    executed.is_none_or(|executed| executed.question.is_some() && listeners::served(run.spec).is_none())
}

fn exec_answer(
    steps: &mut usize,
    action: &ExecAction,
    within: Duration,
    (around, written): (&Surroundings, Vec<FileChange>),
) -> Option<Answer> {
    if exec::is_absent(&action.command, around, &written) {
        return Some(absent(&action.command));
    }
    let Some(executed) = exec::exec_within(steps, &action.command, around, written, None) else {
        return Some(Answer::Success);
    };
    executed.question.is_none().then(|| judge_command(executed, &action.command, within))
}

/// What a command answers that was run: what it said counts only where it failed.
pub(crate) fn judge_command(executed: Executed, command: &[String], within: Duration) -> Answer {
    match executed.end {
        Some((took, _)) if took > within => Answer::Failure(timed_out(command, within)),
        Some((_, 0)) => Answer::Success,
        Some(_) => {
            let said = executed.out + &executed.errors;
            Answer::Failure(first_bytes(&byte_text::shown(&said), MAX_SAID_BYTES).to_owned())
        }
        None => Answer::Failure(timed_out(command, within)),
    }
}

/// A command of which the runtime starts nothing.
fn absent(command: &[String]) -> Answer {
    Answer::Errored(exec_failed(&not_executed(command.first().map_or("", String::as_str))))
}

/// What the runtime's service says of a command that it does not start.
pub(crate) fn exec_failed(why: &str) -> String {
    format!("rpc error: code = Unknown desc = failed to exec in container: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_judged_by_its_time_and_then_by_its_code() {
        let command = ["check".to_owned(), "it".to_owned()];
        let judge = |end: Option<(u64, i32)>, out: &str| {
            let end = end.map(|(seconds, code)| (Duration::from_secs(seconds), code));
            let executed = Executed { end, out: out.into(), errors: "!".into(), ..Executed::default() };
            judge_command(executed, &command, Duration::from_secs(2))
        };
        let late = Answer::Failure("command timed out: \"check it\" timed out after 2s".into());
        assert_eq!(judge(Some((1, 0)), "well"), Answer::Success);
        assert_eq!(judge(Some((3, 0)), "well"), late);
        assert_eq!(judge(None, "on"), late);
        assert_eq!(judge(Some((1, 1)), "ill"), Answer::Failure("ill!".into()));
        let Answer::Failure(said) = judge(Some((1, 1)), &"long".repeat(MAX_SAID_BYTES)) else { panic!() };
        assert_eq!(said.len(), MAX_SAID_BYTES);
    }
}
