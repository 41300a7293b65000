//! Servers by their images: where they listen, by their arguments, their variables and their files.
//!
//! Known are the images that a project publishes itself, started as they come, and the modes of the test
//! image agnhost. What has a command or a configuration of its own, or comes from another registry, may
//! serve anything. A script that is played serves nothing.

use crate::interpreter::expansion;
use crate::invocation::Invocation;
use crate::programs::names;
use crate::servers::{ContainerServer, Site};
use crate::speakers::Speaker;
use crate::surroundings::Surroundings;
use crate::text_servers::{TEXT_SERVERS, TextProtocol};
use crate::web_servers::{self, WebPages};
use crate::{agnhost, configured_web, images, program, script_listeners, servers};

/// Servers that say the same whatever the path: their repositories, and where they listen.
const SPEAKERS: &[(&str, i64, SpeakerKind)] = &[
    ("docker.io/hashicorp/http-echo", 5678, SpeakerKind::HttpEcho),
    ("docker.io/traefik/whoami", 80, SpeakerKind::WhoAmI),
    ("docker.io/containous/whoami", 80, SpeakerKind::WhoAmI),
    ("gcr.io/google-samples/hello-app", 8080, SpeakerKind::HelloApp),
    ("us-docker.pkg.dev/google-samples/containers/gke/hello-app", 8080, SpeakerKind::HelloApp),
    ("docker.io/ealen/echo-server", 80, SpeakerKind::EalenEcho),
    ("docker.io/library/caddy", 80, SpeakerKind::Caddy),
    ("k8s.gcr.io/echoserver", 8080, SpeakerKind::EchoServer),
    ("registry.k8s.io/echoserver", 8080, SpeakerKind::EchoServer),
    ("gcr.io/google_containers/echoserver", 8080, SpeakerKind::EchoServer),
];
/// The aggregated server of the end-to-end tests.
const SAMPLE_APISERVER: &str = "e2e-test-images/sample-apiserver";
/// Variables by which servers listen elsewhere, with the end of the repositories that heed them.
const PORT_VARIABLES: &[(&str, &str)] = &[
    ("PGPORT", "postgres"),
    ("MYSQL_TCP_PORT", "mysql"),
    ("MYSQL_TCP_PORT", "mariadb"),
    ("REDIS_PORT_NUMBER", "bitnami/redis"),
    ("VALKEY_PORT_NUMBER", "bitnami/valkey"),
    ("MEMCACHED_PORT_NUMBER", "bitnami/memcached"),
    ("POSTGRESQL_PORT_NUMBER", "bitnami/postgresql"),
    ("MYSQL_PORT_NUMBER", "bitnami/mysql"),
    ("MARIADB_PORT_NUMBER", "bitnami/mariadb"),
    ("WHOAMI_PORT_NUMBER", "/whoami"),
    ("PORT", "/hello-app"),
    ("PORT", "/echo-server"),
];
/// And by which they have a password.
const PASSWORD_VARIABLES: &[(&str, &str)] =
    &[("REDIS_PASSWORD", "bitnami/redis"), ("VALKEY_PASSWORD", "bitnami/valkey")];
/// Of whoever is named by one.
const NAME_VARIABLE: &str = "WHOAMI_NAME";
/// What http-echo says, unless its flag says it.
const TEXT_VARIABLE: &str = "ECHO_TEXT";

#[derive(Clone, Copy, Debug, PartialEq)]
enum SpeakerKind {
    HttpEcho,
    WhoAmI,
    HelloApp,
    EalenEcho,
    EchoServer,
    Caddy,
}

/// What is known of who is started.
struct StartedImage<'a> {
    repository: String,
    tag: &'a str,
    words: Vec<String>,
    variables: &'a [(&'a str, &'a str)],
}

impl StartedImage<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }

    fn of(&self, table: &[(&'static str, &str)]) -> Option<&str> {
        let own = table.iter().filter(|(_, end)| self.repository.ends_with(end));
        own.filter_map(|(name, _)| self.variable(name)).next()
    }

    /// `-name`, `--name=true`
    fn has(&self, name: &str) -> bool {
        let is_it = |word: &String| {
            let flag = word.trim_start_matches('-');
            word.starts_with('-') && (flag == name || flag.strip_prefix(name) == Some("=true"))
        };
        self.words.iter().any(is_it)
    }

    /// `-name=value`, `--name value`
    fn flag(&self, name: &str) -> Option<&str> {
        let is_it = |word: &str| word.trim_start_matches('-') == name && word.starts_with('-');
        let at = self.words.iter().position(|word| is_it(word.split('=').next().unwrap_or(word)))?;
        match self.words[at].split_once('=') {
            Some((_, value)) => Some(value),
            None => self.words.get(at + 1).map(String::as_str),
        }
    }
}

/// What a container with volumes at `mounts` and such variables serves; nothing when that is not known.
pub fn server(
    invocation: &Invocation<'_>,
    mounts: &[&str],
    variables: &[(&str, &str)],
) -> Option<ContainerServer> {
    if let Some(mode) = agnhost::serves(invocation) {
        let words: Vec<String> = invocation.words().cloned().collect();
        if let Some(server) = servers::of_agnhost(mode, &words, mounts, variables) {
            return Some(server);
        }
    }
    if configured_web::is_configured(invocation, mounts) {
        return Some(ContainerServer::to_be_read());
    }
    if program::is_known(invocation) {
        return Some(ContainerServer::of_script(script_listeners::may_listen(invocation)));
    }
    if is_configured(invocation, mounts, variables) {
        return Some(ContainerServer::to_be_read());
    }
    read(invocation, mounts, variables, None)
}

/// What a container serves whose files, variables or arguments say that, among what it found when it
/// started; nothing where nobody knows that.
pub fn configured(invocation: &Invocation<'_>, around: &Surroundings) -> Option<ContainerServer> {
    let mounts: Vec<&str> = around.mounts.iter().map(|mount| mount.path.as_str()).collect();
    if let Some(read) = configured_web::read(invocation, around) {
        // One that does not start listens nowhere.
        return Some(read.map_or_else(
            |_| ContainerServer::default(),
            |configured| ContainerServer::of_rules(&configured.rules),
        ));
    }
    let variables = around.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    read(invocation, &mounts, &variables.collect::<Vec<_>>(), Some(around))
}

/// What it says of itself when it has begun.
pub(crate) fn first_lines(invocation: &Invocation<'_>, around: Option<&Surroundings>) -> Vec<String> {
    let server = match around {
        Some(around) => configured(invocation, around),
        None => read(invocation, &[], &[], None),
    };
    server.map(|server| server.first_lines()).unwrap_or_default()
}

/// Whether only files or variables of its run tell what it serves.
fn is_configured(invocation: &Invocation<'_>, mounts: &[&str], variables: &[(&str, &str)]) -> bool {
    let repository = images::repository(invocation.image);
    let is_speaker = SPEAKERS.iter().any(|(name, ..)| *name == repository);
    let is_text = TEXT_SERVERS.iter().any(|(name, ..)| *name == repository);
    if !is_speaker && !is_text {
        return web_servers::is_configured_by_files(invocation, mounts);
    }
    let heeds = |name: &str| {
        let is_own = |(own, end): &(&str, &str)| *own == name && repository.ends_with(end);
        PORT_VARIABLES.iter().chain(PASSWORD_VARIABLES).any(is_own)
            || matches!(name, NAME_VARIABLE | TEXT_VARIABLE)
    };
    let is_open = |(name, value): &(&str, &str)| heeds(name) && (value.is_empty() || value.contains("$("));
    let is_file = |word: &String| is_text && word.ends_with(".conf");
    invocation.words().any(|word| word.contains("$(") || is_file(word)) || variables.iter().any(is_open)
}

/// What a container of a known image serves, among what it found where that counts; nothing where its command
/// is another one.
fn read(
    invocation: &Invocation<'_>,
    mounts: &[&str],
    variables: &[(&str, &str)],
    around: Option<&Surroundings>,
) -> Option<ContainerServer> {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let words = invocation.words().map(|word| expansion::expand(word, lookup)).collect();
    let repository = images::repository(invocation.image);
    let started = StartedImage { repository, tag: images::tag(invocation.image), words, variables };
    if let Some((_, port, kind)) = SPEAKERS.iter().find(|(name, ..)| *name == started.repository) {
        return speaking(*kind, *port, &started);
    }
    if let Some((_, port, protocol)) = TEXT_SERVERS.iter().find(|(name, ..)| *name == started.repository) {
        let is_own = invocation.command.first().is_none_or(|word| is_text_program(names::base_name(word)));
        return is_own.then(|| text(*protocol, *port, &started, around)).flatten();
    }
    if started.repository.ends_with(SAMPLE_APISERVER) {
        return sample_apiserver(&started);
    }
    if web_servers::is_configured_by_files(invocation, mounts) {
        return Some(ContainerServer::of_nginx(web_servers::nginx(invocation, around)?));
    }
    WebPages::of(invocation, mounts).map(|pages| ContainerServer::http(pages.web.port, Site::Pages(pages)))
}

/// With a command of its own it is something else; without a certificate it makes one.
fn sample_apiserver(started: &StartedImage<'_>) -> Option<ContainerServer> {
    let is_own = |word: &String| word.starts_with('-') || names::base_name(word) == "kube-sample-apiserver";
    if !started.words.first().is_none_or(is_own) {
        return None;
    }
    let port = started.flag("secure-port").map_or(Some(443), |port| port.parse().ok())?;
    Some(ContainerServer::http(port, Site::Wardle).with_tls(&started.words))
}

fn is_text_program(name: &str) -> bool {
    const PROGRAMS: &[&str] = &[
        "redis-server",
        "valkey-server",
        "memcached",
        "postgres",
        "mysqld",
        "mariadbd",
        "docker-entrypoint.sh",
    ];
    PROGRAMS.contains(&name)
}

/// Its password and its port may stand in a file; flags go before that.
fn text(
    protocol: TextProtocol,
    usual: i64,
    started: &StartedImage<'_>,
    around: Option<&Surroundings>,
) -> Option<ContainerServer> {
    // A socket is no port, nor is one of TLS.
    if started.words.iter().any(|word| word == "-s" || word.starts_with("--tls")) {
        return None;
    }
    let file = started.words.iter().find(|word| word.ends_with(".conf"));
    let file = file.and_then(|path| Some(around?.newest_file(path)?.text())).unwrap_or_default();
    let in_file = |name: &str| {
        let mut lines = file.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().trim_matches('"'))
    };
    let is_redis = protocol == TextProtocol::Redis;
    let flag = if is_redis { started.flag("port") } else { started.flag("p").or(started.flag("port")) };
    let stated = flag.or_else(|| started.of(PORT_VARIABLES)).or_else(|| in_file("port").filter(|_| is_redis));
    let port = stated.map_or(Some(usual), |port| port.parse().ok())?;
    let password = started.flag("requirepass").or_else(|| in_file("requirepass"));
    let password =
        password.or_else(|| started.of(PASSWORD_VARIABLES)).filter(|password| !password.is_empty());
    Some(ContainerServer::of_text(port, protocol, password.filter(|_| is_redis).map(str::to_owned)))
}

/// Nothing where it has a command of its own.
fn speaking(kind: SpeakerKind, usual: i64, started: &StartedImage<'_>) -> Option<ContainerServer> {
    let first = started.words.first().map_or("", |word| names::base_name(word));
    let is_flag = first.is_empty() || first.starts_with('-');
    let program = match kind {
        SpeakerKind::HttpEcho => "http-echo",
        SpeakerKind::WhoAmI => "whoami",
        SpeakerKind::HelloApp => "hello-app",
        SpeakerKind::EalenEcho => "node",
        SpeakerKind::EchoServer => "run.sh",
        SpeakerKind::Caddy => {
            return is_caddy(started).then(|| ContainerServer::http(usual, Site::Speaker(Speaker::Caddy)));
        }
    };
    if !is_flag && first != program {
        return None;
    }
    let port = |flag: Option<&str>| {
        let stated = flag.or_else(|| started.of(PORT_VARIABLES));
        stated.map_or(Some(usual), |port| port.rsplit(':').next()?.parse().ok())
    };
    let tag = started.tag.to_owned();
    let (port, speaker) = match kind {
        SpeakerKind::HttpEcho => {
            // Without a text it ends at once.
            let text = started.flag("text").or_else(|| started.variable(TEXT_VARIABLE))?;
            let code = started.flag("status-code").map_or(Some(200), |code| code.parse().ok())?;
            (port(started.flag("listen"))?, Speaker::HttpEcho(text.to_owned(), code))
        }
        SpeakerKind::WhoAmI => {
            let name = started.flag("name").or_else(|| started.variable(NAME_VARIABLE));
            let name = name.unwrap_or_default().to_owned();
            let is_verbose = started.has("verbose");
            (port(started.flag("port"))?, Speaker::WhoAmI { name, is_verbose })
        }
        SpeakerKind::HelloApp => (port(None)?, Speaker::HelloApp(tag)),
        SpeakerKind::EalenEcho => (port(started.flag("port"))?, Speaker::EalenEcho),
        SpeakerKind::EchoServer => (port(None)?, Speaker::EchoServer(tag)),
        SpeakerKind::Caddy => return None,
    };
    let server = ContainerServer::http(port, Site::Speaker(speaker));
    let files = (started.flag("cert"), started.flag("key"));
    Some(match files {
        (Some(certificate), Some(key)) if kind == SpeakerKind::WhoAmI => server.shows(certificate, key),
        _ => server,
    })
}

/// StartedImage as its image starts it.
fn is_caddy(started: &StartedImage<'_>) -> bool {
    let words: Vec<&str> = started.words.iter().map(String::as_str).collect();
    matches!(words.as_slice(), [] | ["caddy", "run", ..] | ["run", ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(image: &str, words: &[&str], variables: &[(&str, &str)]) -> Vec<i64> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let server = server(&Invocation::new(image, &[], &words), &[], variables);
        server.map(|server| server.ports().into_iter().map(|(port, _)| port).collect()).unwrap_or_default()
    }

    #[test]
    fn servers_listen_where_they_are_told() {
        for (image, words, variables, wanted) in [
            ("traefik/whoami", &["--port=8081"][..], &[][..], &[8081][..]),
            ("traefik/whoami", &["--port", "8082", "--name", "joe"], &[], &[8082]),
            ("traefik/whoami", &[], &[("WHOAMI_PORT_NUMBER", "8083")], &[8083]),
            ("traefik/whoami", &["my-own"], &[], &[]),
            ("redis:7", &["redis-server", "--port", "6380"], &[], &[6380]),
            ("redis:7", &["--requirepass", "pw"], &[], &[6379]),
            ("bitnami/redis", &[], &[("REDIS_PORT_NUMBER", "6381")], &[6381]),
            ("redis:7", &["redis-server", "--tls-port", "6380"], &[], &[]),
            ("memcached", &["-p", "11300", "-m", "64"], &[], &[11300]),
            ("memcached", &["memcached", "--port=11301"], &[], &[11301]),
            ("postgres:16", &["-p", "5433"], &[], &[5433]),
            ("gcr.io/google-samples/hello-app:1.0", &[], &[("PORT", "8085")], &[8085]),
            ("ealen/echo-server", &[], &[("PORT", "8085")], &[8085]),
            ("ealen/echo-server", &["--port", "8086"], &[], &[8086]),
            ("hashicorp/http-echo", &["-text", "a", "-listen=:81"], &[], &[81]),
            ("hashicorp/http-echo", &[], &[], &[]),
            ("caddy", &[], &[], &[80]),
        ] {
            assert_eq!(ports(image, words, variables), wanted, "{image} {words:?} {variables:?}");
        }
    }

    #[test]
    fn what_is_not_known_yet_is_read_when_it_runs() {
        let words = ["--port".to_owned(), "$(OWN)".to_owned()];
        let invocation = Invocation::new("redis", &[], &words);
        let variables = [("OWN", "")];
        assert!(server(&invocation, &[], &variables).unwrap().is_configured());
        let mut around = Surroundings::default();
        around.variables.insert("OWN".to_owned(), "6390".to_owned());
        let read = configured(&invocation, &around).unwrap();
        assert!(read.listens(6390) && !read.listens(6379));
        let whoami = Invocation::new("traefik/whoami", &[], &[]);
        assert!(server(&whoami, &[], &[("WHOAMI_PORT_NUMBER", "")]).unwrap().is_configured());
        assert!(!server(&whoami, &[], &[("OTHER", "")]).unwrap().is_configured());
    }
}
