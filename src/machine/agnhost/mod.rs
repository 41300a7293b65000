//! What the test image of Kubernetes' own suites does (`test/images/agnhost`), as far as it needs no kernel,
//! and what the images before it did that had one program each. Programs that say something and end are
//! here; those that serve are known to [`crate::servers`], and what they say to whom is beside.

pub(crate) mod flags;
pub(crate) mod klog_line;

mod clients;
mod external_metrics;
mod fake_registry;
mod help;
mod in_cluster;
mod issuer_discovery;
mod mount_test;
mod net_server;
mod starting;

pub(crate) mod asking;
pub(crate) mod close_wait;
pub(crate) mod consumer;
pub mod forward_tester;
pub(crate) mod guestbook;
pub(crate) mod modes;
pub(crate) mod mutual_tls;
pub(crate) mod mutual_tls_server;
pub(crate) mod netexec;
pub(crate) mod nettest;
pub(crate) mod no_snat;
pub(crate) mod webhook;

use std::time::Duration;

use self::flags::{TLS_FILE, flag};
use crate::images;
use crate::interpreter::player::{AfterCommand, Player};
use crate::invocation::Invocation;
use crate::stress;

/// Programs that end, or say something.
const PLAYED: &[&str] = &[
    "mounttest",
    "entrypoint-tester",
    "pause",
    "logs-generator",
    "etc-hosts",
    "dns-suffix",
    "dns-server-list",
    "connect",
    "inclusterclient",
    "mtlsclient",
    "net",
    "stress",
    "nonewprivs",
    "test-service-account-issuer-discovery",
    "help",
    "--help",
    "-h",
];
/// Programs that serve and look at files or at names: what they find is made for them.
const PREPARED: &[&str] = &[
    "netexec",
    "guestbook",
    "porter",
    "webhook",
    "crd-conversion-webhook",
    "no-snat-test",
    "no-snat-test-proxy",
    "audit-proxy",
    "external-metrics",
    "fake-gitserver",
    "fake-registry-server",
    "grpc-health-checking",
    "liveness",
    "mtlsserver",
    "nettest",
    "resource-consumer",
    "resource-consumer-controller",
    "serve-hostname",
    "tcp-reset",
    "test-webserver",
];
/// The others that wait for ever.
const OTHERS: &[&str] = &["net", "port-forward-tester", "mtlsclient", "stress"];
/// A program of agnhost that has an image of its own, too.
const CONSUMER: &str = "resource-consumer";
const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";
const PROCESS_STATUS: &str = "/proc/1/status";
/// `logs-generator` waits at least so long between two lines.
const MIN_PAUSE: Duration = Duration::from_nanos(1);

/// The command line of a container of such an image: the program that is played, with its arguments.
pub(crate) fn command_line(image: &str, command: &[String], arguments: &[String]) -> Option<Vec<String>> {
    let name = images::base_name(image);
    let mut line: Vec<String> = match (name, command) {
        ("agnhost", []) => vec!["/agnhost".into()],
        ("agnhost", command) if is_binary(&command[0]) => command.to_vec(),
        (CONSUMER, []) => vec!["/consumer".into(), CONSUMER.into()],
        ("stress", []) if images::repository(image) == "docker.io/vish/stress" => {
            vec!["/stress".into(), "stress".into()]
        }
        (name, []) if is_picture(name) => vec!["/agnhost".into(), "test-webserver".into()],
        ("mounttest" | "entrypoint-tester" | "logs-generator", []) => vec![format!("/{name}"), name.into()],
        ("nonewprivs", []) => return Some(vec!["nonewprivs".into()]),
        _ => return None,
    };
    line.extend(arguments.iter().cloned());
    if line.len() == 1 {
        line.push("pause".into());
    }
    let mode = line[1].as_str();
    (PLAYED.contains(&mode) || PREPARED.contains(&mode)).then_some(line)
}

/// Whether a program looks at what volumes and Services say.
pub(crate) fn looks_around(line: &[String]) -> bool {
    let mode = line.get(1).map_or("", String::as_str);
    let has_own = matches!(
        mode,
        "mounttest"
            | "inclusterclient"
            | "test-service-account-issuer-discovery"
            | "nettest"
            | "mtlsserver"
            | "mtlsclient"
            | "resource-consumer-controller"
            | "test-webserver"
            | "webhook"
            | "crd-conversion-webhook"
            | "porter"
    );
    has_own || flag(line, TLS_FILE).is_some()
}

/// The subcommand of a container of that image that serves something.
pub(crate) fn serves<'a>(invocation: &Invocation<'a>) -> Option<&'a str> {
    let name = images::base_name(invocation.image);
    if is_picture(name) && invocation.words().next().is_none() {
        return Some("test-webserver");
    }
    if name == CONSUMER && invocation.command.is_empty() {
        return Some(CONSUMER);
    }
    if name != "agnhost" {
        return None;
    }
    let mut words = invocation.words();
    words.find(|word| !is_binary(word) && !word.starts_with('-')).map(String::as_str)
}

/// Whether a container uses what its server is told to, and no more.
pub fn is_consumer(invocation: &Invocation<'_>) -> bool {
    let name = images::base_name(invocation.image);
    (name == "agnhost" || name == CONSUMER) && serves(invocation) == Some(CONSUMER)
}

/// Images that serve a picture, made from agnhost's.
pub(crate) fn is_picture(name: &str) -> bool {
    matches!(name, "kitten" | "nautilus")
}

/// The subcommand of a container of that image, which pauses when it is told none.
pub(crate) fn mode<'a>(invocation: &Invocation<'a>) -> Option<&'a str> {
    let is_ours = images::base_name(invocation.image) == "agnhost";
    let says_nothing = invocation.words().all(|word| is_binary(word));
    serves(invocation).or((is_ours && says_nothing).then_some("pause"))
}

/// Whether it is one that goes on until it is stopped.
pub(crate) fn is_mode(mode: &str) -> bool {
    mode == "pause" || PREPARED.contains(&mode) || OTHERS.contains(&mode)
}

pub(crate) fn is_binary(word: &str) -> bool {
    matches!(word, "/agnhost" | "agnhost" | "/agnhost-2")
}

/// Runs a command line.
pub(crate) fn run(player: &mut Player<'_>, line: &[String]) -> AfterCommand {
    let arguments = line.get(2..).unwrap_or_default();
    match line.get(1).map(String::as_str) {
        Some("mounttest") => mount_test::run(player, arguments),
        Some("entrypoint-tester") => {
            player.say(&format!("[{}]\n", line.join(" ")));
            AfterCommand::Go
        }
        Some("logs-generator") => generate_logs(player, arguments),
        Some("connect") => {
            clients::connect(player, arguments).err().unwrap_or(AfterCommand::Exit(player.status))
        }
        Some("mtlsclient") => mutual_tls::client(player, arguments).err().unwrap_or(AfterCommand::Exit(0)),
        Some("net") => close_wait::run(player, arguments),
        Some("stress") => stress::run(player, arguments),
        Some("inclusterclient") => clients::poll(player, arguments).err().unwrap_or(AfterCommand::Go),
        Some("test-service-account-issuer-discovery") => issuer_discovery::run(player, arguments),
        Some("nonewprivs") => tell_effective_user(player, player.around.user),
        Some("help" | "--help" | "-h") => help::tell(player),
        Some("nettest") => nettest::NetTest::of(arguments).run(player),
        Some(mode) if PREPARED.contains(&mode) => starting::begin(player, mode, arguments),
        Some("etc-hosts") => show_line(player, HOSTS, |text| text),
        Some("dns-suffix") => show_line(player, RESOLVER, |text| resolver_words(&text, "search")),
        Some("dns-server-list") => show_line(player, RESOLVER, |text| resolver_words(&text, "nameserver")),
        Some(_) => {
            player.say("Paused\nSignals registered\n");
            player.sleep(Duration::MAX)
        }
        None => {
            let user = user_of_setuid_program(player);
            tell_effective_user(player, user)
        }
    }
}

/// As whom the program of the image `nonewprivs` runs, which is root's and has its setuid bit: as root, where
/// who is in its container may gain anything (not with `allowPrivilegeEscalation: false`).
fn user_of_setuid_program(player: &mut Player<'_>) -> i64 {
    let status = player.file(PROCESS_STATUS);
    let gains_none = status.is_some_and(|status| status.text().lines().any(|line| line == "NoNewPrivs:\t1"));
    if gains_none { player.around.user } else { 0 }
}

fn tell_effective_user(player: &mut Player<'_>, user: i64) -> AfterCommand {
    player.say(&format!("Effective uid: {user}\n"));
    AfterCommand::Go
}

/// What is made of a file, as a line.
fn show_line(player: &mut Player<'_>, path: &str, made: impl FnOnce(String) -> String) -> AfterCommand {
    let text = player.file(path).map(|file| file.text()).unwrap_or_default();
    player.say(&format!("{}\n", made(text)));
    AfterCommand::Go
}

/// The words behind `keyword` in a `resolv.conf`.
fn resolver_words(text: &str, keyword: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix(keyword));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(",")
}

/// So many lines in so much time, each a request as an apiserver would log it.
fn generate_logs(player: &mut Player<'_>, arguments: &[String]) -> AfterCommand {
    let given = |long: &str, short: &str| {
        let at = arguments.iter().position(|word| word == short);
        flag(arguments, long).or_else(|| arguments.get(at? + 1).map(String::as_str))
    };
    let total: i64 = given("log-lines-total", "-t").and_then(|count| count.parse().ok()).unwrap_or(0);
    let Some(count) = u32::try_from(total).ok().filter(|count| *count > 0) else {
        let why = format!("Invalid total number of lines: {total}");
        return klog_line::klog_fatal(player, "logs_generator.go:64", why);
    };
    let duration = given("run-duration", "-d").and_then(golang::duration::parse).unwrap_or_default();
    if duration.is_zero() {
        return klog_line::klog_fatal(player, "logs_generator.go:68", "Invalid duration: 0s");
    }
    for number in 0..count {
        let method = ["GET", "POST", "PUT"][number as usize % 3];
        let namespace = ["kube-system", "default", "ns"][number as usize / 3 % 3];
        let status = 200 + u64::from(number) * 37 % 400;
        let request = format!("{method} /api/v1/namespaces/{namespace}/pods/p{number} {status}");
        klog_line::say_at(player, ('I', "logs_generator.go:76"), format!("{number} {request}"));
        match player.pause((duration / count).max(MIN_PAUSE)) {
            AfterCommand::Go => {}
            flow => return flow,
        }
    }
    AfterCommand::Exit(0)
}

#[cfg(test)]
mod tests;
