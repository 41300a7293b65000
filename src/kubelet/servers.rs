//! Servers that are known: where a container listens, and what it answers to who asks.
//!
//! Known are the images that a project publishes itself, started as they come, and the modes of the test
//! image agnhost. What has a command or a configuration of its own, or comes from another registry, may
//! serve anything. A script that is played serves nothing.

use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::{agnhost, images, process};
use apis::views::pod::{Container, Pod, VolumeMount};

/// Web servers with a page of welcome: their repositories, their pages, and where they are configured.
const WEB_SERVERS: &[(&[&str], &[&str], &[&str])] = &[
    (
        &[
            "docker.io/library/nginx",
            "registry.k8s.io/e2e-test-images/nginx",
            "registry.k8s.io/e2e-test-images/nginx-new",
            "registry.k8s.io/nginx-slim",
        ],
        &["/", "/index.html", "/50x.html"],
        &["/etc/nginx", "/usr/share/nginx"],
    ),
    (
        &["docker.io/library/httpd", "registry.k8s.io/e2e-test-images/httpd"],
        &["/", "/index.html"],
        &["/usr/local/apache2"],
    ),
];
/// Folders and files that agnhost's image has, beside what is mounted: `test-webserver` serves them.
const AGNHOST_FILES: &[&str] = &[
    "/",
    "/agnhost",
    "/bin",
    "/dev",
    "/etc",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/home",
    "/lib",
    "/proc",
    "/root",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
];
/// After so long agnhost's `liveness` fails its health check.
const LIVENESS_FAILS_AFTER: Duration = Duration::from_secs(10);

/// What a container serves; nothing is served anywhere else.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Server {
    http: Option<(i64, Site)>,
    grpc: Option<(i64, Health)>,
    /// Where connections are taken and nobody knows what is said.
    others: Vec<i64>,
}

/// Pages by their paths.
#[derive(Clone, Debug, PartialEq)]
enum Site {
    /// These, and no others.
    Pages(&'static [&'static str]),
    /// Files, among them whatever is below these folders.
    Files(Vec<String>),
    /// The same whatever the path.
    Everything,
    /// agnhost's `netexec`, with the path that it takes instead of any other.
    NetExec(Option<String>),
    /// agnhost's `liveness`.
    Liveness,
    /// It is there, and nobody knows what it says.
    Anything,
}

/// gRPC's health protocol, as agnhost speaks it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Health {
    /// The service that it knows.
    pub(super) service: String,
    /// How long it is healthy.
    pub(super) fails_after: Option<Duration>,
}

/// What is answered to a `GET`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Page {
    /// With this code.
    Status(u16),
    /// Where to ask instead, and the code that says so.
    Moved(u16, String),
}

/// Who takes connections at a port of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Listener {
    /// Perhaps somebody.
    Unknown,
    Nobody,
    Known(Server),
}

/// Who listens at `port` of the pod that `container` is in: all containers of a pod share its address, and
/// those of the host's network that of everybody on the node.
pub(super) fn listener(pod: &Pod, container: &Container, port: i64) -> Listener {
    let sidecars = pod.spec.init_containers.iter().filter(|init| init.restart_policy.is_some());
    let all = std::iter::once(container).chain(&pod.spec.containers).chain(sidecars);
    let mut is_certain = !pod.spec.host_network;
    for server in all.map(server) {
        match server {
            Some(server) if server.listens(port) => return Listener::Known(server),
            server => is_certain &= server.is_some(),
        }
    }
    if is_certain { Listener::Nobody } else { Listener::Unknown }
}

/// What a container serves; nothing when that is not known.
fn server(container: &Container) -> Option<Server> {
    if let Some(mode) = agnhost::serves(&container.image, &container.command, &container.args) {
        let words: Vec<String> = container.command.iter().chain(&container.args).cloned().collect();
        if let Some(server) = of_agnhost(mode, &words, &container.volume_mounts) {
            return Some(server);
        }
    }
    if process::is_known(container) {
        return Some(Server::default());
    }
    let repository = images::repository(&container.image);
    let (_, pages, folders) = WEB_SERVERS.iter().find(|(names, ..)| names.contains(&&*repository))?;
    let is_ours = |mount: &VolumeMount| folders.iter().any(|folder| mount.mount_path.starts_with(folder));
    let is_plain = container.command.is_empty() && container.args.is_empty();
    let is_known = is_plain && !container.volume_mounts.iter().any(is_ours);
    is_known.then(|| Server::http(80, Site::Pages(pages)))
}

fn of_agnhost(mode: &str, words: &[String], mounts: &[VolumeMount]) -> Option<Server> {
    let port = |name: &str, default: i64| match agnhost::flag(words, name) {
        Some(text) => text.parse::<i64>().ok(),
        None => Some(default),
    };
    let has_tls = agnhost::flag(words, "tls-cert-file").is_some();
    Some(match mode {
        "netexec" if has_tls => Server { others: vec![port("http-port", 8080)?], ..Server::default() },
        "netexec" => {
            let instead = agnhost::flag(words, "http-override").map(str::to_owned);
            Server::http(port("http-port", 8080)?, Site::NetExec(instead))
        }
        "test-webserver" => {
            let folders = mounts.iter().map(|mount| mount.mount_path.clone()).collect();
            Server::http(port("port", 80)?, Site::Files(folders))
        }
        "liveness" => Server::http(8080, Site::Liveness),
        "serve-hostname" => Server::http(port("port", 9376)?, Site::Everything),
        "nettest" => Server::http(port("port", 8080)?, Site::Anything),
        "guestbook" => Server::http(port("http-port", 80)?, Site::Anything),
        "fake-gitserver" => Server::http(8000, Site::Anything),
        "grpc-health-checking" => {
            let service = agnhost::flag(words, "service").unwrap_or_default().to_owned();
            let seconds = agnhost::flag(words, "delay-unhealthy-sec").and_then(|text| text.parse().ok());
            let health = Health { service, fails_after: seconds.map(Duration::from_secs) };
            Server {
                http: Some((port("http-port", 8080)?, Site::Pages(&["/make-serving", "/make-not-serving"]))),
                grpc: Some((port("port", 5000)?, health)),
                others: vec![],
            }
        }
        _ => return None,
    })
}

impl Server {
    fn http(port: i64, site: Site) -> Server {
        Server { http: Some((port, site)), ..Server::default() }
    }

    fn listens(&self, port: i64) -> bool {
        let http = self.http.as_ref().is_some_and(|(own, _)| *own == port);
        http || self.health(port).is_some() || self.others.contains(&port)
    }

    /// What it says of its health at a port.
    pub(super) fn health(&self, port: i64) -> Option<&Health> {
        self.grpc.as_ref().filter(|(own, _)| *own == port).map(|(_, health)| health)
    }

    /// Whether somebody at `port` speaks HTTP, and nothing around it.
    pub(super) fn is_plain(&self, port: i64) -> bool {
        self.http.as_ref().is_some_and(|(own, _)| *own == port)
    }

    /// What it answers to `GET path`, from when on; nothing when nobody knows.
    pub(super) fn get(&self, port: i64, path: &str) -> Option<Vec<(Duration, Page)>> {
        let (_, site) = self.http.as_ref().filter(|(own, _)| *own == port)?;
        let found = |is_there: bool| Page::Status(if is_there { 200 } else { 404 });
        let (plain, query) = path.split_once('?').unwrap_or((path, ""));
        let page = match site {
            Site::Anything => return None,
            Site::Everything => found(true),
            Site::Pages(pages) => found(pages.contains(&plain)),
            Site::Files(folders) => found(is_file(folders, plain)),
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
                "/sleep-headers" | "/sleep-body" | "/slow-response" => return None,
                _ => found(false),
            },
        };
        Some(vec![(Duration::ZERO, page)])
    }
}

fn is_file(folders: &[String], path: &str) -> bool {
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    let is_in = |folder: &String| super::file_system::is_within(folder, path);
    AGNHOST_FILES.contains(&path) || folders.iter().any(is_in)
}

fn net_exec(path: &str) -> Option<Vec<(Duration, Page)>> {
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let code = || parameter(query, "code").and_then(|code| code.parse().ok());
    let page = match plain {
        "/echo" => Page::Status(code().unwrap_or(200)),
        "/redirect" => Page::Moved(code().unwrap_or(302), parameter(query, "location").unwrap_or_default()),
        "/dial" if parameter(query, "request").is_none() => Page::Status(400),
        "/dial" | "/exit" | "/shutdown" | "/shell" | "/upload" => return None,
        _ => Page::Status(200),
    };
    Some(vec![(Duration::ZERO, page)])
}

/// A parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, value)| *key == name && !value.is_empty())?;
    Some(percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(container: Value, port: i64) -> Listener {
        let spec = json!({"spec": {"containers": [container]}});
        let pod: Pod = serde_json::from_value(spec).unwrap();
        listener(&pod, &pod.spec.containers[0], port)
    }

    fn page(container: Value, port: i64, path: &str) -> Option<Page> {
        match at(container, port) {
            Listener::Known(server) => server.get(port, path).map(|pages| pages[0].1.clone()),
            _ => None,
        }
    }

    #[test]
    fn known_servers_have_their_pages() {
        let agnhost = |words: &[&str]| json!({"name": "a", "image": "e2e/agnhost:2", "args": words});
        let image = |image: &str| json!({"name": "a", "image": image});
        let (found, missing) = (Some(Page::Status(200)), Some(Page::Status(404)));
        let moved = Some(Page::Moved(302, "http://0.0.0.0/".into()));
        for (container, port, path, wanted) in [
            (agnhost(&["test-webserver"]), 80, "/", &found),
            (agnhost(&["test-webserver"]), 80, "/healthz", &missing),
            (agnhost(&["test-webserver", "--port", "8000"]), 8000, "/etc/hosts?x=y", &found),
            (agnhost(&["netexec", "--http-port=83"]), 83, "/healthz", &found),
            (agnhost(&["netexec"]), 8080, "/echo?msg=a&code=503", &Some(Page::Status(503))),
            (agnhost(&["netexec", "--http-override=/echo?code=404"]), 8080, "/", &missing),
            (agnhost(&["liveness"]), 8080, "/redirect?loc=http%3A%2F%2F0.0.0.0%2F", &moved),
            (agnhost(&["liveness"]), 8080, "/", &missing),
            (agnhost(&["serve-hostname"]), 9376, "/any", &found),
            (agnhost(&["guestbook"]), 80, "/any", &None),
            (image("nginx:1.25"), 80, "/", &found),
            (image("nginx:1.25"), 80, "/healthz", &missing),
            (image("registry.k8s.io/e2e-test-images/httpd:2.4.38-4"), 80, "/index.html", &found),
            (image("example.com/team/nginx"), 80, "/", &None),
        ] {
            assert_eq!(page(container.clone(), port, path), *wanted, "{container} {port} {path}");
        }
    }

    #[test]
    fn nobody_listens_where_all_are_known() {
        let nginx = |extra: Value| {
            let mut container = json!({"name": "a", "image": "nginx"});
            json_patch::merge(&mut container, &extra);
            container
        };
        let mount = |path: &str| nginx(json!({"volumeMounts": [{"name": "v", "mountPath": path}]}));
        let script = json!({"name": "a", "image": "busybox", "command": ["sleep", "9"]});
        for (container, listener) in [
            (nginx(json!({})), Listener::Nobody),
            (mount("/data"), Listener::Nobody),
            (mount("/etc/nginx/conf.d"), Listener::Unknown),
            (nginx(json!({"command": ["my-server"]})), Listener::Unknown),
            (json!({"name": "a", "image": "mine"}), Listener::Unknown),
            (script, Listener::Nobody),
        ] {
            assert_eq!(at(container.clone(), 8080), listener, "{container}");
        }
        let two = json!({"spec": {"containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "mine"}]}});
        let pod: Pod = serde_json::from_value(two).unwrap();
        assert_eq!(listener(&pod, &pod.spec.containers[0], 9113), Listener::Unknown);
        assert!(matches!(listener(&pod, &pod.spec.containers[1], 80), Listener::Known(_)));
    }
}
