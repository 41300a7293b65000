//! `chroot` and `nsenter`: programs that see other files than the container's own.

use crate::file_system;
use crate::interpreter::other_root::RootFolder;
use crate::interpreter::player::{AfterCommand, Player};

/// Runs a program whose name stands behind that of another one.
type RunBehind = fn(&mut Player<'_>, &str, &[&str]) -> AfterCommand;

/// What the path of a mount namespace ends with, below the folder of a process.
const MOUNTS: &str = "/ns/mnt";
/// The folder of the first process of a node, or of a container.
const FIRST_PROCESS: &str = "/proc/1";

/// `chroot FOLDER PROGRAM`; without a program a shell is there from then on.
pub(super) fn change_root(player: &mut Player<'_>, words: &[&str], run: RunBehind) -> AfterCommand {
    let Some((folder, program)) = words.split_first() else {
        player.fail("chroot: missing operand\n");
        return AfterCommand::Go;
    };
    let path = player.real_path(folder);
    if player.has_folder(&path) {
        let root = RootFolder { path, is_of_node: false };
        return run_in(player, ("chroot", program), Some(&root), run);
    }
    if file_system::mount_of(player.mounts(), &path).is_some() {
        let why = format!("chroot: can't change root directory to '{folder}': No such file or directory\n");
        player.fail(&why);
        return AfterCommand::Go;
    }
    // Of an image nobody knows which folders it has, and what is in them.
    run_in(player, ("chroot", program), None, run)
}

/// `nsenter -t 1 -m PROGRAM` and `nsenter --mount=/host/proc/1/ns/mnt -- PROGRAM`: of all namespaces only
/// that of mounts makes a difference.
pub(super) fn enter_namespaces(player: &mut Player<'_>, words: &[&str], run: RunBehind) -> AfterCommand {
    let call = EnteredNamespaces::of(words);
    let shell = ["sh"];
    let program = if call.program.is_empty() { &shell[..] } else { call.program };
    let Some(namespace) = call.mounts else {
        return run_in(player, ("nsenter", program), None, run);
    };
    let process = namespace.strip_suffix(MOUNTS).unwrap_or(&namespace);
    let Some(root) = root_of(player, process) else {
        // Without the node's processes in sight the first one is the container's own.
        if process == FIRST_PROCESS {
            return run_in(player, ("nsenter", program), None, run);
        }
        player.fail(&format!("nsenter: can't open '{namespace}': No such file or directory\n"));
        return AfterCommand::Go;
    };
    if !player.is_admin() {
        player.fail(&format!("nsenter: can't open '{namespace}': Permission denied\n"));
        return AfterCommand::Go;
    }
    run_in(player, ("nsenter", program), Some(&root), run)
}

/// The root of a process of the node, seen in the folder of that process or around it.
fn root_of(player: &Player<'_>, process: &str) -> Option<RootFolder> {
    let of_process = format!("{process}/root");
    let is_shown = |path: &str| player.mounts().iter().any(|mount| mount.is_at(path));
    if is_shown(&of_process) {
        return Some(RootFolder { path: of_process, is_of_node: true });
    }
    let path = process.strip_suffix(FIRST_PROCESS)?;
    let mount = file_system::mount_of(player.mounts(), path).filter(|_| !path.is_empty())?;
    let is_root = mount.volume == "/" && mount.sub_path.is_empty() && mount.is_at(path);
    is_root.then(|| RootFolder { path: path.to_owned(), is_of_node: true })
}

/// Runs a program where another folder is `/`; without one that stays so.
fn run_in(
    player: &mut Player<'_>,
    (runner, program): (&str, &[&str]),
    root: Option<&RootFolder>,
    run: RunBehind,
) -> AfterCommand {
    let folder = player.folder.clone();
    let before = player.roots.is_entered;
    player.roots.is_entered |= root.is_some() || runner == "chroot";
    root.into_iter().for_each(|root| player.enter_root(root));
    if program.is_empty() {
        return AfterCommand::Go;
    }
    let depth = player.roots.within.len();
    let flow = run(player, runner, program);
    // A shell that somebody types into comes after this, and is there.
    if player.wanted_shell.is_some() {
        return flow;
    }
    // One that was played may have gone further.
    while player.roots.within.len() > depth {
        player.leave_root();
    }
    if root.is_some() {
        player.leave_root();
        player.folder = folder;
    }
    player.roots.is_entered = before;
    flow
}

/// What `nsenter` is told.
struct EnteredNamespaces<'a> {
    /// The namespace of mounts; none where it stays.
    mounts: Option<String>,
    program: &'a [&'a str],
}

impl<'a> EnteredNamespaces<'a> {
    fn of(words: &'a [&'a str]) -> EnteredNamespaces<'a> {
        let mut target = "1";
        let mut wants = false;
        let mut named = None;
        let mut at = 0;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            at += 1;
            let (name, value) =
                word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
            match name {
                "--" => break,
                "-t" | "--target" | "-S" | "--setuid" | "-G" | "--setgid" if value.is_none() => {
                    let next = words.get(at).copied().unwrap_or_default();
                    at += 1;
                    if matches!(name, "-t" | "--target") {
                        target = next;
                    }
                }
                "--target" => target = value.unwrap_or(target),
                "--mount" | "-m" => (wants, named) = (true, value),
                "-a" | "--all" => wants = true,
                name if name.starts_with("--") => {}
                letters => {
                    let (letters, path) = letters
                        .find('/')
                        .map_or((letters, None), |from| (&letters[..from], Some(&letters[from..])));
                    if letters.ends_with('t') {
                        target = words.get(at).copied().unwrap_or_default();
                        at += 1;
                    }
                    wants |= letters.contains('m') || letters.contains('a');
                    named = named.or(path.filter(|_| letters.ends_with('m')));
                }
            }
        }
        let of_target = || format!("/proc/{target}{MOUNTS}");
        let mounts = wants.then(|| named.map_or_else(of_target, str::to_owned));
        EnteredNamespaces { mounts, program: words.get(at..).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_named_in_many_ways() {
        let file = "/rootfs/proc/1/ns/mnt";
        for (line, mounts, program) in [
            ("--mount=/rootfs/proc/1/ns/mnt -- sh -c x", Some(file), "sh -c x"),
            ("-m/rootfs/proc/1/ns/mnt ls -l", Some(file), "ls -l"),
            ("-t 1 -m -u -i -n sh", Some("/proc/1/ns/mnt"), "sh"),
            ("--target 7 --mount --uts -- sh", Some("/proc/7/ns/mnt"), "sh"),
            ("-t 1 -muip", Some("/proc/1/ns/mnt"), ""),
            ("-at 7 sh", Some("/proc/7/ns/mnt"), "sh"),
            ("-t 1 -n ip a", None, "ip a"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let call = EnteredNamespaces::of(&words);
            assert_eq!(
                (call.mounts.as_deref(), call.program.join(" ")),
                (mounts, program.to_owned()),
                "{line}"
            );
        }
    }
}
