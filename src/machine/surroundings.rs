//! What a process finds around it, as far as its script may ask: variables, files, who it is, and which
//! run of the container it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::file_system::{File, MountedVolume, Tree, View, mount_of};
use crate::images;
use crate::questions::Answered;
use crate::standard_input::{StandardInput, TerminalSize};

/// So many views of the volumes are remembered of a run; of more the older ones are forgotten.
const MAX_VIEWS: usize = 16;

/// Where programs are looked for: what images set, when they set anything.
pub const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a process finds around it.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The container's image, whose shell has words of its own.
    pub image: String,
    /// The container's variables.
    pub variables: BTreeMap<String, String>,
    /// How many earlier runs nobody saw: what they left in volumes is found by playing them.
    pub unseen_runs: i64,
    /// How much those take.
    pub start_bytes: usize,
    /// Where its volumes are.
    pub mounts: Vec<MountedVolume>,
    /// What its volumes show, the oldest first.
    pub views: Vec<View>,
    /// Where it runs.
    pub folder: String,
    /// The host name.
    pub hostname: String,
    /// What the first process that it sees was started with, as `ps` shows it; nothing where that is the
    /// image's own.
    pub command: Vec<String>,
    /// Where servers of its pod listen, known to who looks in by `exec` alone.
    pub listens: Vec<OpenPort>,
    /// Programs of which somebody has declared what they say, known to who looks in by `exec` alone.
    pub declared: BTreeMap<String, DeclaredProgram>,
    /// Who it runs as.
    pub user: i64,
    /// And in which group.
    pub group: i64,
    /// In which ones beside it.
    pub groups: Vec<i64>,
    /// Whether only volumes may be written.
    pub is_root_read_only: bool,
    /// Kernel parameters, by [`sysctl_name`].
    pub sysctls: BTreeMap<String, String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// The file with its last word.
    pub message_path: String,
    /// Whether its log is its last word, when it wrote none.
    pub falls_back_to_logs: bool,
    /// What others (`exec`), or its process's own handler for the stop signal, wrote into the container or
    /// removed.
    pub foreign: BTreeMap<String, ForeignFile>,
    /// What the network has answered its process so far.
    pub answers: Arc<Vec<Answered>>,
    /// What was said to it, where its standard input is open.
    pub input: Option<Box<StandardInput>>,
    /// The window of the terminal in which a command is run beside the process, where it has one.
    pub terminal: Option<TerminalSize>,
}

/// What a program says that is not played, whatever its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredProgram {
    /// On its standard output.
    pub out: String,
    /// Of errors.
    pub errors: String,
    /// How it ends.
    pub code: i32,
    /// How long that takes.
    pub delay: Duration,
}

/// What somebody left of a file beside the container's process.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignFile {
    /// The file; nothing when it was removed.
    pub file: Option<File>,
    /// How long after the start of the process: what that wrote before is no more, what it writes after is.
    pub after: Duration,
}

/// A kernel parameter's name as the kernel has it, with a dot between its parts: that which stands first says
/// whether dots or slashes do (`sysctl.NormalizeName`).
pub fn sysctl_name(name: &str) -> String {
    if name.find(['.', '/']).is_none_or(|at| name[at..].starts_with('.')) {
        return name.to_owned();
    }
    let turned = |letter| match letter {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    name.chars().map(turned).collect()
}

/// A port at which somebody listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPort {
    /// Its number.
    pub port: u16,
    /// Of UDP, and not of TCP.
    pub is_udp: bool,
    /// Who listens.
    pub program: String,
}

impl Surroundings {
    /// The process, as `ps` shows it.
    pub(crate) fn process_name(&self) -> String {
        match self.command.as_slice() {
            [] => images::shell(&self.image).unwrap_or(program_of(&self.image)).to_owned(),
            words => words.join(" "),
        }
    }

    /// As somebody finds it who begins `after` the start.
    pub fn from(&self, after: Duration) -> Surroundings {
        let view = self.views.iter().rev().find(|view| view.after <= after).or(self.views.first());
        let views = view.map(|view| View { after: Duration::ZERO, tree: view.tree.clone() });
        let mut around = Surroundings {
            views: views.into_iter().collect(),
            started_at: clock::after(self.started_at, after),
            answers: Arc::default(),
            ..self.clone()
        };
        around.foreign.values_mut().for_each(|foreign| foreign.after = Duration::ZERO);
        around
    }

    /// A file as volumes show it last.
    pub fn newest_file(&self, path: &str) -> Option<&File> {
        self.views.last()?.tree.get(path)
    }

    /// Whether the volumes show a file of this name in any folder.
    pub(crate) fn has_file_named(&self, name: &str) -> bool {
        let is_it = |path: &String| path.rsplit('/').next() == Some(name);
        self.views.last().is_some_and(|view| view.tree.keys().any(is_it))
    }

    /// Notes what the volumes show at `now`, when that is not what they showed before. Says whether it is
    /// not.
    pub fn show(&mut self, mut tree: Tree, now: DateTime<Utc>) -> bool {
        self.hold_parts(&mut tree);
        for (path, foreign) in &self.foreign {
            match &foreign.file {
                Some(file) => tree.insert(path.clone(), file.clone()),
                None => tree.remove(path),
            };
        }
        // What was removed that no volume shows is seen nowhere but there.
        let is_seen = |last: &View| self.foreign.values().all(|foreign| foreign.after <= last.after);
        if self.views.last().is_none_or(|last| *last.tree == tree && is_seen(last)) {
            return false;
        }
        let after = (now - self.started_at).to_std().unwrap_or_default();
        self.views.push(View { after, tree: Arc::new(tree) });
        if self.views.len() > MAX_VIEWS {
            self.views.remove(0);
        }
        true
    }

    /// What of a volume of API objects is mounted by its `subPath` is what it was when the process started: a
    /// mount of its own that nobody writes anew.
    fn hold_parts(&self, tree: &mut Tree) {
        let is_part = |mount: &MountedVolume| !mount.is_kept && !mount.sub_path.is_empty();
        let Some(last) = self.views.last().filter(|_| self.mounts.iter().any(is_part)) else { return };
        let is_held = |path: &str| mount_of(&self.mounts, path).is_some_and(is_part);
        tree.retain(|path, _| !is_held(path));
        let held = last.tree.iter().filter(|(path, _)| is_held(path));
        tree.extend(held.map(|(path, file)| (path.clone(), file.clone())));
    }
}

/// An image without command begins the program that it is named for.
pub fn program_of(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split([':', '@']).next().unwrap_or(name)
}

/// A volume that keeps what is written, at `path`.
#[cfg(test)]
pub fn kept_mount(path: &str) -> MountedVolume {
    MountedVolume::kept(path, "data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_volume_of_api_objects_stays_what_it_was() {
        let made = |path: &str, sub_path: &str| MountedVolume {
            is_kept: false,
            sub_path: sub_path.into(),
            ..kept_mount(path)
        };
        let mounts = vec![made("/all", ""), made("/etc/one", "k"), made("/none", "late")];
        let mut around = Surroundings { mounts, ..Surroundings::default() };
        let tree = |paths: &[&str], text: &str| -> Tree {
            paths.iter().map(|path| ((*path).to_owned(), File::new(text, 0o644))).collect()
        };
        let at_start = Arc::new(tree(&["/all/k", "/etc/one"], "old"));
        around.views.push(View { after: Duration::ZERO, tree: at_start });
        assert!(around.show(tree(&["/all/k", "/etc/one", "/none"], "new"), DateTime::UNIX_EPOCH));
        let shown = &around.views.last().unwrap().tree;
        let texts: Vec<_> = shown.iter().map(|(path, file)| (path.as_str(), file.text())).collect();
        assert_eq!(texts, [("/all/k", "new".into()), ("/etc/one", "old".into())]);
        assert!(!around.show(tree(&["/all/k", "/etc/one"], "new"), DateTime::UNIX_EPOCH));
    }

    #[test]
    fn parameters_are_named_with_dots_or_slashes() {
        for name in ["kernel.shm_rmid_forced", "kernel/shm_rmid_forced"] {
            assert_eq!(sysctl_name(name), "kernel.shm_rmid_forced");
        }
        assert_eq!(sysctl_name("net/ipv4/conf/eth0.1/x"), "net.ipv4.conf.eth0/1.x");
        assert_eq!(sysctl_name("plain"), "plain");
    }
}
