//! What programs read: the files that they are told, or their standard input.

use crate::file_system;
use crate::interpreter::dialect::Dialect;
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
            let is_gnu = player.dialect != Dialect::Ash;
            let what = if is_gnu { path } else { "read error" };
            player.fail(&format!("{program}: {what}: Is a directory\n"));
            None
        }
        Some(file) => {
            player.handle_file(&file);
            Some(file.text())
        }
        None => {
            let full = player.real_path(path);
            let is_of_volume = file_system::mount_of(player.mounts(), &full).is_some();
            if file_system::is_of_image(&full) && !is_of_volume && !player.written.contains_key(&full) {
                return Some(String::new());
            }
            let why = not_open(player.dialect, program, path);
            player.fail(&format!("{program}: {why}: No such file or directory\n"));
            None
        }
    }
}

/// What a program says of a file that is not there: BusyBox' own words, or GNU's.
fn not_open(dialect: Dialect, program: &str, path: &str) -> String {
    match (dialect, program) {
        (Dialect::Ash, "cut" | "fold" | "grep" | "head" | "od" | "sed" | "tac" | "wc") => path.to_owned(),
        (Dialect::Ash, _) => format!("can't open '{path}'"),
        (_, "head" | "tail") => format!("cannot open '{path}' for reading"),
        (_, "sort") => format!("cannot read: {path}"),
        (_, "sed") => format!("can't read {path}"),
        (_, _) => path.to_owned(),
    }
}
