//! `/version`: which Kubernetes this is (`k8s.io/apimachinery/pkg/version`).

use serde::Serialize;

/// `version.Info`
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionInfo {
    /// As `1`.
    pub major: String,
    /// As `36`.
    pub minor: String,
    /// The version whose behaviour it shows: its own.
    pub emulation_major: String,
    /// As `36`.
    pub emulation_minor: String,
    /// The oldest that its peers may be of: one minor version back.
    pub min_compatibility_major: String,
    /// As `35`.
    pub min_compatibility_minor: String,
    /// As `v1.36.2+kubarium-0.1.0`: Kubernetes' version with ours as build metadata.
    pub git_version: String,
    /// Of our sources; empty where it is not known.
    pub git_commit: String,
    /// `clean`
    pub git_tree_state: String,
    /// When it was built.
    pub build_date: String,
    /// What it was built with.
    pub go_version: String,
    /// As `gc`, upstream; ours is `rustc`.
    pub compiler: String,
    /// As `linux/amd64`.
    pub platform: String,
}

impl Default for VersionInfo {
    fn default() -> VersionInfo {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        VersionInfo {
            major: "1".into(),
            minor: "36".into(),
            emulation_major: "1".into(),
            emulation_minor: "36".into(),
            min_compatibility_major: "1".into(),
            min_compatibility_minor: "35".into(),
            git_version: concat!("v1.36.2+kubarium-", env!("CARGO_PKG_VERSION")).into(),
            git_commit: option_env!("KUBARIUM_GIT_COMMIT").unwrap_or_default().into(),
            git_tree_state: "clean".into(),
            build_date: option_env!("KUBARIUM_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z").into(),
            go_version: "none".into(),
            compiler: "rustc".into(),
            platform: format!("{}/{architecture}", std::env::consts::OS),
        }
    }
}
