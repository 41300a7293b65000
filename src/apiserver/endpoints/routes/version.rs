//! `/version`: which Kubernetes this is (`k8s.io/apimachinery/pkg/version`).

use component_base::build_info;
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
        VersionInfo {
            major: build_info::MAJOR.into(),
            minor: build_info::MINOR.into(),
            emulation_major: "1".into(),
            emulation_minor: "36".into(),
            min_compatibility_major: "1".into(),
            min_compatibility_minor: "35".into(),
            git_version: build_info::GIT_VERSION.into(),
            git_commit: build_info::git_commit().into(),
            git_tree_state: build_info::GIT_TREE_STATE.into(),
            build_date: build_info::build_date().into(),
            go_version: build_info::GO_VERSION.into(),
            compiler: build_info::COMPILER.into(),
            platform: build_info::platform(),
        }
    }
}
