//! A folder that is `/` in place of the container's own: what is seen there, and what was written before.

use std::collections::BTreeMap;

use crate::file_system::{self, File, MountedVolume, View};

/// A folder that is to be `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootFolder {
    /// In the root before it.
    pub(crate) path: String,
    /// It is that of the node: what its volume is to the container counts no more.
    pub(crate) is_of_node: bool,
}

/// The folders that are `/` in place of the container's own, each in the one before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherRoots {
    /// After `chroot`, whether it is known what is there or not.
    pub(crate) is_entered: bool,
    pub(crate) within: Vec<OtherRoot>,
}

/// A folder that is `/`.
#[derive(Clone, Debug)]
pub(crate) struct OtherRoot {
    pub(super) folder: RootFolder,
    pub(super) mounts: Vec<MountedVolume>,
    pub(super) views: Vec<View>,
    /// What was written elsewhere, by paths of the root before it.
    pub(super) outside: BTreeMap<String, Option<File>>,
}

/// A path below a folder, from there.
pub(super) fn inner(folder: &str, path: &str) -> Option<String> {
    let is_inside = file_system::is_within(folder, path);
    is_inside.then(|| file_system::absolute("/", &path[folder.trim_end_matches('/').len()..]))
}
