//! Another folder as `/` (`chroot`, `nsenter`): how it is entered and left.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::other_root::{OtherRoot, RootFolder, inner};
use super::player::Player;
use crate::file_system::{self, File, MountedVolume, View};

/// So deep roots are within each other.
const MAX_ROOTS: usize = 8;
/// Where a process shows its capabilities, and the one by which mounts are made (`CAP_SYS_ADMIN`).
const STATUS: &str = "/proc/self/status";
const SYS_ADMIN: u32 = 21;

impl Player<'_> {
    /// Where volumes are.
    pub(crate) fn mounts(&self) -> &[MountedVolume] {
        self.roots.within.last().map_or(&self.around.mounts, |root| &root.mounts)
    }

    /// What they show.
    pub(super) fn views(&self) -> &[View] {
        self.roots.within.last().map_or(&self.around.views, |root| &root.views)
    }

    /// Whether it may make mounts and enter the namespaces of others.
    pub(crate) fn is_admin(&self) -> bool {
        let status = self.around.views.last().and_then(|view| view.tree.get(STATUS)).map(File::text);
        let capabilities = status.as_deref().unwrap_or_default().lines();
        let effective = capabilities.filter_map(|line| line.strip_prefix("CapEff:")).next();
        let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        effective.is_some_and(|set| set >> SYS_ADMIN & 1 == 1)
    }

    /// Whether there is a folder, be it empty or not.
    pub(crate) fn has_folder(&mut self, path: &str) -> bool {
        self.file(path).is_some_and(|file| file.is_folder) || self.is_folder(path)
    }

    /// A folder is `/` from now on, and where it is.
    pub(crate) fn enter_root(&mut self, folder: &RootFolder) {
        if self.roots.within.len() == MAX_ROOTS {
            return;
        }
        let path = self.real_path(&folder.path);
        let own = file_system::mount_of(self.mounts(), &path);
        let own = own.map(|mount| MountedVolume {
            path: "/".into(),
            is_read_only: mount.is_read_only && !folder.is_of_node,
            ..mount.clone()
        });
        let below = self.mounts().iter().filter(|mount| !mount.is_at(&path));
        let below = below.filter(|_| !folder.is_of_node);
        let below = below.filter_map(|mount| {
            inner(&path, &mount.path).map(|path| MountedVolume { path, ..mount.clone() })
        });
        let mounts = own.into_iter().chain(below).collect();
        let views = self.views().iter().map(|view| {
            let inside = view.tree.iter().filter_map(|(at, file)| Some((inner(&path, at)?, file.clone())));
            View { after: view.after, tree: Arc::new(inside.collect()) }
        });
        let views: Vec<View> = views.collect();
        self.spend(views.iter().map(|view| view.tree.len()).sum::<usize>() + self.written.len());
        let mut outside = std::mem::take(&mut self.written);
        outside.retain(|at, file| match inner(&path, at) {
            Some(at) => {
                self.written.insert(at, file.take());
                false
            }
            None => true,
        });
        self.roots.within.push(OtherRoot {
            folder: RootFolder { path, is_of_node: folder.is_of_node },
            mounts,
            views,
            outside,
        });
        self.folder = "/".into();
    }

    /// The root before is `/` again.
    pub(crate) fn leave_root(&mut self) {
        let Some(root) = self.roots.within.pop() else { return };
        let inside = std::mem::replace(&mut self.written, root.outside);
        let prefix = root.folder.path.trim_end_matches('/');
        self.written.extend(inside.into_iter().map(|(at, file)| (format!("{prefix}{at}"), file)));
    }

    /// The container's own root is `/`.
    pub(crate) fn leave_roots(&mut self) {
        while !self.roots.within.is_empty() {
            self.leave_root();
        }
    }

    /// The folders that are `/`, the outermost first.
    pub(crate) fn root_folders(&self) -> Vec<RootFolder> {
        self.roots.within.iter().map(|root| root.folder.clone()).collect()
    }

    /// All that was written, by paths of the container.
    pub(super) fn all_written(&self) -> BTreeMap<String, Option<File>> {
        let mut written = self.written.clone();
        for root in self.roots.within.iter().rev() {
            let prefix = root.folder.path.trim_end_matches('/');
            let inside = written.into_iter().map(|(at, file)| (format!("{prefix}{at}"), file));
            written = root.outside.clone().into_iter().chain(inside).collect();
        }
        written
    }

    /// Takes away what was written at a path of the container: that, and where it is now.
    pub(super) fn forget_written(&mut self, path: &str) -> Option<(String, Option<File>)> {
        let mut path = path.to_owned();
        for root in &mut self.roots.within {
            match inner(&root.folder.path, &path) {
                Some(inside) => path = inside,
                None => return root.outside.remove_entry(&path),
            }
        }
        self.written.remove_entry(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surroundings::{Surroundings, kept_mount};
    use std::time::Duration;

    #[test]
    fn what_is_written_in_another_root_is_where_that_is() {
        let tree = ["/host/a", "/host/b/c", "/own"].map(|path| (path.to_owned(), File::new(path, 0o644)));
        let view = View { after: Duration::ZERO, tree: Arc::new(tree.into()) };
        let read_only = MountedVolume { is_read_only: true, ..kept_mount("/host") };
        let mounts = vec![read_only, kept_mount("/host/b/in")];
        let around = Surroundings { mounts, views: vec![view], ..Surroundings::default() };
        let mut player = Player::new(&around, None, vec![]);
        player.write_file("/x", vec![1]).unwrap();
        player.enter_root(&RootFolder { path: "/host".into(), is_of_node: true });
        assert!(player.file("/a").is_some() && player.file("/own").is_none());
        player.write_file("/b/d", vec![2]).unwrap();
        player.enter_root(&RootFolder { path: "b".into(), is_of_node: false });
        assert!(player.file("/c").is_some() && player.file("/d").is_some());
        player.write_file("/e", vec![3]).unwrap();
        let all = player.all_written();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["/host/b/d", "/host/b/e", "/x"]);
        assert_eq!(player.forget_written("/host/b/e").unwrap().0, "/e");
        assert_eq!(player.forget_written("/x").unwrap().0, "/x");
        player.leave_roots();
        assert_eq!(player.written.keys().collect::<Vec<_>>(), ["/host/b/d"]);
        assert_eq!(player.write_file("/host/y", vec![]), Err("Read-only file system"));
    }
}
