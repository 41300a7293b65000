//! Servers that are known: where a container listens, and what it answers to who asks.
//!
//! Known are the images that a project publishes itself, started as they come, and the modes of the test
//! image agnhost. What has a command or a configuration of its own, or comes from another registry, may
//! serve anything. A script that is played serves nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::agnhost::flags::{TLS_FILE, flag, is_set};
use crate::agnhost::forward_tester::ForwardTester;
use crate::agnhost::guestbook::Guestbook;
use crate::agnhost::modes::RememberingMode;
use crate::agnhost::{modes, netexec};
use crate::invocation::Invocation;
use crate::nginx::NginxSite;
use crate::programs::names;
use crate::requests::parameter;
use crate::surroundings::Surroundings;
use crate::text_servers::{PORT_VARIABLES, TEXT_SERVERS, TextProtocol};
use crate::web_servers::WebPages;
use crate::{agnhost, images, program, script_listeners, served_files, web_servers};

/// Servers that say the same whatever the path: their repositories, and where they listen.
const SPEAKERS: &[(&str, i64, Speaker)] = &[
    ("docker.io/hashicorp/http-echo", 5678, Speaker::HttpEcho),
    ("docker.io/traefik/whoami", 80, Speaker::WhoAmI),
    ("gcr.io/google-samples/hello-app", 8080, Speaker::HelloApp),
    ("us-docker.pkg.dev/google-samples/containers/gke/hello-app", 8080, Speaker::HelloApp),
    ("docker.io/ealen/echo-server", 80, Speaker::EalenEcho),
    ("docker.io/library/caddy", 80, Speaker::Caddy),
    ("k8s.gcr.io/echoserver", 8080, Speaker::EchoServer),
    ("registry.k8s.io/echoserver", 8080, Speaker::EchoServer),
    ("gcr.io/google_containers/echoserver", 8080, Speaker::EchoServer),
];
/// After so long agnhost's `liveness` fails its health check.
const LIVENESS_FAILS_AFTER: Duration = Duration::from_secs(10);

/// What a container serves; nothing is served anywhere else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server {
    sites: Vec<(i64, Site)>,
    /// Who speaks TLS, where.
    tls: Option<TlsFiles>,
    grpc: Option<(i64, Health)>,
    udp: Vec<(i64, UdpServer)>,
    text: Option<(i64, TextProtocol)>,
    forward_tester: Option<Box<(i64, ForwardTester)>>,
    /// A script that is to be played to know where it listens.
    is_scripted: bool,
    /// Files that are to be read to know where it listens.
    is_configured: bool,
}

/// The files of a server's certificate and key, as PEM, and at which of its ports it shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsFiles {
    /// The certificate, and those who vouch for it.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Where nothing is mounted there, the image has one, or makes one when it starts.
    pub has_own: bool,
    ports: Vec<i64>,
}

/// Who answers to datagrams.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum UdpServer {
    /// agnhost's `netexec`: `hostname`, `echo TEXT`, `clientip`.
    NetExec,
    /// agnhost's `serve-hostname`: the same to anybody.
    HostName,
    /// agnhost's `porter`: a text.
    Text(String),
}

/// Who says the same whatever it is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speaker {
    /// The text that it was started with.
    HttpEcho,
    /// What it was asked.
    WhoAmI,
    /// A greeting.
    HelloApp,
    /// What it was asked, as JSON.
    EalenEcho,
    /// What it was asked, as lines.
    EchoServer,
    /// That it works.
    Caddy,
}

/// Pages by their paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Site {
    /// The pages of a web server.
    Pages(WebPages),
    /// What files configure.
    Nginx(Arc<NginxSite>),
    /// Files, among them whatever is below these folders.
    Files(Vec<String>),
    /// The host's name, whatever the path: agnhost's `serve-hostname`.
    HostName,
    /// agnhost's `no-snat-test`: as whom others see it.
    NoSnat,
    /// agnhost's `no-snat-test-proxy`, which asks such a one.
    NoSnatProxy,
    /// One text, whatever the path.
    Speaker(Speaker, String),
    /// agnhost's `netexec`, with the path that it takes instead of any other.
    NetExec(Option<String>),
    /// agnhost's `liveness`.
    Liveness,
    /// This, whatever the path.
    Text(String),
    /// This and the method as JSON, whatever the path: agnhost's `porter --json-response`.
    Porter(String),
    /// agnhost's `audit-proxy`: what it hears stands in its log.
    Audit,
    /// agnhost's `grpc-health-checking` hears how well it is.
    Health,
    /// agnhost's `guestbook`.
    Guestbook(Guestbook),
    /// agnhost's `webhook`, with the image of the sidecar that it adds.
    Webhook(String),
    /// agnhost's `crd-conversion-webhook`.
    Conversion,
    /// One of agnhost that remembers what it is told.
    Mode(RememberingMode),
}

/// gRPC's health protocol, as agnhost speaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// The service that it knows.
    pub service: String,
    /// How long it is healthy.
    pub fails_after: Option<Duration>,
}

/// What is answered to a `GET`.
#[derive(Clone, Debug, PartialEq)]
pub enum Page {
    /// With this code.
    Status(u16),
    /// Where to ask instead, and the code that says so.
    Moved(u16, String),
}

/// What a container with volumes at `mounts` and such variables serves; nothing when that is not known.
pub fn server(invocation: &Invocation<'_>, mounts: &[&str], variables: &[(&str, &str)]) -> Option<Server> {
    if let Some(mode) = agnhost::serves(invocation) {
        let words: Vec<String> = invocation.words().cloned().collect();
        if let Some(server) = of_agnhost(mode, &words, mounts, variables) {
            return Some(server);
        }
    }
    if program::is_known(invocation) {
        let is_scripted = script_listeners::may_listen(invocation);
        return Some(Server { is_scripted, ..Server::default() });
    }
    let repository = images::repository(invocation.image);
    let speaker = SPEAKERS.iter().find(|(name, ..)| *name == repository);
    if let Some((_, port, speaker)) = speaker {
        return speaking(*speaker, *port, invocation);
    }
    let text = TEXT_SERVERS.iter().find(|(name, ..)| *name == repository);
    if let Some((_, port, protocol)) = text {
        let moves =
            |(name, value): &(&str, &str)| PORT_VARIABLES.contains(name) && value.parse::<i64>() != Ok(*port);
        let is_elsewhere = variables.iter().any(moves);
        return text_server(*protocol, *port, invocation).filter(|_| !is_elsewhere);
    }
    if web_servers::is_configured_by_files(invocation, mounts) {
        return Some(Server { is_configured: true, ..Server::default() });
    }
    WebPages::of(invocation, mounts).map(|pages| Server::http(pages.web.port, Site::Pages(pages)))
}

/// What a container serves whose files configure that, among what it found when it started; nothing where
/// nobody knows that.
pub fn configured(invocation: &Invocation<'_>, around: &Surroundings) -> Option<Server> {
    let site = Arc::new(web_servers::nginx(invocation, Some(around))?);
    let ports = site.ports();
    let sites = ports.keys().map(|port| (*port, Site::Nginx(site.clone()))).collect();
    let secure: Vec<_> = ports.iter().filter_map(|(port, files)| Some((*port, (*files)?))).collect();
    let tls = secure.first().map(|(_, (certificate, key))| TlsFiles {
        certificate: (*certificate).to_owned(),
        key: (*key).to_owned(),
        has_own: false,
        ports: secure.iter().map(|(port, _)| *port).collect(),
    });
    Some(Server { sites, tls, ..Server::default() })
}

/// Elsewhere than usual, or with a program of its own, it may be anything.
fn text_server(protocol: TextProtocol, port: i64, invocation: &Invocation<'_>) -> Option<Server> {
    let is_own = |word: &String| {
        let name = names::base_name(word);
        matches!(
            name,
            "redis-server"
                | "valkey-server"
                | "memcached"
                | "postgres"
                | "mysqld"
                | "mariadbd"
                | "docker-entrypoint.sh"
        )
    };
    let has_own = invocation.command.first().is_none_or(is_own);
    let moves = |word: &String| {
        matches!(word.as_str(), "-p" | "-s") || word.starts_with("--port") || word.starts_with("--tls")
    };
    let is_usual = has_own && !invocation.words().any(moves);
    is_usual.then(|| Server { text: Some((port, protocol)), ..Server::default() })
}

/// With what its arguments change; nothing where it has a command of its own.
fn speaking(speaker: Speaker, port: i64, invocation: &Invocation<'_>) -> Option<Server> {
    let words: Vec<String> = invocation.words().cloned().collect();
    if speaker != Speaker::HttpEcho {
        let is_plain = words.is_empty();
        return is_plain
            .then(|| Server::http(port, Site::Speaker(speaker, images::tag(invocation.image).to_owned())));
    }
    let flag = |name| ["-", "--"].into_iter().find_map(|dashes| dashed(&words, dashes, name));
    let listen = flag("listen").map(|listen| listen.rsplit(':').next().and_then(|port| port.parse().ok()));
    // Without a text it ends at once.
    Some(Server::http(listen.unwrap_or(Some(port))?, Site::Speaker(speaker, flag("text")?.to_owned())))
}

/// `-name=value`, `-name value`
fn dashed<'a>(words: &'a [String], dashes: &str, name: &str) -> Option<&'a str> {
    let flag = format!("{dashes}{name}");
    let at = words.iter().position(|word| word.split('=').next() == Some(&flag))?;
    match words[at].split_once('=') {
        Some((_, value)) => Some(value),
        None => words.get(at + 1).map(String::as_str),
    }
}

fn of_agnhost(mode: &str, words: &[String], mounts: &[&str], variables: &[(&str, &str)]) -> Option<Server> {
    let port = |name: &str, default: i64| match flag(words, name) {
        Some(text) => text.parse::<i64>().ok(),
        None => Some(default),
    };
    Some(match mode {
        "netexec" => {
            let instead = flag(words, "http-override").map(str::to_owned);
            let server = Server::http(port("http-port", 8080)?, Site::NetExec(instead));
            Server { udp: vec![(port("udp-port", 8081)?, UdpServer::NetExec)], ..server }.with_tls(words)
        }
        "webhook" => {
            let sidecar = flag(words, "sidecar-image").unwrap_or_default().to_owned();
            Server::http(port("port", 443)?, Site::Webhook(sidecar)).with_tls(words)
        }
        "crd-conversion-webhook" => Server::http(port("port", 443)?, Site::Conversion).with_tls(words),
        "porter" => porter(words, variables),
        "test-webserver" => {
            let folders = mounts.iter().map(|mount| (*mount).to_owned()).collect();
            Server::http(port("port", 80)?, Site::Files(folders))
        }
        "liveness" => Server::http(8080, Site::Liveness),
        "no-snat-test" => Server::http(port("port", 8080)?, Site::NoSnat),
        "port-forward-tester" => {
            Server { forward_tester: Some(Box::new(ForwardTester::of(variables)?)), ..Server::default() }
        }
        "no-snat-test-proxy" => Server::http(port("port", 31235)?, Site::NoSnatProxy),
        "serve-hostname" if is_set(words, "udp") || is_set(words, "tcp") => {
            let port = port("port", 9376)?;
            let text = is_set(words, "tcp").then_some((port, TextProtocol::HostName));
            let udp = is_set(words, "udp").then_some((port, UdpServer::HostName));
            Server { text, udp: udp.into_iter().collect(), ..Server::default() }
        }
        "serve-hostname" => Server::http(port("port", 9376)?, Site::HostName),
        "tcp-reset" => Server { text: Some((port("port", 8080)?, TextProtocol::Reset)), ..Server::default() },
        "guestbook" => {
            let replica_of = flag(words, "replicaof").map(str::to_owned);
            let guestbook = Guestbook { backend_port: port("backend-port", 6379)?, replica_of };
            Server::http(port("http-port", 80)?, Site::Guestbook(guestbook))
        }
        "fake-gitserver" => Server::http(8000, Site::Text("I am a fake git server".into())),
        "audit-proxy" => Server::http(8080, Site::Audit),
        "grpc-health-checking" => {
            let service = flag(words, "service").unwrap_or_default().to_owned();
            let seconds = flag(words, "delay-unhealthy-sec").and_then(|text| text.parse().ok());
            let health = Health { service, fails_after: seconds.map(Duration::from_secs) };
            Server {
                sites: vec![(port("http-port", 8080)?, Site::Health)],
                grpc: Some((port("port", 5000)?, health)),
                ..Server::default()
            }
        }
        _ => {
            let (port, mode) = modes::serving(mode, words)?;
            let own = |name: &str| format!("/tmp/cert/apiserver.{name}");
            let tls = TlsFiles { certificate: own("crt"), key: own("key"), has_own: true, ports: vec![port] };
            let tls = Some(tls).filter(|_| mode == RememberingMode::ExternalMetrics);
            Server { tls, ..Server::http(port, Site::Mode(mode)) }
        }
    })
}

/// Serves what its variables `SERVE_PORT_*` and their kin say.
fn porter(words: &[String], variables: &[(&str, &str)]) -> Server {
    let mut server = Server::default();
    let variable = |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    let file = |name, usual: &str| variable(name).unwrap_or(usual).to_owned();
    let (certificate, key) = (file("CERT_FILE", "/localhost.crt"), file("KEY_FILE", "/localhost.key"));
    let has_own = variable("CERT_FILE").is_none() && variable("KEY_FILE").is_none();
    let mut tls = TlsFiles { certificate, key, has_own, ports: vec![] };
    let is_json = is_set(words, "json-response");
    for (name, value) in variables {
        let Some((kind, Ok(port))) = name
            .strip_prefix("SERVE_")
            .and_then(|rest| rest.rsplit_once('_'))
            .map(|(kind, port)| (kind, port.parse::<i64>()))
        else {
            continue;
        };
        let text = (*value).to_owned();
        match kind {
            "UDP_PORT" => server.udp.push((port, UdpServer::Text(text))),
            "PORT" | "TCP_PORT" | "TLS_PORT" => {
                server.sites.push((port, if is_json { Site::Porter(text) } else { Site::Text(text) }));
                tls.ports.extend((kind == "TLS_PORT").then_some(port));
            }
            _ => {}
        }
    }
    server.tls = Some(tls).filter(|tls| !tls.ports.is_empty());
    server
}

impl Server {
    fn http(port: i64, site: Site) -> Server {
        Server { sites: vec![(port, site)], ..Server::default() }
    }

    /// Who is taken to listen in a container that declares such a port, whatever its image: databases have
    /// ports by which everybody knows them.
    pub fn of_known_port(port: i64) -> Option<Server> {
        let (_, port, protocol) = TEXT_SERVERS.iter().find(|(_, own, _)| *own == port)?;
        Some(Server { text: Some((*port, *protocol)), ..Server::default() })
    }

    /// With the certificate that its flags name, at all its ports.
    fn with_tls(mut self, words: &[String]) -> Server {
        let file = |name| flag(words, name).map(str::to_owned);
        let files = (file(TLS_FILE), file("tls-private-key-file"));
        if let (Some(certificate), Some(key)) = files {
            let ports = self.sites.iter().map(|(port, _)| *port).collect();
            // Those of the image stand at its root.
            let has_own = certificate == "/localhost.crt" && key == "/localhost.key";
            self.tls = Some(TlsFiles { certificate, key, has_own, ports });
        }
        self
    }

    /// The files of the certificate that it shows at a port.
    pub fn tls(&self, port: i64) -> Option<&TlsFiles> {
        self.tls.as_ref().filter(|tls| tls.ports.contains(&port))
    }

    /// Whether it takes connections at `port`.
    pub fn listens(&self, port: i64) -> bool {
        self.site(port).is_some()
            || self.health(port).is_some()
            || self.text(port).is_some()
            || self.forward_tester(port).is_some()
    }

    /// Where it listens, and whether to datagrams.
    pub fn ports(&self) -> Vec<(i64, bool)> {
        let sites = self.sites.iter().map(|(port, _)| *port);
        let one = self.grpc.as_ref().map(|(port, _)| *port).into_iter();
        let tester = self.forward_tester.as_ref().map(|tester| tester.0);
        let others = self.text.map(|(port, _)| port).into_iter().chain(tester);
        let connected = sites.chain(one).chain(others).map(|port| (port, false));
        connected.chain(self.udp.iter().map(|(port, _)| (*port, true))).collect()
    }

    /// Whether it is a script that is to be played to know where it listens.
    pub fn is_scripted(&self) -> bool {
        self.is_scripted
    }

    /// Whether files are to be read to know where it listens ([`configured`]).
    pub fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// What comes back of a datagram at a UDP port, in which there may be nothing; nothing where it does not
    /// listen.
    pub fn datagram(&self, port: i64, said: &[u8], from: &str, host_name: &str) -> Option<Option<Vec<u8>>> {
        let (_, server) = self.udp.iter().find(|(own, _)| *own == port)?;
        let answer = match server {
            UdpServer::Text(text) => Some(text.clone()),
            UdpServer::HostName => Some(host_name.to_owned()),
            UdpServer::NetExec => netexec::datagram(&String::from_utf8_lossy(said), (port, from, host_name)),
        };
        Some(answer.map(String::into_bytes))
    }

    /// The text protocol that it speaks at a port.
    pub fn text(&self, port: i64) -> Option<TextProtocol> {
        self.text.filter(|(own, _)| *own == port).map(|(_, protocol)| protocol)
    }

    /// agnhost's `port-forward-tester`, where it listens.
    pub fn forward_tester(&self, port: i64) -> Option<&ForwardTester> {
        self.forward_tester.as_deref().filter(|(own, _)| *own == port).map(|(_, tester)| tester)
    }

    /// Whether what it says depends on files that somebody may write.
    pub fn serves_files(&self) -> bool {
        self.sites.iter().any(|(_, site)| matches!(site, Site::Files(_) | Site::Pages(_) | Site::Nginx(_)))
    }

    /// What it serves at a port.
    pub(crate) fn site(&self, port: i64) -> Option<&Site> {
        self.sites.iter().find(|(own, _)| *own == port).map(|(_, site)| site)
    }

    /// What it says of its health at a port.
    pub fn health(&self, port: i64) -> Option<&Health> {
        self.grpc.as_ref().filter(|(own, _)| *own == port).map(|(_, health)| health)
    }

    /// Whether somebody at `port` speaks HTTP, and nothing around it.
    pub fn is_plain(&self, port: i64) -> bool {
        self.site(port).is_some() && self.tls(port).is_none()
    }

    /// What it answers to `GET path`, from when on; nothing when nobody knows.
    pub fn get(&self, port: i64, path: &str) -> Option<Vec<(Duration, Page)>> {
        let site = self.site(port)?;
        let found = |is_there: bool| Page::Status(if is_there { 200 } else { 404 });
        let (plain, query) = path.split_once('?').unwrap_or((path, ""));
        let page = match site {
            Site::Guestbook(_) | Site::Webhook(_) | Site::Conversion | Site::Mode(_) => return None,
            Site::Health | Site::Audit | Site::NoSnat | Site::NoSnatProxy | Site::Nginx(_) => return None,
            Site::Text(_) | Site::Porter(_) | Site::HostName | Site::Speaker(..) => found(true),
            Site::Pages(pages) => found(pages.welcomes(plain)?),
            Site::Files(folders) => found(served_files::is_believed(folders, plain)),
            Site::NetExec(instead) => return net_exec(instead.as_deref().unwrap_or(path)),
            Site::Liveness if plain == "/healthz" => {
                return Some(vec![
                    (Duration::ZERO, Page::Status(200)),
                    (LIVENESS_FAILS_AFTER, Page::Status(500)),
                ]);
            }
            Site::Liveness => match plain {
                "/started" => found(true),
                "/redirect" => Page::Moved(302, parameter(query, "loc").unwrap_or_default()),
                _ => found(false),
            },
        };
        Some(vec![(Duration::ZERO, page)])
    }
}

fn net_exec(path: &str) -> Option<Vec<(Duration, Page)>> {
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let code = || parameter(query, "code").and_then(|code| code.parse().ok());
    let page = match plain {
        "/echo" => Page::Status(code().unwrap_or(200)),
        "/redirect" => Page::Moved(code().unwrap_or(302), parameter(query, "location").unwrap_or_default()),
        "/dial" | "/exit" | "/shutdown" | "/upload" | "/shell" => return None,
        _ => Page::Status(200),
    };
    Some(vec![(Duration::ZERO, page)])
}
