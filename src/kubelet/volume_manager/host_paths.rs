//! Which paths a simulated node has, as far as volumes of the kind `hostPath` ask (`pkg/volume/hostpath`):
//! those that every node has, and those that pods of it have made.

use std::collections::BTreeMap;
use std::sync::Arc;

use machine::file_system;
use sync::Mutex;

/// So many paths are remembered that volumes made; of more, those that hold no file are not.
const MAX_MADE: usize = 10_000;

/// Folders that every node has.
const FOLDERS: &[&str] = &[
    "/",
    "/etc",
    "/etc/ca-certificates",
    "/etc/cni",
    "/etc/cni/net.d",
    "/etc/containerd",
    "/etc/kubernetes",
    "/etc/kubernetes/manifests",
    "/etc/kubernetes/pki",
    "/etc/ssl",
    "/etc/ssl/certs",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/opt/cni",
    "/opt/cni/bin",
    "/root",
    "/run",
    "/run/containerd",
    "/srv",
    "/tmp",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet/plugins",
    "/var/lib/kubelet/plugins_registry",
    "/var/lib/kubelet/pods",
    "/var/log",
    "/var/log/containers",
    "/var/log/pods",
    "/var/spool",
    "/var/tmp",
];
/// Files that every node has, beside those whose content is known.
const NODE_FILES: &[&str] = &[
    "/etc/group",
    "/etc/localtime",
    "/etc/machine-id",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/ssl/certs/ca-certificates.crt",
    "/var/lib/kubelet/config.yaml",
];
const SOCKETS: &[&str] = &["/run/containerd/containerd.sock", "/var/lib/kubelet/device-plugins/kubelet.sock"];
/// Of the system: nobody knows what is in them, so what is asked for is taken to be there.
const SYSTEM_FOLDERS: &[&str] =
    &["/bin", "/boot", "/dev", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"];

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodePathKind {
    Folder,
    File,
    Socket,
    BlockDevice,
}

/// What volumes made by being mounted, by their paths. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(super) struct MadePaths(Arc<Mutex<BTreeMap<String, NodePathKind>>>);

impl MadePaths {
    /// Mounts a path of the node as a volume of such a type does: one that makes what is not there makes it.
    /// Says why not, where the path is not what the type says. `written` is what a path is by its files.
    pub(super) fn mount(
        &self,
        given: &str,
        path_type: &str,
        written: impl Fn(&str) -> Option<NodePathKind>,
    ) -> Option<String> {
        let path = without_link(file_system::absolute("/", given));
        let kind = self.kind_of(&path, written);
        let (wanted, name) = match path_type {
            "Directory" => (Some(NodePathKind::Folder), "directory"),
            "File" => (Some(NodePathKind::File), "file"),
            "Socket" => (Some(NodePathKind::Socket), "socket file"),
            "CharDevice" => (None, "character device"),
            "BlockDevice" => (Some(NodePathKind::BlockDevice), "block device"),
            _ => {
                let made =
                    if path_type == "FileOrCreate" { NodePathKind::File } else { NodePathKind::Folder };
                self.add(path, kind.unwrap_or(made));
                return None;
            }
        };
        let is_it = match kind {
            Some(kind) => wanted == Some(kind),
            None => is_of_system(&path),
        };
        (!is_it).then(|| format!("hostPath type check failed: {given} is not a {name}"))
    }

    /// What a path is, as far as it is known.
    pub(super) fn kind_of(
        &self,
        path: &str,
        written: impl Fn(&str) -> Option<NodePathKind>,
    ) -> Option<NodePathKind> {
        usual_kind(path).or_else(|| written(path)).or_else(|| self.kind(path))
    }

    fn add(&self, path: String, kind: NodePathKind) {
        let mut made = self.0.lock();
        if made.len() < MAX_MADE {
            made.entry(path).or_insert(kind);
        }
    }

    /// A folder is also what leads to one that was made.
    fn kind(&self, path: &str) -> Option<NodePathKind> {
        let made = self.0.lock();
        let (found, kind) = first_within(&made, path)?;
        Some(if found == path { *kind } else { NodePathKind::Folder })
    }
}

/// Whether whatever is asked for there is taken to be there.
pub(super) fn is_of_system(path: &str) -> bool {
    SYSTEM_FOLDERS.iter().any(|folder| file_system::is_within(folder, path))
}

/// What is at a path, else the first below it.
pub(super) fn first_within<'a, T>(all: &'a BTreeMap<String, T>, path: &str) -> Option<(&'a String, &'a T)> {
    all.range(path.to_owned()..).find(|(found, _)| file_system::is_within(path, found))
}

/// Nothing for a path that not every node has.
fn usual_kind(path: &str) -> Option<NodePathKind> {
    let usual = [
        (FOLDERS, NodePathKind::Folder),
        (SYSTEM_FOLDERS, NodePathKind::Folder),
        (NODE_FILES, NodePathKind::File),
        (SOCKETS, NodePathKind::Socket),
    ];
    usual.into_iter().find(|(paths, _)| paths.contains(&path)).map(|(_, kind)| kind)
}

/// `/var/run` is `/run`.
fn without_link(path: String) -> String {
    match path.strip_prefix("/var/run") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/run{rest}"),
        _ => path,
    }
}
