//! Servers that are known: where a container listens, and what it answers to who asks.

use std::sync::Arc;
use std::time::Duration;

use crate::agnhost::flags::{TLS_FILE, flag, is_set};
use crate::agnhost::forward_tester::ForwardTester;
use crate::agnhost::guestbook::Guestbook;
use crate::agnhost::modes::RememberingMode;
use crate::agnhost::{close_wait, modes, netexec};
use crate::configured_web::WebRules;
use crate::nginx::NginxSite;
use crate::requests::parameter;
use crate::served_files;
use crate::speakers::Speaker;
use crate::text_servers::{TEXT_SERVERS, TextProtocol, TextSession};
use crate::web_servers::WebPages;

/// After so long agnhost's `liveness` fails its health check.
const LIVENESS_FAILS_AFTER: Duration = Duration::from_secs(10);

/// What a container serves; nothing is served anywhere else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerServer {
    sites: Vec<(i64, Site)>,
    /// Who speaks TLS, where.
    tls: Option<TlsFiles>,
    grpc: Option<(i64, Health)>,
    udp: Vec<(i64, UdpServer)>,
    text: Option<TextSession>,
    forward_tester: Option<Box<(i64, ForwardTester)>>,
    /// A script that is to be played to know where it listens.
    is_scripted: bool,
    /// Files, variables or arguments that are to be read to know where it listens.
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

/// Pages by their paths.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Site {
    /// The pages of a web server.
    Pages(WebPages),
    /// What files configure.
    Nginx(Arc<NginxSite>),
    /// And of Apache and Caddy.
    Ruled(Arc<WebRules>),
    /// Files, among them whatever is below these folders.
    Files(Vec<String>),
    /// The host's name, whatever the path: agnhost's `serve-hostname`.
    HostName,
    /// agnhost's `no-snat-test`: as whom others see it.
    NoSnat,
    /// agnhost's `no-snat-test-proxy`, which asks such a one.
    NoSnatProxy,
    /// Who tells of itself, or what it was asked.
    Speaker(Speaker),
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
    /// sample-apiserver.
    Wardle,
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

/// What one of agnhost's modes serves; nothing where that is not known.
pub(crate) fn of_agnhost(
    mode: &str,
    words: &[String],
    mounts: &[&str],
    variables: &[(&str, &str)],
) -> Option<ContainerServer> {
    let port = |name: &str, default: i64| match flag(words, name) {
        Some(text) => text.parse::<i64>().ok(),
        None => Some(default),
    };
    let forwarding =
        |tester| ContainerServer { forward_tester: Some(Box::new(tester)), ..ContainerServer::default() };
    Some(match mode {
        "netexec" => {
            let instead = flag(words, "http-override").map(str::to_owned);
            let server = ContainerServer::http(port("http-port", 8080)?, Site::NetExec(instead));
            ContainerServer { udp: vec![(port("udp-port", 8081)?, UdpServer::NetExec)], ..server }
                .with_tls(words)
        }
        "webhook" => {
            let sidecar = flag(words, "sidecar-image").unwrap_or_default().to_owned();
            ContainerServer::http(port("port", 443)?, Site::Webhook(sidecar)).with_tls(words)
        }
        "crd-conversion-webhook" => {
            ContainerServer::http(port("port", 443)?, Site::Conversion).with_tls(words)
        }
        "porter" => porter(words, variables),
        "test-webserver" => {
            let folders = mounts.iter().map(|mount| (*mount).to_owned()).collect();
            ContainerServer::http(port("port", 80)?, Site::Files(folders))
        }
        "liveness" => ContainerServer::http(8080, Site::Liveness),
        "no-snat-test" => ContainerServer::http(port("port", 8080)?, Site::NoSnat),
        "port-forward-tester" => forwarding(ForwardTester::of(variables)?),
        "net" if flag(words, "runner").is_some() => forwarding(close_wait::serving(words)?),
        "no-snat-test-proxy" => ContainerServer::http(port("port", 31235)?, Site::NoSnatProxy),
        "serve-hostname" if is_set(words, "udp") || is_set(words, "tcp") => {
            let port = port("port", 9376)?;
            let text = is_set(words, "tcp").then(|| TextSession::new(TextProtocol::HostName, port, None));
            let udp = is_set(words, "udp").then_some((port, UdpServer::HostName));
            ContainerServer { text, udp: udp.into_iter().collect(), ..ContainerServer::default() }
        }
        "serve-hostname" => ContainerServer::http(port("port", 9376)?, Site::HostName),
        "tcp-reset" => ContainerServer::of_text(port("port", 8080)?, TextProtocol::Reset, None),
        "guestbook" => {
            let replica_of = flag(words, "replicaof").map(str::to_owned);
            let guestbook = Guestbook { backend_port: port("backend-port", 6379)?, replica_of };
            ContainerServer::http(port("http-port", 80)?, Site::Guestbook(guestbook))
        }
        "fake-gitserver" => ContainerServer::http(8000, Site::Text("I am a fake git server".into())),
        "audit-proxy" => ContainerServer::http(8080, Site::Audit),
        "grpc-health-checking" => return of_health(words),
        _ => {
            let (port, mode) = modes::serving(mode, words)?;
            let own = |name: &str| format!("/tmp/cert/apiserver.{name}");
            let tls = TlsFiles { certificate: own("crt"), key: own("key"), has_own: true, ports: vec![port] };
            let tls = match &mode {
                RememberingMode::ExternalMetrics => Some(tls),
                RememberingMode::MutualTls(files) => Some(TlsFiles {
                    certificate: files.credentials.clone(),
                    key: files.credentials.clone(),
                    has_own: false,
                    ports: vec![port],
                }),
                _ => None,
            };
            ContainerServer { tls, ..ContainerServer::http(port, Site::Mode(mode)) }
        }
    })
}

/// `grpc-health-checking`: gRPC, with TLS where it has a certificate, and HTTP.
fn of_health(words: &[String]) -> Option<ContainerServer> {
    let port = |name: &str, usual: i64| flag(words, name).map_or(Some(usual), |text| text.parse().ok());
    let service = flag(words, "service").unwrap_or_default().to_owned();
    let seconds = flag(words, "delay-unhealthy-sec").and_then(|text| text.parse().ok());
    let health = Health { service, fails_after: seconds.map(Duration::from_secs) };
    let grpc = port("port", 5000)?;
    let server = ContainerServer {
        sites: vec![(port("http-port", 8080)?, Site::Health)],
        grpc: Some((grpc, health)),
        ..ContainerServer::default()
    };
    Some(server.with_tls_at(words, vec![grpc]))
}

/// Serves what its variables `SERVE_PORT_*` and their kin say.
fn porter(words: &[String], variables: &[(&str, &str)]) -> ContainerServer {
    let mut server = ContainerServer::default();
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

impl ContainerServer {
    pub(crate) fn http(port: i64, site: Site) -> ContainerServer {
        ContainerServer { sites: vec![(port, site)], ..ContainerServer::default() }
    }

    /// Somebody whose files, variables or arguments are to be read to know where it listens.
    pub(crate) fn to_be_read() -> ContainerServer {
        ContainerServer { is_configured: true, ..ContainerServer::default() }
    }

    /// A script that is played, which may listen or not.
    pub(crate) fn of_script(is_scripted: bool) -> ContainerServer {
        ContainerServer { is_scripted, ..ContainerServer::default() }
    }

    /// One that keeps what it is told.
    pub(crate) fn of_text(port: i64, protocol: TextProtocol, password: Option<String>) -> ContainerServer {
        ContainerServer {
            text: Some(TextSession::new(protocol, port, password)),
            ..ContainerServer::default()
        }
    }

    /// Where its configuration says.
    pub(crate) fn of_nginx(site: NginxSite) -> ContainerServer {
        let site = Arc::new(site);
        let ports = site.ports();
        let sites = ports.keys().map(|port| (*port, Site::Nginx(site.clone()))).collect();
        let secure: Vec<_> = ports.iter().filter_map(|(port, files)| Some((*port, (*files)?))).collect();
        let tls = secure.first().map(|(_, (certificate, key))| TlsFiles {
            certificate: (*certificate).to_owned(),
            key: (*key).to_owned(),
            has_own: false,
            ports: secure.iter().map(|(port, _)| *port).collect(),
        });
        ContainerServer { sites, tls, ..ContainerServer::default() }
    }

    /// Where its rules say.
    pub(crate) fn of_rules(rules: &Arc<WebRules>) -> ContainerServer {
        let sites = rules.ports().into_iter().map(|port| (port, Site::Ruled(rules.clone()))).collect();
        let secure: Vec<_> =
            rules.hosts.iter().filter_map(|host| Some((host.port, host.tls.as_ref()?))).collect();
        let tls = secure.first().map(|(_, (certificate, key))| TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            has_own: certificate.is_empty(),
            ports: secure.iter().map(|(port, _)| *port).collect(),
        });
        ContainerServer { sites, tls, ..ContainerServer::default() }
    }

    /// With the certificate and the key of these files, at all its ports.
    pub(crate) fn shows(mut self, certificate: &str, key: &str) -> ContainerServer {
        let ports = self.sites.iter().map(|(port, _)| *port).collect();
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        self.tls = Some(TlsFiles { certificate, key, has_own: false, ports });
        self
    }

    /// What servers say of themselves once they have begun.
    pub(crate) fn first_lines(&self) -> Vec<String> {
        let line = |(port, site): &(i64, Site)| match site {
            Site::Speaker(speaker) => speaker.first_line(*port),
            _ => None,
        };
        let text = self.text.iter().flat_map(TextSession::first_lines);
        self.sites.iter().filter_map(line).chain(text).collect()
    }

    /// Who is taken to listen in a container that declares such a port, whatever its image: databases have
    /// ports by which everybody knows them.
    pub fn of_known_port(port: i64) -> Option<ContainerServer> {
        let (_, port, protocol) = TEXT_SERVERS.iter().find(|(_, own, _)| *own == port)?;
        Some(ContainerServer::of_text(*port, *protocol, None))
    }

    /// With the certificate that its flags name, at all its ports.
    pub(crate) fn with_tls(self, words: &[String]) -> ContainerServer {
        let ports = self.sites.iter().map(|(port, _)| *port).collect();
        self.with_tls_at(words, ports)
    }

    fn with_tls_at(mut self, words: &[String], ports: Vec<i64>) -> ContainerServer {
        let file = |name| flag(words, name).map(str::to_owned);
        let files = (file(TLS_FILE), file("tls-private-key-file"));
        if let (Some(certificate), Some(key)) = files {
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

    /// Whether it asks clients at a port who they are, whoever vouches for them.
    pub fn asks_clients(&self, port: i64) -> bool {
        matches!(self.site(port), Some(Site::Mode(RememberingMode::MutualTls(_)) | Site::Wardle))
    }

    /// Whether it uses as much of the machine as it is told to.
    pub fn consumes(&self, port: i64) -> bool {
        matches!(self.site(port), Some(Site::Mode(RememberingMode::Consumer)))
    }

    /// Whether it shows a certificate that somebody mounted.
    pub fn shows_files(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.has_own)
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
        let others = self.text.as_ref().map(TextSession::port).into_iter().chain(tester);
        let connected = sites.chain(one).chain(others).map(|port| (port, false));
        connected.chain(self.udp.iter().map(|(port, _)| (*port, true))).collect()
    }

    /// Whether it is a script that is to be played to know where it listens.
    pub fn is_scripted(&self) -> bool {
        self.is_scripted
    }

    /// Whether files or variables are to be read to know where it listens
    /// ([`crate::image_servers::configured`]).
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

    /// A connection to a port at which it speaks a text protocol.
    pub fn text(&self, port: i64) -> Option<&TextSession> {
        self.text.as_ref().filter(|text| text.port() == port)
    }

    /// One that a server has begun at a port.
    pub fn of_runner(port: i64, tester: ForwardTester) -> ContainerServer {
        ContainerServer { forward_tester: Some(Box::new((port, tester))), ..ContainerServer::default() }
    }

    /// agnhost's `port-forward-tester`, where it listens.
    pub fn forward_tester(&self, port: i64) -> Option<&ForwardTester> {
        self.forward_tester.as_deref().filter(|(own, _)| *own == port).map(|(_, tester)| tester)
    }

    /// Whether what it says depends on files that somebody may write.
    pub fn serves_files(&self) -> bool {
        self.sites.iter().any(|(_, site)| {
            matches!(site, Site::Files(_) | Site::Pages(_) | Site::Nginx(_) | Site::Ruled(_))
        })
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
            Site::Wardle => found(matches!(plain, "/healthz" | "/livez" | "/readyz")),
            Site::Health | Site::Audit | Site::NoSnat | Site::NoSnatProxy => return None,
            Site::Nginx(_) | Site::Ruled(_) => return None,
            Site::Text(_) | Site::Porter(_) | Site::HostName => found(true),
            Site::Speaker(speaker) => Page::Status(speaker.code(path)?),
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
