//! Web servers whose images serve pages of a folder.

use crate::configured_web;
use crate::file_system;
use crate::images;
use crate::invocation::Invocation;
use crate::nginx::NginxSite;
use crate::surroundings::Surroundings;

/// A web server whose image welcomes whoever asks.
#[derive(Debug, PartialEq)]
pub(crate) struct WebServer {
    /// What it calls itself.
    pub(crate) name: &'static str,
    repositories: &'static [&'static str],
    /// Where it listens unless it is configured.
    pub(crate) port: i64,
    pub(crate) pages: &'static [&'static str],
    /// Where it is configured.
    folders: &'static [&'static str],
    /// Where its pages are.
    pub(crate) root: &'static str,
}

const WEB_SERVERS: &[WebServer] = &[
    WebServer {
        name: "nginx",
        repositories: &[
            "docker.io/library/nginx",
            "registry.k8s.io/e2e-test-images/nginx",
            "registry.k8s.io/e2e-test-images/nginx-new",
            "registry.k8s.io/nginx-slim",
            "public.ecr.aws/nginx/nginx",
        ],
        port: 80,
        pages: &["/", "/index.html", "/50x.html"],
        folders: &["/etc/nginx"],
        root: "/usr/share/nginx/html",
    },
    WebServer {
        name: "nginx",
        repositories: &["docker.io/nginxinc/nginx-unprivileged"],
        port: 8080,
        pages: &["/", "/index.html", "/50x.html"],
        folders: &["/etc/nginx"],
        root: "/usr/share/nginx/html",
    },
    WebServer {
        name: "Apache",
        repositories: &["docker.io/library/httpd", "registry.k8s.io/e2e-test-images/httpd"],
        port: 80,
        pages: &["/", "/index.html"],
        folders: &["/usr/local/apache2/conf", "/usr/local/apache2/modules"],
        root: "/usr/local/apache2/htdocs",
    },
];

/// What one of them serves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WebPages {
    pub(crate) web: &'static WebServer,
    pub(crate) tag: String,
    /// Its own pages are hidden by a volume, of which it serves the files.
    pub(crate) is_hidden: bool,
    /// A volume is among its pages.
    has_volume: bool,
    /// The nginx of the image with the image's own files, where it is one.
    pub(crate) nginx: Option<NginxSite>,
}

/// The last versions of lines of nginx, for tags that name the line alone.
const NGINX_VERSIONS: &[&str] = &[
    "1.14.2", "1.15.12", "1.16.1", "1.17.10", "1.18.0", "1.19.10", "1.20.2", "1.21.6", "1.22.1", "1.23.4",
    "1.24.0", "1.25.5", "1.26.3", "1.27.5", "1.28.0", "1.29.4",
];
const NGINX_STABLE: &str = "1.28.0";
const NGINX_MAINLINE: &str = "1.29.4";
const APACHE: &str = "2.4.66";

impl WebPages {
    /// As the image comes; nothing where somebody else configures it.
    pub(crate) fn of(invocation: &Invocation<'_>, mounts: &[&str]) -> Option<WebPages> {
        let web = web_server(invocation)?;
        if is_configured(web, mounts) {
            return None;
        }
        let is_hidden = mounts.iter().any(|mount| file_system::is_within(mount, web.root));
        let has_volume = mounts.iter().any(|mount| is_of(web.root, mount));
        let tag = images::tag(invocation.image).to_owned();
        let nginx = (web.name == "nginx").then(|| NginxSite::of_image(version(web, &tag), web.port));
        Some(WebPages { web, tag, is_hidden, has_volume, nginx })
    }

    /// As it calls itself: `nginx/1.27.5`, `Apache/2.4.66 (Unix)`.
    pub(crate) fn name(&self) -> String {
        let version = self.version();
        match self.web.name {
            "nginx" => format!("nginx/{version}"),
            name => format!("{name}/{version} (Unix)"),
        }
    }

    /// That of its tag, where that is one; else a recent one.
    pub(crate) fn version(&self) -> String {
        version(self.web, &self.tag)
    }

    /// Whether the image has a page of its own there; nothing where a volume may have one.
    pub(crate) fn welcomes(&self, path: &str) -> Option<bool> {
        (!self.has_volume).then(|| self.web.pages.contains(&path))
    }
}

/// Started as the image starts it.
fn web_server(invocation: &Invocation<'_>) -> Option<&'static WebServer> {
    let repository = images::repository(invocation.image);
    let web = WEB_SERVERS.iter().find(|web| web.repositories.contains(&&*repository))?;
    let words: Vec<&str> = invocation.words().map(String::as_str).collect();
    let is_usual = match words.as_slice() {
        [] => true,
        ["/docker-entrypoint.sh", rest @ ..] | rest if web.name == "nginx" => {
            let is_daemon = |word: &&str| word.trim_end_matches(';').trim() == "daemon off";
            matches!(rest, ["nginx" | "nginx-debug"])
                || {
                    matches!(rest, ["nginx" | "nginx-debug" | "/usr/sbin/nginx", "-g", daemon] if is_daemon(daemon))
                }
        }
        ["httpd-foreground"] => true,
        _ => false,
    };
    is_usual.then_some(web)
}

fn is_of(folder: &str, mount: &str) -> bool {
    file_system::is_within(folder, mount) || file_system::is_within(mount, folder)
}

fn is_configured(web: &WebServer, mounts: &[&str]) -> bool {
    mounts.iter().any(|mount| web.folders.iter().any(|folder| is_of(folder, mount)))
}

fn version(web: &WebServer, tag: &str) -> String {
    let first = tag.split('-').next().unwrap_or_default();
    let is_version = first.starts_with(|first: char| first.is_ascii_digit() && first != '0');
    let parts = first.split('.').count();
    let recent = match (web.name, first) {
        ("nginx", "stable") => NGINX_STABLE,
        ("nginx", _) => NGINX_MAINLINE,
        _ => APACHE,
    };
    match parts {
        3.. if is_version => first.to_owned(),
        2 if is_version && web.name == "nginx" => {
            let line = format!("{first}.");
            let found = NGINX_VERSIONS.iter().find(|version| version.starts_with(&line));
            found.map_or_else(|| format!("{first}.0"), |version| (*version).to_owned())
        }
        _ => recent.to_owned(),
    }
}

/// Whether files of its volumes configure a server that is known to read them.
pub(crate) fn is_configured_by_files(invocation: &Invocation<'_>, mounts: &[&str]) -> bool {
    web_server(invocation).is_some_and(|web| web.name == "nginx" && is_configured(web, mounts))
}

/// The nginx that a container's files configure.
pub(crate) fn nginx(invocation: &Invocation<'_>, around: Option<&Surroundings>) -> Option<NginxSite> {
    let web = web_server(invocation).filter(|web| web.name == "nginx")?;
    Some(NginxSite::read(around, version(web, images::tag(invocation.image)), web.port))
}

/// Whether files of its volumes say whether a container starts at all.
pub fn starts_by_files(invocation: &Invocation<'_>, mounts: &[&str]) -> bool {
    configured_web::is_configured(invocation, mounts)
}

/// Whether what a container serves depends on files of its volumes.
pub fn serves_volumes(invocation: &Invocation<'_>, mounts: &[&str]) -> bool {
    !mounts.is_empty()
        && (configured_web::is_configured(invocation, mounts)
            || WebPages::of(invocation, mounts).is_some_and(|pages| pages.has_volume)
            || is_configured_by_files(invocation, mounts))
}
