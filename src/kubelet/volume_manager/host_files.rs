//! The files of a simulated node that its pods share by `hostPath`: in memory, and never those of the
//! machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::claimed_files::ClaimedFiles;
use super::host_paths::{MadePaths, NodePathKind, first_within, is_of_system};
use machine::bounds::{MAX_FILE_BYTES, MAX_FILES};
use machine::file_system::Left;
use machine::file_system::{self, File};
use sync::{Mutex, MutexGuard};

/// The files of one volume by their paths in it.
pub type Files = BTreeMap<String, File>;

/// So much more than the containers of one pod may leave fits on a node. What does not fit is lost, as on
/// a disk that is full; a container that sees so much is stopped when it writes more.
const PODS_ON_A_NODE: usize = 8;

/// Before the name of a PersistentVolume that is no folder of a node: no clean path begins so.
pub const CLAIMED: &str = "//";
/// Of the node's own files.
const NODE_FILE_MODE: u32 = 0o644;
/// What `/etc/hosts` of a node of kind begins with.
const NODE_HOSTS: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n\
     ff00::0\tip6-mcastprefix\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n";

/// The files of a node by their absolute paths. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct HostFiles {
    files: Arc<Mutex<Files>>,
    made: MadePaths,
}

/// What containers wrote into the volumes of a pod, and its node's files.
#[derive(Clone, Debug, Default)]
pub struct WrittenFiles {
    /// By the volumes' names.
    volumes: BTreeMap<String, Files>,
    host: HostFiles,
    claimed: ClaimedFiles,
}

impl HostFiles {
    /// Those that a node has from the beginning: its own `/etc/hosts` and `/etc/hostname`.
    pub fn of_node(name: &str, addresses: &[String]) -> HostFiles {
        let mut hosts = NODE_HOSTS.to_owned();
        addresses.iter().for_each(|address| hosts.push_str(&format!("{address}\t{name}\n")));
        let files = [("/etc/hosts", hosts), ("/etc/hostname", format!("{name}\n"))];
        let files = files.map(|(path, text)| (path.to_owned(), File::new(text, NODE_FILE_MODE)));
        HostFiles { files: Arc::new(Mutex::new(files.into())), made: MadePaths::default() }
    }

    /// Mounts a path of the node as a volume of such a type does. Says why not, where it is something else.
    pub(crate) fn mount(&self, path: &str, path_type: &str) -> Option<String> {
        self.made.mount(path, path_type, |path| self.written_kind(path))
    }

    /// What keeps a path from being a local volume: what fails (`GetFileType`, `MapBlockVolume`), and why.
    pub(super) fn lacks_local(&self, path: &str, is_block: bool) -> Option<(&'static str, String)> {
        let kind = self.made.kind_of(&self.real(path), |path| self.written_kind(path));
        match (kind, is_block) {
            (None, _) if is_of_system(path) => None,
            (None, false) => {
                Some(("MountVolume.NewMounter initialization", format!("path {path:?} does not exist")))
            }
            (None, true) => {
                Some(("MapVolume.EvalHostSymlinks", format!("lstat {path}: no such file or directory")))
            }
            (Some(NodePathKind::Folder | NodePathKind::BlockDevice), false) => None,
            (Some(NodePathKind::File | NodePathKind::BlockDevice), true) => None,
            (Some(_), false) => {
                let why = "only directory and block device are supported".to_owned();
                Some(("MountVolume.NewMounter initialization", why))
            }
            (Some(_), true) => {
                let why = format!("blkUtil.MapDevice failed. devicePath: {path}: is not a block device");
                Some(("MapVolume.MapBlockVolume", why))
            }
        }
    }

    /// All below a folder is that group's from now on (`SetVolumeOwnership`).
    pub(super) fn give(&self, folder: &str, group: i64) {
        let folder = self.real(folder);
        let mut files = self.lock();
        let below = files.iter_mut().filter(|(path, _)| file_system::is_within(&folder, path));
        below.filter_map(|(_, file)| file.stamp.as_mut()).for_each(|stamp| stamp.group = group);
    }

    /// Whether there is anything at a path.
    fn is_there(&self, path: &str) -> bool {
        let path = self.real(path);
        is_of_system(&path) || self.made.kind_of(&path, |path| self.written_kind(path)).is_some()
    }

    /// Where a path leads by the links that pods have made.
    fn real(&self, path: &str) -> String {
        let files = self.lock();
        file_system::followed(file_system::absolute("/", path), |path| files.get(path))
    }

    /// What a path is by what was written there, or below it.
    fn written_kind(&self, path: &str) -> Option<NodePathKind> {
        let path = self.real(path);
        let files = self.lock();
        let (found, file) = first_within(&files, &path)?;
        Some(match file {
            file if *found != path || file.is_folder => NodePathKind::Folder,
            file if file.is_block_device() => NodePathKind::BlockDevice,
            _ => NodePathKind::File,
        })
    }

    /// All below a folder, by their paths in it.
    fn below(&self, folder: &str) -> Files {
        let folder = self.real(folder);
        let prefix = folder.trim_end_matches('/');
        let files = self.lock();
        let inside = files.range(prefix.to_owned()..).take_while(|(path, _)| path.starts_with(prefix));
        let inside = inside.filter(|(path, _)| file_system::is_within(prefix, path));
        let inner = |path: &str| path[prefix.len()..].trim_start_matches('/').to_owned();
        inside.map(|(path, file)| (inner(path), file.clone())).collect()
    }

    fn put(&self, path: String, file: Option<File>) {
        let path = match path.rsplit_once('/') {
            Some((above, name)) => file_system::absolute(&self.real(above), name),
            None => path,
        };
        put(&mut self.lock(), path, file, PODS_ON_A_NODE);
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock()
    }
}

impl WrittenFiles {
    /// Nothing yet, on a node of its own.
    pub fn new() -> WrittenFiles {
        WrittenFiles::default()
    }

    /// From now on on this node, in this cluster.
    pub fn set_host(&mut self, host: &HostFiles, claimed: &ClaimedFiles) {
        self.host = host.clone();
        self.claimed = claimed.clone();
    }

    /// What is in a volume; the name of one that is the node's is its path there, and that of one behind a
    /// claim begins with [`CLAIMED`].
    pub fn files(&self, volume: &str) -> Files {
        if let Some(volume) = volume.strip_prefix(CLAIMED) {
            self.claimed.files(volume)
        } else if volume.starts_with('/') {
            self.host.below(volume)
        } else {
            self.volumes.get(volume).cloned().unwrap_or_default()
        }
    }

    /// Whether a node has anything at a path.
    pub(super) fn is_on_node(&self, path: &str) -> bool {
        self.host.is_there(path)
    }

    /// Where a volume that is the node's is there, when its own path leads elsewhere; nothing of others.
    pub(super) fn folder_on_node(&self, volume: &str) -> Option<String> {
        let is_of_node = volume.starts_with('/') && !volume.starts_with(CLAIMED);
        is_of_node.then(|| self.host.real(volume))
    }

    /// Notes what a container left.
    pub fn keep(&mut self, left: Vec<Left>) {
        for Left { volume, path, file } in left {
            if let Some(volume) = volume.strip_prefix(CLAIMED) {
                self.claimed.put(volume, path, file)
            } else if volume.starts_with('/') {
                self.host.put(file_system::absolute(&self.host.real(&volume), &path), file)
            } else {
                put(self.volumes.entry(volume).or_default(), path, file, 1)
            }
        }
    }
}

/// As long as there is room for `times` what the containers of a pod may leave.
fn put(files: &mut Files, path: String, file: Option<File>, times: usize) {
    let Some(file) = file else { return drop(files.remove(&path)) };
    let others = files.iter().filter(|(other, _)| **other != path);
    let bytes: usize = others.map(|(path, file)| path.len() + file.content.len()).sum();
    // One container more than its bound is what the last one wrote.
    let is_full = files.len() > times * (MAX_FILES + 1) || bytes > times * MAX_FILE_BYTES;
    if !is_full {
        files.insert(path, file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(volume: &str, path: &str, text: Option<&str>) -> Vec<Left> {
        let file = text.map(|text| File::new(text.as_bytes(), 0o644));
        vec![Left { volume: volume.into(), path: path.into(), file }]
    }

    #[test]
    fn a_node_has_files_of_its_own() {
        let mut pod = WrittenFiles::new();
        pod.set_host(&HostFiles::of_node("node-1", &["172.18.0.2".into()]), &ClaimedFiles::default());
        let hosts = pod.files("/etc/hosts")[""].text();
        assert!(hosts.starts_with("127.0.0.1\tlocalhost\n") && hosts.ends_with("\n172.18.0.2\tnode-1\n"));
        assert_eq!(pod.files("/etc").into_keys().collect::<Vec<_>>(), ["hostname", "hosts"]);
    }

    #[test]
    fn pods_of_a_node_share_its_files() {
        let node = HostFiles::default();
        let mut pods = [WrittenFiles::new(), WrittenFiles::new(), WrittenFiles::new()];
        let claimed = ClaimedFiles::default();
        pods[..2].iter_mut().for_each(|pod| pod.set_host(&node, &claimed));
        pods[2].set_host(&HostFiles::default(), &claimed);
        pods[0].keep(left("/data", "a/b", Some("1")));
        pods[0].keep(left("/database", "c", Some("2")));
        pods[0].keep(left("own", "d", Some("3")));
        let seen = |pod: &WrittenFiles, volume: &str| pod.files(volume).into_keys().collect::<Vec<_>>();
        assert_eq!(seen(&pods[1], "/data"), ["a/b"]);
        assert_eq!(seen(&pods[1], "/data/a/"), ["b"]);
        assert_eq!(seen(&pods[1], "/data/a/b"), [""]);
        assert_eq!(seen(&pods[1], "/"), ["data/a/b", "database/c"]);
        assert_eq!((seen(&pods[0], "own").len(), seen(&pods[1], "own").len()), (1, 0));
        assert!(seen(&pods[2], "/data").is_empty(), "another node's");
        pods[0].keep(left("//pv", "e", Some("4")));
        assert_eq!(seen(&pods[2], "//pv"), ["e"]);
        assert!(seen(&pods[1], "/pv").is_empty());
        pods[1].keep(left("/data", "a/b", None));
        assert!(seen(&pods[0], "/data").is_empty());
    }

    #[test]
    fn links_of_a_node_are_followed() {
        let node = HostFiles::default();
        let mut pod = WrittenFiles::new();
        pod.set_host(&node, &ClaimedFiles::default());
        let link =
            |path: &str, to: &str| Left { volume: "/".into(), path: path.into(), file: Some(File::link(to)) };
        pod.keep(vec![link("tmp/a", "/data"), link("tmp/b", "a/in")]);
        pod.keep(left("/tmp/a", "in/c", Some("1")));
        pod.keep(left("/tmp/b", "d", Some("2")));
        assert_eq!(pod.files("/data/in").into_keys().collect::<Vec<_>>(), ["c", "d"]);
        assert_eq!(pod.files("/tmp/b").into_keys().collect::<Vec<_>>(), ["c", "d"]);
        assert_eq!(pod.folder_on_node("/tmp/b").as_deref(), Some("/data/in"));
        assert_eq!((node.mount("/tmp/b", "Directory"), pod.folder_on_node("//pv")), (None, None));
    }

    #[test]
    fn what_does_not_fit_on_a_node_is_lost() {
        let (mut pod, text) = (WrittenFiles::new(), "a".repeat(MAX_FILE_BYTES));
        for at in 0..20 {
            pod.keep(left("/data", &at.to_string(), Some(&text)));
            pod.keep(left("own", &at.to_string(), Some(&text)));
        }
        assert_eq!((pod.files("/data").len(), pod.files("own").len()), (PODS_ON_A_NODE, 1));
        (0..9 * MAX_FILES).for_each(|at| pod.keep(left("/data", &format!("b{at}"), Some(""))));
        assert!(pod.files("/data").len() <= PODS_ON_A_NODE * (MAX_FILES + 2));
    }

    #[test]
    fn a_path_is_what_its_volume_says_or_is_not_mounted() {
        let node = HostFiles::of_node("node-1", &["172.18.0.2".into()]);
        let why = |path: &str, path_type: &str| node.mount(path, path_type);
        for (path, path_type) in [
            ("/", "Directory"),
            ("/var/log", "Directory"),
            ("/var/run", "Directory"),
            ("/etc/hosts", "File"),
            ("/etc/resolv.conf", "File"),
            ("/var/run/containerd/containerd.sock", "Socket"),
            ("/dev/net/tun", "CharDevice"),
            ("/lib/modules", "Directory"),
        ] {
            assert_eq!(why(path, path_type), None, "{path} {path_type}");
        }
        for (path, path_type, name) in [
            ("/doesnotexist", "Directory", "directory"),
            ("/doesnotexist/", "File", "file"),
            ("/var/log", "File", "file"),
            ("/etc/hosts", "Directory", "directory"),
            ("/var/run/docker.sock", "Socket", "socket file"),
            ("/data/disk", "BlockDevice", "block device"),
        ] {
            let told = format!("hostPath type check failed: {path} is not a {name}");
            assert_eq!(why(path, path_type), Some(told));
        }
    }

    #[test]
    fn what_pods_have_made_is_there_for_others() {
        let node = HostFiles::default();
        let is_there = |path: &str, path_type: &str| node.mount(path, path_type).is_none();
        assert!(!is_there("/data/a", "Directory") && is_there("/data/a/b", "DirectoryOrCreate"));
        assert!(is_there("/data/a", "Directory") && is_there("/data/a/b", "Directory"));
        assert!(!is_there("/data/ab", "Directory") && !is_there("/data/f", "File"));
        assert!(is_there("/data/f", "FileOrCreate") && is_there("/data/f", "File"));
        assert!(is_there("/any", "") && is_there("/any", "Directory"));
        let mut pod = WrittenFiles::new();
        pod.set_host(&node, &ClaimedFiles::default());
        pod.keep(left("/any", "c/d", Some("1")));
        assert!(is_there("/any/c", "Directory") && is_there("/any/c/d", "File"));
    }
}
