//! Names of groups, versions, kinds and resources (`k8s.io/apimachinery/pkg/runtime/schema`).

use std::fmt;
use std::sync::Arc;

/// `apps/v1`; the core group is empty and prints as `v1` alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The version in the group.
    pub version: Arc<str>,
}

impl GroupVersion {
    /// From its two parts.
    pub fn new(group: &str, version: &str) -> GroupVersion {
        GroupVersion { group: group.into(), version: version.into() }
    }

    /// From an `apiVersion`; more than one slash is nobody's version.
    pub fn parse(api_version: &str) -> Option<GroupVersion> {
        match api_version.split_once('/') {
            None if !api_version.is_empty() => Some(GroupVersion::new("", api_version)),
            Some((group, version)) if !version.contains('/') => Some(GroupVersion::new(group, version)),
            _ => None,
        }
    }

    /// This version with a kind.
    pub fn kind(&self, kind: &str) -> GroupVersionKind {
        GroupVersionKind { group_version: self.clone(), kind: kind.into() }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            return f.write_str(&self.version);
        }
        write!(f, "{}/{}", self.group, self.version)
    }
}

/// A kind in a version of a group: what `apiVersion` and `kind` say together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The group and version.
    pub group_version: GroupVersion,
    /// The kind, as `Deployment`.
    pub kind: Arc<str>,
}

/// Upstream's `GroupVersionKind.String()`: `apps/v1, Kind=Deployment`; the core group prints as `/v1,
/// Kind=Pod`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupVersion { group, version } = &self.group_version;
        write!(f, "{group}/{version}, Kind={}", self.kind)
    }
}

/// A resource in a group, as it is named in errors: `deployments.apps`, `pods`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The plural, lower-case name.
    pub resource: Arc<str>,
}

impl GroupResource {
    /// From its two parts.
    pub fn new(group: &str, resource: &str) -> GroupResource {
        GroupResource { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            return f.write_str(&self.resource);
        }
        write!(f, "{}.{}", self.resource, self.group)
    }
}

/// The rank of a version (`version.CompareKubeAwareVersionStrings`): GA before beta before alpha, each with
/// the higher number first; what is no such version comes last.
pub fn kube_aware_rank(version: &str) -> (u8, u32, u32) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let (major, stage) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let major = major.parse().ok()?;
        match stage {
            "" => Some((3, major, 0)),
            stage => match stage.strip_prefix("beta") {
                Some(minor) => Some((2, major, minor.parse().ok()?)),
                None => Some((1, major, stage.strip_prefix("alpha")?.parse().ok()?)),
            },
        }
    };
    parse().unwrap_or_default()
}
