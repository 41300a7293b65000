//! Images: what they are called, and what is known of the well-known ones.

use sha2::{Digest, Sha256};

/// Images whose own command is a shell.
const SHELLS: &[&str] = &["busybox", "alpine", "ubuntu", "debian", "fedora", "centos", "bash", "amazonlinux"];

/// Sizes of well-known images, in bytes.
const SIZES: &[(&str, u64)] = &[
    ("busybox", 2_167_089),
    ("alpine", 3_804_134),
    ("hello-world", 10_072),
    ("pause", 318_731),
    ("nginx", 72_324_501),
    ("redis", 52_562_417),
    ("httpd", 58_886_180),
    ("postgres", 157_012_853),
    ("mysql", 233_891_041),
    ("agnhost", 55_446_186),
];

/// `registry.k8s.io/e2e/agnhost:2.1` is `agnhost`.
pub fn base_name(image: &str) -> &str {
    let path = image.split('@').next().unwrap_or(image);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(':').next().unwrap_or(last)
}

/// Whether the image's own command is a shell, which ends when nobody types.
pub fn runs_a_shell(image: &str) -> bool {
    SHELLS.contains(&base_name(image))
}

/// The shell that the image runs by itself.
pub fn shell(image: &str) -> Option<&'static str> {
    match base_name(image) {
        "busybox" | "alpine" => Some("sh"),
        _ if runs_a_shell(image) => Some("bash"),
        _ => None,
    }
}

/// The full name, as containerd gives it: `nginx` is `docker.io/library/nginx:latest`.
pub fn reference(image: &str) -> String {
    let repository = repository(image);
    match suffix(image) {
        "" => format!("{repository}:latest"),
        suffix => format!("{repository}{suffix}"),
    }
}

/// What stands behind the colon: `1.25` of `nginx:1.25`; empty where there is nothing.
pub fn tag(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split_once(':').map_or("", |(_, tag)| tag)
}

/// The image's id: its repository and a digest, the same for the same name everywhere.
pub fn image_id(image: &str) -> String {
    match image.split_once('@') {
        Some((_, digest)) => format!("{}@{digest}", repository(image)),
        None => format!("{}@sha256:{:x}", repository(image), Sha256::digest(reference(image).as_bytes())),
    }
}

/// The image's size in bytes: of a well-known one nearly its real size, else one drawn from its name.
pub fn size_bytes(image: &str) -> u64 {
    let name = base_name(image);
    let known = SIZES.iter().find(|(known, _)| *known == name).map(|(_, size)| *size);
    known.unwrap_or_else(|| {
        let digest = Sha256::digest(name.as_bytes());
        20_000_000 + u64::from(u32::from_be_bytes([0, digest[1], digest[2], digest[3]])) * 8
    })
}

/// `:tag`, `@digest`, both or nothing.
fn suffix(image: &str) -> &str {
    let last = image.rfind('/').map_or(0, |at| at + 1);
    image[last..].find([':', '@']).map_or("", |at| &image[last + at..])
}

/// The full name without tag and digest.
pub fn repository(image: &str) -> String {
    let name = &image[..image.len() - suffix(image).len()];
    match name.split_once('/') {
        None => format!("docker.io/library/{name}"),
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => name.to_owned(),
        Some(_) => format!("docker.io/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_containerds() {
        let cases = [
            ("nginx", "docker.io/library/nginx:latest"),
            ("nginx:1.25", "docker.io/library/nginx:1.25"),
            ("bitnami/redis", "docker.io/bitnami/redis:latest"),
            ("localhost:5000/a", "localhost:5000/a:latest"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
            ("a@sha256:12", "docker.io/library/a@sha256:12"),
        ];
        for (image, full) in cases {
            assert_eq!(reference(image), full);
        }
        assert_eq!(base_name("registry.k8s.io/e2e/agnhost:2.1@sha256:1"), "agnhost");
        assert!(image_id("nginx").starts_with("docker.io/library/nginx@sha256:"));
        assert_eq!(image_id("nginx"), image_id("nginx:latest"));
    }
}
