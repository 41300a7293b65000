//! Which build of which Kubernetes a program is: said by `/version` and by the metrics of every component.

use crate::metrics::gauge;
use crate::process;

/// Kubernetes' version with ours as build metadata, as `v1.36.2+kubarium-0.1.0`.
pub const GIT_VERSION: &str = concat!("v1.36.2+kubarium-", env!("CARGO_PKG_VERSION"));
/// Of Kubernetes.
pub const MAJOR: &str = "1";
/// Of Kubernetes.
pub const MINOR: &str = "36";
/// Of the sources; whoever builds says so.
pub const GIT_TREE_STATE: &str = "clean";
/// What it was built with, in place of a version of Go.
pub const GO_VERSION: &str = "none";
/// What upstream is built with is `gc`.
pub const COMPILER: &str = "rustc";

/// The commit of the sources; empty where it is not known.
pub fn git_commit() -> &'static str {
    option_env!("KUBARIUM_GIT_COMMIT").unwrap_or_default()
}

/// When it was built; the beginning of time where it is not known.
pub fn build_date() -> &'static str {
    option_env!("KUBARIUM_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z")
}

/// The machine's architecture as Go calls it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// What it runs on, as `linux/amd64`.
pub fn platform() -> String {
    format!("{}/{}", std::env::consts::OS, architecture())
}

/// What every component of Kubernetes tells of itself: the build, and what the process costs, which is that
/// of all components where one process has them all.
pub fn render(out: &mut String) {
    let name = "kubernetes_build_info";
    let help = "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git \
        commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and \
        platform on which it is running.";
    let platform = platform();
    let facts = [
        ("build_date", build_date()),
        ("compiler", COMPILER),
        ("git_commit", git_commit()),
        ("git_tree_state", GIT_TREE_STATE),
        ("git_version", GIT_VERSION),
        ("go_version", GO_VERSION),
        ("major", MAJOR),
        ("minor", MINOR),
        ("platform", &platform),
    ];
    let values = facts.map(|(_, value)| value);
    gauge(out, (name, help), facts.map(|(label, _)| label), [(values, 1)]);
    process::render(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_tells_of_its_build_and_its_process() {
        let mut out = String::new();
        render(&mut out);
        let sample = out.lines().find(|line| line.starts_with("kubernetes_build_info{")).unwrap();
        assert!(sample.contains("git_version=\"v1.36.2+kubarium-") && sample.ends_with("\"} 1"), "{sample}");
        assert!(sample.contains("major=\"1\",minor=\"36\",platform=\""), "{sample}");
        #[cfg(target_os = "linux")]
        assert!(out.contains("\nprocess_start_time_seconds "), "{out}");
    }
}
