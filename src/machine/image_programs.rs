//! Programs that well-known images have, and so those that they surely do not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::images;

/// Sections by their names, and the programs in each.
static PROGRAMS: LazyLock<BTreeMap<&'static str, BTreeSet<&'static str>>> = LazyLock::new(|| {
    let text = include_str!("image_programs.txt");
    let sections = text.split("\n\n").filter(|section| !section.starts_with('#'));
    let named = |section: &'static str| {
        let (name, programs) = section.split_once('\n')?;
        Some((name, programs.split_whitespace().collect()))
    };
    sections.filter_map(named).collect()
});

/// Where images stand that are what they are called.
const LIBRARIES: &[&str] = &[
    "docker.io/library",
    "public.ecr.aws/docker/library",
    "mirror.gcr.io/library",
    "registry.k8s.io/e2e-test-images",
];

/// Where an image has its programs.
pub(crate) const FOLDERS: [&str; 6] =
    ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// Programs that a shell finds in an image: those that are not surely missing.
pub(crate) fn names(image: &str) -> BTreeSet<&'static str> {
    let all = PROGRAMS.values().flatten().copied();
    all.filter(|name| !is_missing(image, name)).collect()
}

/// Whether an image surely has no program of this name in any folder of its `PATH`. Of other images than a
/// few nobody knows what they have, nor what is in other folders.
pub(crate) fn is_missing(image: &str, program: &str) -> bool {
    let (folder, name) = program.rsplit_once('/').unwrap_or((FOLDERS[0], program));
    if name.is_empty() || !FOLDERS.contains(&folder) {
        return false;
    }
    let sections = sections(image);
    let has = |section: &&str| PROGRAMS.get(section).is_some_and(|programs| programs.contains(name));
    !sections.is_empty() && !sections.iter().any(has)
}

/// The sections of an image of which everything is known; of any other none.
fn sections(image: &str) -> &'static [&'static str] {
    let repository = images::repository(image);
    match repository.rsplit_once('/').filter(|(library, _)| LIBRARIES.contains(library)) {
        Some((_, "busybox")) => &["busybox"],
        Some((_, "alpine")) => &["alpine"],
        Some((_, "bash")) => &["alpine", "bash"],
        Some((_, "debian")) => &["debian"],
        Some((_, "ubuntu")) => &["debian", "ubuntu"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_images_it_is_known_what_they_have() {
        for (image, program, wanted) in [
            ("busybox", "nosuchprog", true),
            ("busybox:1.36", "httpd", false),
            ("busybox", "apk", true),
            ("busybox", "curl", true),
            ("busybox", "/usr/bin/curl", true),
            ("busybox", "/bin/wget", false),
            ("registry.k8s.io/e2e-test-images/busybox:1.29-4", "nosuchprog", true),
            ("alpine:3.20", "apk", false),
            ("alpine", "bash", true),
            ("bash:5", "bash", false),
            ("bash:5", "curl", true),
            // They are packages of their own.
            ("alpine", "openssl", true),
            ("alpine", "httpd", true),
            ("alpine", "ssl_client", false),
            ("debian:bookworm-slim", "apt-get", false),
            ("debian:bookworm-slim", "ps", true),
            ("ubuntu", "ps", false),
            ("ubuntu@sha256:12", "python3", true),
            ("my.registry/team/alpine", "nosuchprog", false),
            ("nginx", "nosuchprog", false),
            ("busybox", "/opt/own", false),
            ("busybox", "", false),
        ] {
            assert_eq!(is_missing(image, program), wanted, "{image} {program}");
        }
        let images = ["busybox", "alpine", "bash", "debian", "ubuntu"];
        assert!(PROGRAMS.keys().all(|section| images.contains(section)) && PROGRAMS.len() == images.len());
        assert!(images.iter().all(|image| !is_missing(image, "sh")));
    }
}
