//! Files that well-known images bring: what is read of them most, from a container or an image volume.

use crate::agnhost::is_picture;
use crate::file_system::{File, STICKY, Tree};
use crate::image_identity::LOCALHOST;
use crate::images;

const MODE: u32 = 0o644;
/// What stands in the root of an image of BusyBox.
const OF_BUSYBOX: &[&str] =
    &["bin", "dev", "etc", "home", "lib", "lib64", "proc", "root", "sys", "tmp", "usr", "var"];
/// What stands in the root of most distributions.
const OF_MOST: &[&str] = &[
    "bin", "dev", "etc", "home", "lib", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys",
    "tmp", "usr", "var",
];

/// What `/etc/os-release` says of who made an image.
struct Distribution {
    id: &'static str,
    name: &'static str,
    home: &'static str,
}

const ALPINE: Distribution =
    Distribution { id: "alpine", name: "Alpine Linux", home: "https://alpinelinux.org/" };
const DEBIAN: Distribution =
    Distribution { id: "debian", name: "Debian GNU/Linux", home: "https://www.debian.org/" };
const UBUNTU: Distribution = Distribution { id: "ubuntu", name: "Ubuntu", home: "https://www.ubuntu.com/" };
const FEDORA: Distribution =
    Distribution { id: "fedora", name: "Fedora Linux", home: "https://fedoraproject.org/" };

/// The files of an image as far as they are known, by their paths from its root: `etc/os-release`.
pub fn files(image: &str) -> Tree {
    let mut tree = Tree::new();
    let mut add = |path: &str, text: String| tree.insert(path.to_owned(), File::new(text, MODE));
    let name = images::base_name(image);
    let tag = images::tag(image);
    if let Some(distribution) = distribution(name, tag) {
        let is_itself = distribution.id == name && tag.starts_with(|first: char| first.is_ascii_digit());
        let version = tag.split('-').next().filter(|_| is_itself);
        add("etc/os-release", distribution.os_release(version));
    }
    if is_picture(name) {
        add("data.json", format!("{{\n  \"image\": \"{name}.jpg\"\n}}\n"));
    }
    if let Some(identity) = LOCALHOST.as_ref().filter(|_| is_of_agnhost(name)) {
        tree.insert("localhost.crt".to_owned(), File::of(&identity.certificate, MODE));
        tree.insert("localhost.key".to_owned(), File::of(&identity.key, MODE));
    }
    tree
}

/// Folders that an image is known to have, by their absolute paths.
pub(crate) fn folders(image: &str) -> Tree {
    let names = match images::base_name(image) {
        name if !images::runs_a_shell(image) || name.is_empty() => &[][..],
        "busybox" => OF_BUSYBOX,
        _ => OF_MOST,
    };
    let mode = |name: &str| match name {
        "tmp" => 0o777 | STICKY,
        "root" => 0o700,
        "proc" | "sys" => 0o555,
        _ => 0o755,
    };
    names.iter().map(|name| (format!("/{name}"), File::folder(mode(name)))).collect()
}

/// agnhost's image is made from Alpine Linux, and has a certificate.
fn is_of_agnhost(name: &str) -> bool {
    name == "agnhost" || is_picture(name)
}

/// Whether an image is known to have a file at an absolute path.
pub(crate) fn is_in(image: &str, path: &str) -> bool {
    files(image).contains_key(path.trim_start_matches('/'))
}

fn distribution(name: &str, tag: &str) -> Option<&'static Distribution> {
    match name {
        "alpine" => Some(&ALPINE),
        name if is_of_agnhost(name) => Some(&ALPINE),
        "debian" => Some(&DEBIAN),
        "ubuntu" => Some(&UBUNTU),
        "fedora" => Some(&FEDORA),
        _ if tag.split(['-', '.']).any(|part| part.starts_with("alpine")) => Some(&ALPINE),
        _ => None,
    }
}

impl Distribution {
    fn os_release(&self, version: Option<&str>) -> String {
        let pretty = version.map_or(self.name.to_owned(), |version| format!("{} {version}", self.name));
        let mut lines = vec![format!("NAME=\"{}\"", self.name), format!("ID={}", self.id)];
        lines.extend(version.map(|version| format!("VERSION_ID={version}")));
        lines.push(format!("PRETTY_NAME=\"{pretty}\""));
        lines.push(format!("HOME_URL=\"{}\"", self.home));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(image: &str, path: &str) -> Option<String> {
        files(image).get(path).map(File::text)
    }

    #[test]
    fn images_say_what_they_were_made_from() {
        let of_alpine = file("alpine:3.20", "etc/os-release").unwrap();
        let lines: Vec<&str> = of_alpine.lines().collect();
        assert_eq!(lines[..3], ["NAME=\"Alpine Linux\"", "ID=alpine", "VERSION_ID=3.20"]);
        let of_nginx = file("nginx:1.27-alpine", "etc/os-release").unwrap();
        assert!(of_nginx.contains("ID=alpine") && !of_nginx.contains("VERSION_ID"), "{of_nginx}");
        assert!(file("debian:12-slim", "etc/os-release").unwrap().contains("VERSION_ID=12\n"));
        assert_eq!(file("busybox", "etc/os-release"), None, "nobody knows it for Linux in so many words");
        let picture = file("registry.k8s.io/e2e-test-images/kitten:1.9", "data.json").unwrap();
        assert_eq!(picture, "{\n  \"image\": \"kitten.jpg\"\n}\n");
    }
}
