//! `ls`: what is in folders, as BusyBox and GNU show it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};

use super::copying;
use crate::file_system::{self, File, FileStamp, SET_GROUP, STICKY, Tree};
use crate::image_files;
use crate::image_programs;
use crate::interpreter::dialect::Dialect;
use crate::interpreter::player::{AfterCommand, Player};

/// A step is so many files that `ls` looks at.
const LISTED_FILES_OF_STEP: usize = 16;
/// What a folder takes itself.
const FOLDER_BYTES: usize = 4096;
/// What a block is where `total` counts them, and in how much of them a disk gives room.
const BLOCK_BYTES: usize = 1024;
const ROOM_BYTES: usize = 4096;
/// Of files that are older than so many days the year is shown, and not the hour.
const RECENT_DAYS: i64 = 182;
/// Of a program that an image brings.
const PROGRAM_MODE: u32 = 0o755;
/// Between columns.
const GAP: usize = 2;

/// What `ls` is told.
struct ListCall<'w> {
    letters: String,
    paths: Vec<&'w str>,
    is_gnu: bool,
    /// How wide its terminal is; none where it is none.
    columns: Option<usize>,
}

/// A line of it.
struct ListedFile {
    name: String,
    path: String,
    file: File,
    stamp: FileStamp,
}

/// `ls [-1AaCdFhilnpRrSt] [PATH...]`
pub(super) fn ls(player: &mut Player<'_>, words: &[&str]) {
    let call = ListCall::read(player, words);
    let paths = if call.paths.is_empty() { vec!["."] } else { call.paths.clone() };
    let files = player.files();
    player.spend(files.len() / LISTED_FILES_OF_STEP);
    let mut alone = Vec::new();
    let mut folders = Vec::new();
    for path in paths {
        let is_link_itself = call.has("ldF") && !path.ends_with('/');
        let own = player.own_path(path);
        let full = if is_link_itself { own } else { player.real_path(path) };
        let Some(file) = entry(player, &files, &full) else {
            let why = "No such file or directory";
            let told = if call.is_gnu { format!("cannot access '{path}'") } else { path.to_owned() };
            player.fail(&format!("ls: {told}: {why}\n"));
            player.status = if call.is_gnu { 2 } else { 1 };
            continue;
        };
        if file.is_folder && !call.has("d") {
            folders.push((path.to_owned(), full));
        } else {
            let stamp = player.stamp_at(&full, &file);
            alone.push(ListedFile { name: path.to_owned(), path: full, file, stamp });
        }
    }
    alone.sort_by(|one: &ListedFile, other| one.name.cmp(&other.name));
    folders.sort();
    let is_named = call.has("R") || call.paths.len() > 1;
    let mut is_first = alone.is_empty();
    if !alone.is_empty() {
        call.sort(&mut alone);
        let said = call.shown(player, &alone);
        player.say(&said);
    }
    folders.reverse();
    while let Some((shown, path)) = folders.pop() {
        let listed = call.below(player, &files, &path);
        let gap = if std::mem::take(&mut is_first) { "" } else { "\n" };
        if is_named {
            player.say(&format!("{gap}{shown}:\n"));
        }
        let said = call.total(&listed) + &call.shown(player, &listed);
        player.say(&said);
        let goes_on = player.spend(1 + files.len() / LISTED_FILES_OF_STEP) == AfterCommand::Go;
        if !call.has("R") || !goes_on {
            continue;
        }
        let deeper = listed.into_iter().rev().filter(|one| one.file.is_folder && !is_dots(&one.name));
        folders.extend(deeper.map(|one| (format!("{}/{}", shown.trim_end_matches('/'), one.name), one.path)));
    }
}

fn is_dots(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// What is at a path, a folder also where only what is in it says so.
fn entry(player: &mut Player<'_>, files: &Tree, path: &str) -> Option<File> {
    if let Some(file) = files.get(path) {
        return Some(file.clone());
    }
    if let Some(file) = image_files::folders(&player.around.image).get(path) {
        return Some(file.clone());
    }
    if player.is_program(path) {
        return Some(File::new(*b"", PROGRAM_MODE));
    }
    let is_known = player.is_folder(path) || file_system::is_of_image(&format!("{path}/"));
    is_known.then(|| implied_folder(player, path))
}

/// A folder that no file says.
pub(super) fn implied_folder(player: &Player<'_>, path: &str) -> File {
    let is_mount = player.mounts().iter().any(|mount| !mount.is_device && mount.is_at(path));
    File::folder(match path {
        "/tmp" if !is_mount => 0o777 | STICKY,
        _ if is_mount && player.group_at(path).is_some() => 0o777 | SET_GROUP,
        _ if is_mount => 0o777,
        _ => 0o755,
    })
}

impl<'w> ListCall<'w> {
    fn read(player: &Player<'_>, words: &[&'w str]) -> ListCall<'w> {
        let is_flag = |word: &&&str| word.starts_with('-') && word.len() > 1;
        let mut letters = String::new();
        for word in words.iter().filter(is_flag) {
            match *word {
                "--all" => letters.push('a'),
                "--almost-all" => letters.push('A'),
                "--recursive" => letters.push('R'),
                "--human-readable" => letters.push('h'),
                long if long.starts_with("--") => {}
                short => letters.push_str(&short[1..]),
            }
        }
        let paths = words.iter().filter(|word| !is_flag(word)).copied().collect();
        let terminal = player.terminal().filter(|_| player.is_heard());
        let columns = terminal.map(|size| usize::from(size.columns));
        ListCall { letters, paths, is_gnu: player.dialect != Dialect::Ash, columns }
    }

    fn has(&self, letters: &str) -> bool {
        self.letters.contains(|letter| letters.contains(letter))
    }

    fn is_long(&self) -> bool {
        self.has("lngo")
    }

    /// What is directly in a folder.
    fn below(&self, player: &mut Player<'_>, files: &Tree, folder: &str) -> Vec<ListedFile> {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let mut found: BTreeMap<String, Option<File>> = BTreeMap::new();
        for (path, file) in files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix)) {
            match path[prefix.len()..].split_once('/') {
                None => drop(found.insert(path[prefix.len()..].to_owned(), Some(file.clone()))),
                Some((name, _)) => {
                    found.entry(name.to_owned()).or_default();
                }
            }
        }
        let mut names: BTreeSet<String> = BTreeSet::new();
        let known = image_files::folders(&player.around.image);
        let mounts: Vec<String> = player.mounts().iter().map(|mount| mount.path.clone()).collect();
        for path in known.keys().chain(&mounts) {
            let below = path.strip_prefix(&prefix).and_then(|rest| rest.split('/').next());
            names.extend(below.filter(|name| !name.is_empty()).map(str::to_owned));
        }
        names.into_iter().for_each(|name| {
            found.entry(name).or_default();
        });
        if matches!(folder, "/bin" | "/usr/bin") {
            let is_there = |name: &&str| player.is_program(&format!("{folder}/{name}"));
            for name in image_programs::names(&player.around.image).into_iter().filter(is_there) {
                let program = || File::new(*b"", PROGRAM_MODE);
                found.entry(name.to_owned()).or_insert_with(|| Some(program()));
            }
        }
        if self.has("a") {
            found.extend([".", ".."].map(|dots| (dots.to_owned(), None)));
        }
        let mut listed = Vec::new();
        for (name, file) in found {
            if name.starts_with('.') && !self.has("aA") {
                continue;
            }
            let path = format!("{prefix}{name}");
            let file = file
                .or_else(|| known.get(&path).cloned())
                .unwrap_or_else(|| implied_folder(player, &file_system::absolute("/", &path)));
            let stamp = player.stamp_at(&file_system::absolute("/", &path), &file);
            listed.push(ListedFile { name, path, file, stamp });
        }
        self.sort(&mut listed);
        listed
    }

    fn sort(&self, listed: &mut [ListedFile]) {
        if self.has("t") {
            listed.sort_by_key(|one| std::cmp::Reverse(one.stamp.modified));
        }
        if self.has("S") {
            listed.sort_by_key(|one| std::cmp::Reverse(one.bytes()));
        }
        if self.has("r") {
            listed.reverse();
        }
    }

    /// What they take, before a long list.
    fn total(&self, listed: &[ListedFile]) -> String {
        if !self.is_long() {
            return String::new();
        }
        let room = |one: &ListedFile| {
            if one.file.is_link() { 0 } else { one.bytes().next_multiple_of(ROOM_BYTES) / BLOCK_BYTES }
        };
        let blocks: usize = listed.iter().map(room).sum();
        let is_human = self.has("h") && blocks > 0;
        let told = if is_human { human(blocks * BLOCK_BYTES) } else { blocks.to_string() };
        format!("total {told}\n")
    }

    fn shown(&self, player: &Player<'_>, listed: &[ListedFile]) -> String {
        if !self.is_long() {
            let names: Vec<String> = listed.iter().map(|one| self.marked(one)).collect();
            return match self.columns.filter(|_| !self.has("1")) {
                Some(columns) => in_columns(&names, columns),
                None => names.iter().flat_map(|name| [name, "\n"]).collect(),
            };
        }
        let rows: Vec<[String; 7]> = listed.iter().map(|one| self.row(player, one)).collect();
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..7).map(width).collect();
        rows.iter().map(|row| if self.is_gnu { gnu_line(row, &widths) } else { busybox_line(row) }).collect()
    }

    /// Mode, links, owner, group, size, time and name.
    fn row(&self, player: &Player<'_>, one: &ListedFile) -> [String; 7] {
        let named = |id: i64| if id == 0 && !self.has("n") { "root".to_owned() } else { id.to_string() };
        let size = if self.has("h") { human(one.bytes()) } else { one.bytes().to_string() };
        [
            one.file.permissions(),
            if one.file.is_folder { "2" } else { "1" }.to_owned(),
            named(one.stamp.user),
            named(one.stamp.group),
            size,
            time(one.stamp.modified, player.now()),
            self.marked(one) + &copying::arrow(&one.file),
        ]
    }

    /// The name, and behind it what it is, where that is asked for.
    fn marked(&self, one: &ListedFile) -> String {
        let mark = match &one.file {
            file if file.is_folder && self.has("Fp") => "/",
            file if file.is_link() && self.has("F") && !self.is_long() => "@",
            file if file.is_pipe() && self.has("F") => "|",
            file if !file.is_link() && !file.is_folder && self.has("F") && file.mode & 0o111 != 0 => "*",
            _ => "",
        };
        format!("{}{mark}", one.name)
    }
}

impl ListedFile {
    fn bytes(&self) -> usize {
        if self.file.is_folder { FOLDER_BYTES } else { self.file.size() }
    }
}

/// `4.0K`, as both write it.
pub(super) fn human(bytes: usize) -> String {
    let mut size = bytes as f64;
    for unit in ["", "K", "M", "G"] {
        if size < 1024.0 {
            return match unit {
                "" => bytes.to_string(),
                _ if size < 10.0 => format!("{size:.1}{unit}"),
                _ => format!("{size:.0}{unit}"),
            };
        }
        size /= 1024.0;
    }
    format!("{size:.0}T")
}

fn time(modified: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let is_recent = modified <= now && now - modified < Duration::days(RECENT_DAYS);
    let format = if is_recent { "%b %e %H:%M" } else { "%b %e  %Y" };
    modified.format(format).to_string()
}

fn busybox_line(row: &[String; 7]) -> String {
    let [mode, links, owner, group, size, time, name] = row;
    format!("{mode} {links:>4} {owner:<8} {group:<8} {size:>9} {time} {name}\n")
}

fn gnu_line(row: &[String; 7], widths: &[usize]) -> String {
    let [mode, links, owner, group, size, time, name] = row;
    let [_, of_links, of_owner, of_group, of_size, ..] = widths else { return String::new() };
    format!(
        "{mode} {links:>of_links$} {owner:<of_owner$} {group:<of_group$} {size:>of_size$} {time} {name}\n"
    )
}

/// As many columns as fit, filled from the top down.
fn in_columns(names: &[String], columns: usize) -> String {
    let Some(widest) = names.iter().map(|name| name.chars().count() + GAP).max() else {
        return String::new();
    };
    let rows = names.len().div_ceil((columns.saturating_add(GAP) / widest).max(1));
    let mut out = String::new();
    for row in 0..rows {
        let line: Vec<&String> = names.iter().skip(row).step_by(rows).collect();
        for (at, name) in line.iter().enumerate() {
            let width = if at + 1 == line.len() { 0 } else { widest };
            out.push_str(&format!("{name:<width$}"));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    fn said(image: &str, line: &str) -> String {
        let words = ["sh".to_owned(), "-c".to_owned(), line.to_owned()];
        let around = Surroundings { image: image.into(), ..Surroundings::default() };
        let ran = exec(&words, &around, vec![], None).expect("it is understood");
        ran.out + &ran.errors
    }

    const MADE: &str = "mkdir -p /t/d/e; cd /t; echo abc > f; echo a > .h; chmod 700 f; ln -s f l; ";

    #[test]
    fn folders_are_listed_as_busybox_does() {
        let folder = "drwxr-xr-x    2 root     root          4096 Jan  1 00:00";
        let file = "-rwx------    1 root     root             4 Jan  1 00:00";
        let link = "lrwxrwxrwx    1 root     root             1 Jan  1 00:00";
        for (line, wanted) in [
            ("ls", "d\nf\nl\n".to_owned()),
            ("ls -A", ".h\nd\nf\nl\n".into()),
            ("ls -a", ".\n..\n.h\nd\nf\nl\n".into()),
            ("ls -r", "l\nf\nd\n".into()),
            ("ls -F", "d/\nf*\nl@\n".into()),
            ("ls -d . d f", ".\nd\nf\n".into()),
            ("ls -l", format!("total 8\n{folder} d\n{file} f\n{link} l -> f\n")),
            ("ls -ld d", format!("{folder} d\n")),
            ("ls -l f", format!("{file} f\n")),
            ("ls -lh f | grep -c ' 4 Jan'", "1\n".into()),
            ("ls f d", "f\n\nd:\ne\n".into()),
            ("mkdir c; ls d c f .h", ".h\nf\n\nc:\n\nd:\ne\n".into()),
            ("ls -R", ".:\nd\nf\nl\n\n./d:\ne\n\n./d/e:\n".into()),
            (
                "ls -l /bin/sh | cut -c1-10; [ -x \"$(command -v awk)\" ] && [ -f /bin/cat ] && echo there",
                "-rwxr-xr-x\nthere\n".into(),
            ),
            ("[ -x /bin/rsync ] || [ -e /lib/awk ] || echo none", "none\n".into()),
            ("ls none", "ls: none: No such file or directory\n".into()),
            ("ls -d /tmp; ls -ld /tmp | cut -c1-10", "/tmp\ndrwxrwxrwt\n".into()),
            (
                "sleep 2; touch f; sleep 2; touch d/n; ls -t | head -1; ls -l --full-time f | wc -l",
                "f\n1\n".into(),
            ),
            ("sleep 60; echo b >> f; ls -l f | grep -o '00:01 f'", "00:01 f\n".into()),
            (
                "sleep 2; touch g; [ g -nt f ] && [ f -ot g ] && [ f -nt none ] && echo newer",
                "newer\n".into(),
            ),
        ] {
            assert_eq!(said("busybox", &format!("{MADE}{line}")), wanted, "{line}");
        }
        let root = said("busybox", "ls /");
        assert!(root.starts_with("bin\ndev\netc\nhome\n") && root.ends_with("usr\nvar\n"), "{root}");
    }

    #[test]
    fn folders_are_listed_as_gnu_does() {
        for (line, wanted) in [
            (
                "rm -r d l; echo abcdefghijkl > g; ls -l | tail -1",
                "-rw-r--r-- 1 root root 13 Jan  1 00:00 g\n",
            ),
            (
                "rm -r d l; echo abcdefghijkl > g; ls -l | tail -2 | head -1",
                "-rwx------ 1 root root  4 Jan  1 00:00 f\n",
            ),
            ("ls none; echo $?", "2\nls: cannot access 'none': No such file or directory\n"),
        ] {
            assert_eq!(said("debian", &format!("{MADE}{line}")), wanted, "{line}");
        }
    }

    #[test]
    fn names_stand_in_columns() {
        let names: Vec<String> = ["a", "bb", "ccc", "d", "e"].map(str::to_owned).into();
        assert_eq!(super::in_columns(&names, 14), "a    ccc  e\nbb   d\n");
        assert_eq!(super::in_columns(&names, 3), "a\nbb\nccc\nd\ne\n");
        assert_eq!(super::in_columns(&[], 80), "");
    }
}
