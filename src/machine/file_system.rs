//! The files that a simulated container sees: what its volumes hold, and what it wrote itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::bounds::MAX_PATH_BYTES;
use crate::byte_text;

/// A file; folders are only where one has a mode of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its bytes.
    pub content: Arc<Vec<u8>>,
    /// So many more are behind them of which nothing but their number is kept: those of a file that is filled
    /// (`dd`, `fallocate`) and larger than what a container may leave.
    pub unheld: usize,
    /// Its permissions, as `0o644`.
    pub mode: u32,
    /// A folder has no bytes.
    pub is_folder: bool,
    /// Who wrote it and when; none of what was there from the start, which is root's.
    pub stamp: Option<FileStamp>,
}

/// Who made a file, and when it was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// When (`mtime`).
    pub modified: DateTime<Utc>,
    /// The owner's number.
    pub user: i64,
    /// Its group's.
    pub group: i64,
}

/// Files by their absolute paths.
pub type Tree = BTreeMap<String, File>;

/// A path, and the file that was written there; none when it was removed.
pub type FileChange = (String, Option<File>);

/// What a process left in a volume.
#[derive(Clone, Debug)]
pub struct Left {
    /// The volume's name; of the node's own files their path there.
    pub volume: String,
    /// In the volume.
    pub path: String,
    /// None when it was removed.
    pub file: Option<File>,
}

/// What volumes show from a time on.
#[derive(Clone, Debug)]
pub struct View {
    /// So long after the start of the process.
    pub after: Duration,
    /// What there is.
    pub tree: Arc<Tree>,
}

/// Where a volume is in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedVolume {
    /// In the container.
    pub path: String,
    /// Where in the volume that is; empty for all of it.
    pub sub_path: String,
    /// The volume's; of the node's own files their path there.
    pub volume: String,
    /// Whether it may not be written.
    pub is_read_only: bool,
    /// How many bytes there are for files, where it is memory (`tmpfs`).
    pub memory_bytes: Option<u64>,
    /// Whether what is written there stays for other containers and the next run: anything but what is
    /// made of API objects.
    pub is_kept: bool,
    /// The group of what is in it, where that is not its maker's (`fsGroup`).
    pub group: Option<i64>,
    /// It has no file system: what is at its path is one file, with all of its blocks.
    pub is_device: bool,
}

impl MountedVolume {
    /// All of a volume, which keeps what is written.
    pub fn kept(path: impl Into<String>, volume: impl Into<String>) -> MountedVolume {
        MountedVolume {
            path: path.into(),
            sub_path: String::new(),
            volume: volume.into(),
            is_read_only: false,
            memory_bytes: None,
            is_kept: true,
            group: None,
            is_device: false,
        }
    }

    /// Whether a path is where it is.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        self.path.trim_end_matches('/') == path
    }
}

/// A file of a well-known path that no volume shows but every image has: nothing is known of what is in
/// it.
const OF_EVERY_IMAGE: [&str; 8] = ["/etc/", "/proc/", "/sys/", "/usr/", "/bin/", "/lib/", "/dev/", "/sbin/"];

/// Of a mode: a pipe with a name (`S_IFIFO`).
pub const FIFO: u32 = 0o010_000;
/// Of a mode: a symbolic link, whose bytes are the path that it leads to (`S_IFLNK`).
pub const LINK: u32 = 0o120_000;
/// Of a mode: a device of blocks (`S_IFBLK`).
pub const BLOCK_DEVICE: u32 = 0o060_000;
/// What of a mode says what kind of file it is (`S_IFMT`).
const KIND: u32 = 0o170_000;
/// So many links are followed one after another (`ELOOP`): then the path stays, and nothing is there.
pub const MAX_LINKS: usize = 40;
/// Of a folder's mode: what is in it only its owner takes away (`S_ISVTX`).
pub const STICKY: u32 = 0o1000;
/// Of a folder's mode: what is made in it has its group (`S_ISGID`).
pub const SET_GROUP: u32 = 0o2000;
/// What of a mode says who may do what.
pub const PERMISSIONS: u32 = 0o7777;

impl File {
    /// Whether it is a pipe with a name.
    pub fn is_pipe(&self) -> bool {
        self.mode & KIND == FIFO
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.mode & KIND == LINK
    }

    /// Whether it is a device of blocks.
    pub fn is_block_device(&self) -> bool {
        self.mode & KIND == BLOCK_DEVICE
    }

    /// Where a link leads to, if it may be a path.
    pub fn target(&self) -> Option<String> {
        (self.is_link() && self.content.len() <= MAX_PATH_BYTES).then(|| self.text())
    }

    /// A symbolic link to a path.
    pub fn link(to: &str) -> File {
        File::new(to, LINK | 0o777)
    }

    /// A file of these bytes.
    pub fn new(content: impl Into<Vec<u8>>, mode: u32) -> File {
        File::of(&Arc::new(content.into()), mode)
    }

    /// A file that shares its bytes with others.
    pub fn of(content: &Arc<Vec<u8>>, mode: u32) -> File {
        File { content: content.clone(), unheld: 0, mode, is_folder: false, stamp: None }
    }

    /// A folder.
    pub fn folder(mode: u32) -> File {
        File { content: Arc::default(), unheld: 0, mode, is_folder: true, stamp: None }
    }

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.content.len().saturating_add(self.unheld)
    }

    /// Its bytes as a text ([`byte_text`]).
    pub fn text(&self) -> String {
        byte_text::text_of(&self.content)
    }

    /// As `ls -l` and Go write it: `-rw-r--r--`.
    pub fn permissions(&self) -> String {
        let kind = match self {
            _ if self.is_pipe() => "p",
            _ if self.is_link() => "l",
            _ if self.is_block_device() => "b",
            _ if self.is_folder => "d",
            _ => "-",
        };
        let mut text = String::from(kind);
        for shift in [6, 3, 0] {
            let bits = self.mode >> shift & 7;
            for (bit, letter) in [(4, 'r'), (2, 'w'), (1, 'x')] {
                text.push(if bits & bit != 0 { letter } else { '-' });
            }
        }
        if self.is_folder && self.mode & SET_GROUP != 0 {
            let executes = &text[6..7] == "x";
            text.replace_range(6..7, if executes { "s" } else { "S" });
        }
        if self.is_folder && self.mode & STICKY != 0 {
            let last = if text.ends_with('x') { 't' } else { 'T' };
            text.pop();
            text.push(last);
        }
        text
    }
}

/// Whether `path` is below `folder`, or it.
pub fn is_within(folder: &str, path: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The mount that a path is in: the one with the longest path.
pub fn mount_of<'a>(mounts: &'a [MountedVolume], path: &str) -> Option<&'a MountedVolume> {
    mounts.iter().filter(|mount| is_within(&mount.path, path)).max_by_key(|mount| mount.path.len())
}

/// Whether a file that no volume shows is taken to be one of the image's.
pub fn is_of_image(path: &str) -> bool {
    OF_EVERY_IMAGE.iter().any(|folder| path.starts_with(folder))
}

/// An absolute path without `.`, `..` and doubled slashes.
pub fn absolute(folder: &str, path: &str) -> String {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// An absolute path with its links followed, as far as they lead anywhere. `entry` is what stands at a path.
pub fn followed<'a>(path: String, entry: impl Fn(&str) -> Option<&'a File>) -> String {
    let mut path = path;
    for _ in 0..MAX_LINKS {
        match one_link_further(&path, &entry) {
            Some(next) => path = next,
            None => break,
        }
    }
    path
}

/// The path with its first link followed; none without links, and where it is longer than a path may be.
fn one_link_further<'a>(path: &str, entry: impl Fn(&str) -> Option<&'a File>) -> Option<String> {
    if path.len() > MAX_PATH_BYTES {
        return None;
    }
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
    for end in ends {
        if let Some(target) = entry(&path[..end]).and_then(File::target) {
            let above = path[..end].rsplit_once('/').map_or("/", |(above, _)| above);
            let target = absolute(above, &target);
            return Some(absolute("/", &format!("{target}{}", &path[end..])));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_absolute() {
        for (folder, path, wanted) in
            [("/", "a", "/a"), ("/a", "../b//c/.", "/b/c"), ("/x", "/y/", "/y"), ("/", "..", "/")]
        {
            assert_eq!(absolute(folder, path), wanted);
        }
        assert!(is_within("/a/", "/a/b") && is_within("/a", "/a") && !is_within("/a", "/ab"));
        assert_eq!(File::new(*b"", 0o640).permissions(), "-rw-r-----");
        assert_eq!(File::new(*b"", FIFO | 0o640).permissions(), "prw-r-----");
        assert_eq!(File::new(*b"", BLOCK_DEVICE | 0o660).permissions(), "brw-rw----");
        assert_eq!(File::folder(0o755).permissions(), "drwxr-xr-x");
        assert_eq!(File::folder(0o1777).permissions(), "drwxrwxrwt");
    }
}
