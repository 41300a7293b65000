//! `cp`, `mv`, `install` and `ln`: files and folders that get another place.

use super::names::base_name;
use crate::bounds::MAX_PATH_BYTES;
use crate::file_system::{self, File, PERMISSIONS};
use crate::images;
use crate::interpreter::player::Player;

/// Of a program that an image brings and nobody has seen.
const PROGRAM_MODE: u32 = 0o755;

/// What a command line says.
#[derive(Debug, Default)]
struct CopyCall<'w> {
    /// All letters behind single dashes.
    letters: String,
    /// `-m` of `install`.
    mode: Option<u32>,
    /// Where it goes; none without words.
    target: Option<&'w str>,
    sources: Vec<&'w str>,
}

impl<'w> CopyCall<'w> {
    fn read(program: &str, words: &[&'w str]) -> CopyCall<'w> {
        let mut call = CopyCall::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                None => call.sources.push(word),
                Some("-recursive") => call.letters.push('r'),
                Some("-archive") => call.letters.push('a'),
                Some("-no-clobber") => call.letters.push('n'),
                Some("-symbolic") => call.letters.push('s'),
                Some("-parents") => call.letters.push('P'),
                Some(long) if long.starts_with('-') => {
                    call.target = long.strip_prefix("-target-directory=").or(call.target);
                }
                Some("t") => call.target = words.next(),
                Some("m") if program == "install" => {
                    call.mode = words.next().and_then(|mode| u32::from_str_radix(mode, 8).ok());
                }
                Some("o" | "g" | "S") if program == "install" => drop(words.next()),
                Some(letters) => call.letters.push_str(letters),
            }
        }
        if call.target.is_none() && !(program == "install" && call.has("d")) {
            call.target = (call.sources.len() > 1).then(|| call.sources.pop()).flatten();
        }
        call
    }

    /// A copy is as new as it is, unless it is to be as what it was made from.
    fn stamped(&self, program: &str, file: File) -> File {
        let keeps = program == "mv" || program != "ln" && self.has("pa");
        File { stamp: file.stamp.filter(|_| keeps), ..file }
    }

    fn has(&self, letters: &str) -> bool {
        self.letters.contains(|letter| letters.contains(letter))
    }
}

/// Whether it is one of these.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "cp" | "mv" | "install" | "ln")
}

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, program: &str, words: &[&str]) {
    let call = CopyCall::read(program, words);
    if program == "install" && call.has("d") {
        let mode = call.mode.unwrap_or(0o755);
        return call.sources.iter().for_each(|path| make_folder(player, program, (path, mode), true));
    }
    if program == "ln" {
        return link(player, &call);
    }
    let (Some(target), [_, ..]) = (call.target, &call.sources[..]) else {
        return player.fail(&format!("{program}: missing file operand\n"));
    };
    let is_folder = player.has_folder(target) || target.ends_with('/');
    if call.sources.len() > 1 && !is_folder && !is_of_unknown(player, target) {
        return player.fail(&format!("{program}: target '{target}': No such file or directory\n"));
    }
    for source in &call.sources {
        let place = if is_folder && !call.has("T") { below(target, source) } else { (*target).to_owned() };
        copy(player, program, &call, (source, &place));
    }
}

/// Where a source goes that is put into a folder: what ends in `.` is its own name nowhere.
fn below(folder: &str, source: &str) -> String {
    let folder = folder.trim_end_matches('/');
    match base_name(source.trim_end_matches('/')) {
        "." | ".." => folder.to_owned(),
        name => format!("{folder}/{name}"),
    }
}

/// Whether nobody knows what is there: it is in no volume, nothing was written there, and the image is not
/// one of which everything is known.
fn is_of_unknown(player: &Player<'_>, path: &str) -> bool {
    let full = player.real_path(path);
    let is_whole = images::runs_a_shell(&player.around.image) && !file_system::is_of_image(&full);
    let is_of_volume = file_system::mount_of(player.mounts(), &full).is_some();
    !is_whole && !is_of_volume && !player.written.contains_key(&full)
}

fn copy(player: &mut Player<'_>, program: &str, call: &CopyCall<'_>, (source, target): (&str, &str)) {
    let keeps_links = program == "mv" || call.has("adP");
    let from = if keeps_links { player.own_path(source) } else { player.real_path(source) };
    let to = player.real_path(target);
    if from == to {
        return player.fail(&format!("{program}: '{source}' and '{target}' are the same file\n"));
    }
    if program == "mv"
        && let Err(why) = player.check_writable(&from)
    {
        return player.fail(&format!("mv: can't rename '{source}': {why}\n"));
    }
    if call.has("n") && player.file(&to).is_some_and(|file| !file.is_folder) {
        return;
    }
    let is_done = match player.own_file(&from) {
        Some(file) if !file.is_folder => {
            put(player, program, (target, &to), call.stamped(program, moded(file, call)))
        }
        None if !player.is_folder(&from) => return copy_unseen(player, program, call, (source, target)),
        _ if program == "cp" && !call.has("rRa") => {
            return player.fail(&format!("cp: omitting directory '{source}'\n"));
        }
        folder => copy_folder(player, program, call, (folder, &from), (target, &to)),
    };
    if is_done && program == "mv" {
        player.remove_all(&from);
    }
}

fn moded(file: File, call: &CopyCall<'_>) -> File {
    match call.mode {
        Some(mode) => File { mode, ..file },
        None => file,
    }
}

/// Whether all of it is there.
fn copy_folder(
    player: &mut Player<'_>,
    program: &str,
    call: &CopyCall<'_>,
    (folder, from): (Option<File>, &str),
    (target, to): (&str, &str),
) -> bool {
    if file_system::is_within(from, to) {
        player.fail(&format!("{program}: recursion detected, omitting directory '{target}'\n"));
        return false;
    }
    let files = player.files();
    if !player.is_folder(to) {
        let own = folder.unwrap_or_else(|| File::folder(0o755));
        if !put(player, program, (target, to), call.stamped(program, own)) {
            return false;
        }
    }
    let below = files.into_iter().filter(|(path, _)| path != from && file_system::is_within(from, path));
    for (path, file) in below {
        let place = format!("{}{}", to.trim_end_matches('/'), &path[from.trim_end_matches('/').len()..]);
        if !put(player, program, (&place, &place), call.stamped(program, file)) {
            return false;
        }
    }
    true
}

/// What an image brings: of most images nobody knows what they have. An init container that copies a program
/// out of its image into a volume has done that then; the program is there, and empty.
fn copy_unseen(player: &mut Player<'_>, program: &str, call: &CopyCall<'_>, (source, target): (&str, &str)) {
    if !is_of_unknown(player, source) {
        return player.fail(&format!("{program}: can't stat '{source}': No such file or directory\n"));
    }
    let is_of_many = source.contains(['*', '?', '[']) || source.ends_with("/.") || source.ends_with('/');
    if is_of_many {
        return;
    }
    let unseen = if call.has("rRa") { File::folder(0o755) } else { File::new(*b"", PROGRAM_MODE) };
    let to = player.real_path(target);
    put(player, program, (target, &to), moded(unseen, call));
}

/// Whether it is there.
fn put(player: &mut Player<'_>, program: &str, (shown, path): (&str, &str), file: File) -> bool {
    if !player.handle(file.content.len()) {
        return false;
    }
    if let Err(why) = player.check_writable(path) {
        player.fail(&format!("{program}: can't create '{shown}': {why}\n"));
        return false;
    }
    player.put_file(path.to_owned(), Some(file));
    true
}

/// `ln [-sfnT] TARGET... PLACE`
fn link(player: &mut Player<'_>, call: &CopyCall<'_>) {
    let target = call.target.unwrap_or(".");
    let is_into = player.has_folder(target) && !(call.has("nT") && player.own_link(target).is_some());
    for source in &call.sources {
        let shown = if is_into && !call.has("T") { below(target, source) } else { target.to_owned() };
        let place = player.own_path(&shown);
        if player.own_file(&place).is_some() && !call.has("f") {
            player.fail(&format!("ln: {shown}: File exists\n"));
            continue;
        }
        let file = if call.has("s") { Some(File::link(source)) } else { linked(player, source) };
        match file {
            Some(_) if source.len() > MAX_PATH_BYTES => {
                player.fail(&format!("ln: {shown}: File name too long\n"));
            }
            Some(file) => drop(put(player, "ln", (&shown, &place), file)),
            None => player.fail(&format!("ln: {source}: No such file or directory\n")),
        }
    }
}

/// What a hard link shows. It is a copy: what is written to one of the two later is not seen in the other.
fn linked(player: &Player<'_>, source: &str) -> Option<File> {
    let unseen = || is_of_unknown(player, source).then(|| File::new(*b"", PROGRAM_MODE));
    player.file(source).filter(|file| !file.is_folder).or_else(unseen)
}

/// As `ls -l` shows what stands behind a name.
pub(super) fn arrow(file: &File) -> String {
    if file.is_link() { format!(" -> {}", file.text()) } else { String::new() }
}

/// `readlink [-f] PATH...` and `realpath`.
pub(super) fn tell_links(player: &mut Player<'_>, program: &str, flags: &[&str], paths: &[&str]) {
    let is_whole = program == "realpath" || flags.iter().any(|flag| flag.contains(['f', 'e', 'm']));
    for path in paths {
        let told = if is_whole {
            Some(player.real_path(path))
        } else {
            player.own_link(path).map(|file| file.text())
        };
        match told {
            Some(told) => player.say(&format!("{told}\n")),
            None => player.status = 1,
        }
    }
}

/// `mkdir [-p] [-m MODE] PATH...`
pub(super) fn mkdir(player: &mut Player<'_>, words: &[&str]) {
    let call = CopyCall::read("install", words);
    let is_needed = call.has("pP");
    let mode = call.mode.unwrap_or(0o755) & PERMISSIONS;
    for path in call.sources.iter().chain(&call.target) {
        make_folder(player, "mkdir", (path, mode), is_needed);
    }
}

fn make_folder(player: &mut Player<'_>, program: &str, (path, mode): (&str, u32), may_be: bool) {
    let full = player.real_path(path);
    let is_there = player.file(&full).is_some() || player.is_folder(&full);
    if is_there && may_be {
        return;
    }
    let made = if is_there { Err("File exists") } else { player.check_writable(&full) };
    match made {
        Ok(()) => player.put_file(full, Some(File::folder(mode))),
        Err(why) => player.fail(&format!("{program}: can't create directory '{path}': {why}\n")),
    }
}
