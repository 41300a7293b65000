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

/// Programs that a shell finds in an image: those that are not surely missing.
pub(crate) fn names(image: &str) -> BTreeSet<&'static str> {
    let all = PROGRAMS.values().flatten().copied();
    all.filter(|name| !is_missing(image, name)).collect()
}

/// Whether an image surely has no program of this name in any folder of its `PATH`. Of other images than a
/// few nobody knows what they have.
pub(crate) fn is_missing(image: &str, program: &str) -> bool {
    let repository = images::repository(image);
    let Some((library, name)) = repository.rsplit_once('/') else { return false };
    let kind = if name == "ubuntu" { "debian" } else { name };
    let is_whole = LIBRARIES.contains(&library) && !program.is_empty() && !program.contains('/');
    is_whole && PROGRAMS.get(kind).is_some_and(|programs| !programs.contains(program))
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
            ("registry.k8s.io/e2e-test-images/busybox:1.29-4", "nosuchprog", true),
            ("alpine:3.20", "apk", false),
            ("alpine", "bash", true),
            ("debian:bookworm-slim", "apt-get", false),
            ("ubuntu@sha256:12", "python3", true),
            ("my.registry/team/alpine", "nosuchprog", false),
            ("nginx", "nosuchprog", false),
            ("busybox", "/opt/own", false),
            ("busybox", "", false),
        ] {
            assert_eq!(is_missing(image, program), wanted, "{image} {program}");
        }
        assert!(PROGRAMS.values().all(|programs| programs.contains("sh")) && PROGRAMS.len() == 3);
    }
}
