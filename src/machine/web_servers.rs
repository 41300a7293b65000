//! Web servers whose images serve pages of a folder.

use crate::file_system;
use crate::images;
use crate::invocation::Invocation;

/// A web server whose image welcomes whoever asks.
#[derive(Debug, PartialEq)]
pub(crate) struct WebServer {
    /// What it calls itself.
    pub(crate) name: &'static str,
    repositories: &'static [&'static str],
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
        ],
        pages: &["/", "/index.html", "/50x.html"],
        folders: &["/etc/nginx"],
        root: "/usr/share/nginx/html",
    },
    WebServer {
        name: "Apache",
        repositories: &["docker.io/library/httpd", "registry.k8s.io/e2e-test-images/httpd"],
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
}

impl WebPages {
    /// As the image comes; nothing where somebody else configures it.
    pub(crate) fn of(invocation: &Invocation<'_>, mounts: &[&str]) -> Option<WebPages> {
        let repository = images::repository(invocation.image);
        let web = WEB_SERVERS.iter().find(|web| web.repositories.contains(&&*repository))?;
        let is_plain = invocation.command.is_empty() && invocation.args.is_empty();
        let is_of = |folder: &str, mount: &str| {
            file_system::is_within(folder, mount) || file_system::is_within(mount, folder)
        };
        let is_configured = mounts.iter().any(|mount| web.folders.iter().any(|folder| is_of(folder, mount)));
        let is_hidden = mounts.iter().any(|mount| file_system::is_within(mount, web.root));
        let has_volume = mounts.iter().any(|mount| is_of(web.root, mount));
        let tag = images::tag(invocation.image).to_owned();
        (is_plain && !is_configured).then_some(WebPages { web, tag, is_hidden, has_volume })
    }

    /// As it calls itself: `nginx/1.27`.
    pub(crate) fn name(&self) -> String {
        let is_version = self.tag.starts_with(|first: char| first.is_ascii_digit());
        let version = self.tag.split('-').next().filter(|_| is_version);
        version.map_or(self.web.name.to_owned(), |version| format!("{}/{version}", self.web.name))
    }

    /// Whether the image has a page of its own there; nothing where a volume may have one.
    pub(crate) fn welcomes(&self, path: &str) -> Option<bool> {
        (!self.has_volume).then(|| self.web.pages.contains(&path))
    }
}

/// Whether a container serves files of its volumes.
pub fn serves_volumes(invocation: &Invocation<'_>, mounts: &[&str]) -> bool {
    !mounts.is_empty() && WebPages::of(invocation, mounts).is_some_and(|pages| pages.has_volume)
}
