//! The order of groups and versions in discovery (`aggregator.apiVersionPriorities`,
//! `version.CompareKubeAwareVersionStrings`): it decides what a bare name like `events` means to kubectl.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::aggregator::Remote;
use crate::aggregator::priorities::group_priority;
use apimachinery::gvk::kube_aware_rank as rank;
use apis::kind::Kind;
use apis::scheme::Scheme;

/// Kinds by version.
type KindsByVersion = BTreeMap<Arc<str>, Vec<Arc<Kind>>>;

/// A group with its versions, the preferred one first.
pub(crate) struct Group {
    /// Empty for the core group.
    pub name: Arc<str>,
    /// With their kinds, by plural.
    pub versions: Vec<(Arc<str>, Vec<Arc<Kind>>)>,
    /// The versions that other servers have.
    pub remotes: Vec<Arc<Remote>>,
}

/// All that is served here and, through the aggregator, by others.
pub(crate) fn with_remotes(scheme: &Scheme, remotes: Vec<Arc<Remote>>) -> Vec<Group> {
    let mut all = groups(scheme);
    for remote in remotes {
        match all.iter_mut().find(|group| *group.name == *remote.group) {
            Some(group) => group.remotes.push(remote),
            None => {
                let priority = remote.group_priority;
                let at = all.iter().position(|group| group_priority(&group.name) < priority);
                let name = remote.group.as_str().into();
                let group = Group { name, versions: vec![], remotes: vec![remote] };
                all.insert(at.unwrap_or(all.len()), group);
            }
        }
    }
    all
}

/// All that is served here, in order; groups of custom kinds come last, by name.
pub(crate) fn groups(scheme: &Scheme) -> Vec<Group> {
    let mut groups: BTreeMap<Arc<str>, KindsByVersion> = BTreeMap::new();
    for kind in scheme.all() {
        let version = &kind.group_version;
        let group = groups.entry(version.group.clone()).or_default();
        group.entry(version.version.clone()).or_default().push(kind);
    }
    let mut groups: Vec<Group> =
        groups.into_iter().map(|(name, versions)| Group::new(name, versions)).collect();
    groups.sort_by_key(|group| Reverse(group_priority(&group.name)));
    groups
}

impl Group {
    fn new(name: Arc<str>, versions: KindsByVersion) -> Group {
        let mut versions: Vec<_> = versions.into_iter().collect();
        versions.sort_by_key(|(version, _)| Reverse(rank(version)));
        Group { name, versions, remotes: vec![] }
    }

    /// The names of all versions, the preferred one first.
    pub(super) fn versions(&self) -> Vec<Arc<str>> {
        let own = self.versions.iter().map(|(name, _)| name.clone());
        let remote = self.remotes.iter().map(|remote| Arc::from(remote.version.as_str()));
        let mut all: Vec<Arc<str>> = own.chain(remote).collect();
        all.sort_by_key(|version| Reverse(rank(version)));
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_upstream() {
        let mut versions = ["v1alpha1", "v1", "v2beta1", "v10", "foo", "v2beta2", "v2"];
        versions.sort_by_key(|version| Reverse(rank(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha1", "foo"]);
    }

    #[test]
    fn core_comes_first_and_autoscaling_prefers_v2() {
        let groups = groups(&Scheme::builtin());
        let names: Vec<&str> = groups.iter().map(|group| &*group.name).collect();
        assert_eq!(names[..3], ["", "apiregistration.k8s.io", "apps"]);
        let autoscaling = groups.iter().find(|group| &*group.name == "autoscaling").unwrap();
        assert_eq!(&*autoscaling.versions[0].0, "v2");
    }
}
