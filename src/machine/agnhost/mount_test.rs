//! agnhost's `mounttest`: it makes files, and says what files there are.

use std::time::Duration;

use super::flags::flag;
use crate::file_system::{self, File, FileStamp, SET_GROUP, STICKY};
use crate::interpreter::player::{AfterCommand, Player};

const NEW_FILE: &str = "mount-tester new file\n";
/// What `statfs` calls tmpfs is a name; any other type is its number, here that of ext4.
const EXT4: &str = "61267";

/// Looks at files in a fixed order, whatever that of its flags.
pub(super) fn run(player: &mut Player<'_>, arguments: &[String]) -> AfterCommand {
    let mut is_well = true;
    if let Some(path) = flag(arguments, "fs_type") {
        let mount = file_system::mount_of(player.mounts(), path);
        let is_there = mount.is_some() || player.file(path).is_some() || file_system::is_of_image(path);
        let kind = if mount.is_some_and(|mount| mount.memory_bytes.is_some()) { "tmpfs" } else { EXT4 };
        if is_there || path == "/" {
            player.say(&format!("mount type of {path:?}: {kind}\n"));
        } else {
            player.say(&format!("error from statfs({path:?}): no such file or directory\n"));
            is_well = false;
        }
    }
    for (name, mode) in [
        ("new_file_0644", 0o644),
        ("new_file_0666", 0o666),
        ("new_file_0660", 0o660),
        ("new_file_0777", 0o777),
    ] {
        let Some(path) = flag(arguments, name) else { continue };
        match player.write_file(path, NEW_FILE.into()) {
            Ok(()) => {
                player.put_file(path.to_owned(), Some(File::new(NEW_FILE.as_bytes(), mode)));
                show_content(player, path);
            }
            Err(why) => {
                let why = why.to_lowercase();
                player.say(&format!("error writing new file {path:?}: open {path}: {why}\n"));
                is_well = false;
            }
        }
    }
    for (name, what) in [("file_mode", "mode"), ("file_perm", "perms"), ("file_owner", "owner")] {
        let Some(path) = flag(arguments, name) else { continue };
        is_well &= show_file(player, what, path);
    }
    if let Some(path) = flag(arguments, "file_content") {
        is_well &= show_content(player, path);
    }
    player.status = i32::from(!is_well);
    match flag(arguments, "file_content_in_loop") {
        Some(path) => show_in_loop(player, path, arguments),
        None => AfterCommand::Exit(player.status),
    }
}

fn show_file(player: &mut Player<'_>, what: &str, path: &str) -> bool {
    // A folder of a volume that is mounted by its `subPath` is as open as the volume.
    let found = player.file(path);
    let is_plain = found.as_ref().is_some_and(|file| !file.is_folder);
    let root = root_of_volume(player, path).filter(|_| !is_plain);
    let Some(file) = root.or(found) else {
        let why = match what {
            "owner" => format!("error from stat({path:?})"),
            _ => format!("error from Stat({path:?}): stat {path}"),
        };
        player.say(&format!("{why}: no such file or directory\n"));
        return false;
    };
    // As Go writes them: what kind of file it is belongs to the mode alone.
    let plain = File { mode: file.mode & 0o777, is_folder: false, ..file.clone() }.permissions();
    let permissions = if what == "mode" { go_mode(&file, plain) } else { plain };
    let said = match what {
        "owner" => {
            let FileStamp { user, group, .. } = player.stamp_at(path, &file);
            format!("owner UID of {path:?}: {user}\nowner GID of {path:?}: {group}\n")
        }
        what => format!("{what} of file {path:?}: {permissions}\n"),
    };
    player.say(&said);
    true
}

/// A mode as Go writes it (`fs.FileMode.String`): what it is comes before who may do what, as `plain` says.
fn go_mode(file: &File, plain: String) -> String {
    let flags = [(file.is_folder, 'd'), (file.mode & SET_GROUP != 0, 'g'), (file.mode & STICKY != 0, 't')];
    let told: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
    if told.is_empty() { plain } else { told + &plain[1..] }
}

/// Everybody may write into a volume; into the node's `/tmp`, too, where each takes away his own.
fn root_of_volume(player: &Player<'_>, path: &str) -> Option<File> {
    let mut mounts = player.mounts().iter();
    let mount = mounts.find(|mount| mount.is_at(path))?;
    Some(File::folder(if mount.volume == "/tmp" { 0o777 | STICKY } else { 0o777 }))
}

fn show_content(player: &mut Player<'_>, path: &str) -> bool {
    match player.file(path) {
        Some(file) => {
            player.say(&format!("content of file {path:?}: {}\n", file.text()));
            true
        }
        None => {
            let why = format!("open {path}: no such file or directory");
            player.say(&format!("error reading file content for {path:?}: {why}\n"));
            false
        }
    }
}

/// Every two seconds, until the content is what is expected or the time is over.
fn show_in_loop(player: &mut Player<'_>, path: &str, arguments: &[String]) -> AfterCommand {
    let retry_time = flag(arguments, "retry_time").and_then(|seconds| seconds.parse().ok()).unwrap_or(180);
    let breaks = flag(arguments, "break_on_expected_content") != Some("false");
    let end = player.elapsed.saturating_add(Duration::from_secs(retry_time));
    while player.elapsed < end {
        match player.file(path).map(|file| file.text()) {
            None => {
                let why = format!("open {path}: no such file or directory");
                player.say(&format!("Error reading file {path}: {why}, retrying\n"));
            }
            Some(text) => {
                player.say(&format!("content of file {path:?}: {text}\n"));
                if breaks && text == NEW_FILE {
                    return AfterCommand::Exit(0);
                }
                if breaks {
                    player.say(&format!("Unexpected content. Expected: {NEW_FILE}. Retrying\n"));
                }
            }
        }
        match player.pause(Duration::from_secs(2)) {
            AfterCommand::Go => {}
            flow => return flow,
        }
    }
    AfterCommand::Exit(player.status)
}
