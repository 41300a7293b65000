//! What programs read: the files that they are told, or their standard input.

use crate::file_system;
use crate::interpreter::player::Player;

/// The files that are named, one behind the other, or the standard input.
pub(crate) fn input(player: &mut Player<'_>, program: &str, paths: &[&str]) -> Option<String> {
    if paths.is_empty() {
        return Some(player.input());
    }
    let mut all = String::new();
    for path in paths {
        all.push_str(&read(player, program, path)?);
    }
    Some(all)
}

/// The text of a file, of one that never ends as much as a pipe takes; says why not, when there is none. Of
/// the image's own files nothing is known, so they are empty.
pub(crate) fn read(player: &mut Player<'_>, program: &str, path: &str) -> Option<String> {
    if let Some(text) = player.endless_text(path) {
        return Some(text);
    }
    match player.file(path) {
        Some(file) if file.is_folder => {
            player.fail(&format!("{program}: read error: Is a directory\n"));
            None
        }
        Some(file) => {
            player.handle(file.content.len());
            Some(file.text())
        }
        None => {
            let full = player.real_path(path);
            let is_of_volume = file_system::mount_of(&player.around.mounts, &full).is_some();
            if file_system::is_of_image(&full) && !is_of_volume && !player.written.contains_key(&full) {
                return Some(String::new());
            }
            player.fail(&format!("{program}: can't open '{path}': No such file or directory\n"));
            None
        }
    }
}
