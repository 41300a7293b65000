//! Programs about files: `cat`, `ls`, `touch`, `rm` and their kin.

use super::copying;
use super::dates;
use super::filling;
use super::input::read;
use super::listing;
use super::tar;
use super::tools::RunProgram;
use crate::byte_text;
use crate::file_system::{self, File, FileStamp, PERMISSIONS};
use crate::interpreter::dialect::Dialect;
use crate::interpreter::player::{AfterCommand, Player};

const PROGRAMS: &[&str] = &[
    "cat", "ls", "touch", "rm", "mkdir", "rmdir", "cp", "mv", "chmod", "chown", "tee", "tail", "stat", "ln",
    "find", "tar", "du", "gzip", "gunzip", "zcat", "readlink", "realpath", "truncate", "install",
];

pub(crate) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name)
}

/// Runs one of them.
pub(crate) fn run(
    player: &mut Player<'_>,
    name: &str,
    words: &[&str],
    run_program: RunProgram,
) -> AfterCommand {
    let (flags, paths): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    match name {
        "cat" if player.hears() && (paths.is_empty() || paths == ["-"]) => return player.repeat_heard(),
        "cat" => cat(player, &paths),
        "ls" => listing::ls(player, words),
        "find" => return super::find::run(player, words, run_program),
        "du" => du(player, &flags, &paths),
        "gzip" | "gunzip" | "zcat" => super::gzip::run(player, name, &flags, &paths),
        "readlink" | "realpath" => copying::tell_links(player, name, &flags, &paths),
        "chmod" => chmod(player, &paths),
        "truncate" => truncate(player, words),
        "touch" => touch(player, words),
        "rm" | "rmdir" => paths.iter().for_each(|path| rm(player, &flags, path)),
        "mkdir" => copying::mkdir(player, words),
        _ if copying::is_known(name) => copying::run(player, name, words),
        "tee" => tee(player, &flags, &paths),
        "tail" if flags.iter().any(|flag| matches!(*flag, "-f" | "-F")) => {
            cat(player, &paths);
            return player.sleep(std::time::Duration::MAX);
        }
        "stat" => super::stat::run(player, words),
        "tar" => return tar::run(player, words),
        _ => {}
    }
    AfterCommand::Go
}

fn cat(player: &mut Player<'_>, paths: &[&str]) {
    if paths.is_empty() || paths == ["-"] {
        let input = player.input_bytes();
        return player.say_bytes(&input);
    }
    let mut status = 0;
    for path in paths {
        match read(player, "cat", path) {
            Some(text) => player.say(&text),
            None => status = 1,
        }
    }
    player.status = status;
}

fn write(player: &mut Player<'_>, program: &str, path: &str, content: Vec<u8>) {
    if let Err(why) = player.write_file(path, content) {
        player.fail(&format!("{program}: {path}: {why}\n"));
    }
}

/// `touch [-c] [-d TIME | -r FILE] FILE...`
fn touch(player: &mut Player<'_>, words: &[&str]) {
    let mut modified = player.now();
    let mut creates = true;
    let mut paths = vec![];
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-d" | "-t" => {
                let text = words.next().unwrap_or_default();
                let Some(time) = dates::read(text, modified) else {
                    let is_gnu = player.dialect != Dialect::Ash;
                    let kind = if is_gnu { "invalid date format" } else { "invalid date" };
                    return player.fail(&format!("touch: {kind} '{text}'\n"));
                };
                modified = time;
            }
            "-r" => {
                let other = words.next().and_then(|path| player.file(path));
                modified = other.map_or(modified, |file| player.stamp_of(&file).modified);
            }
            "-c" => creates = false,
            word if word.starts_with('-') && word.len() > 1 => {}
            path => paths.push(path),
        }
    }
    for path in paths {
        let full = player.real_path(path);
        let old = player.file(path);
        if old.is_none() && (!creates || player.is_folder(path)) {
            continue;
        }
        if let Err(why) = player.check_writable(&full) {
            player.fail(&format!("touch: {path}: {why}\n"));
            continue;
        }
        let file = old.unwrap_or_else(|| File::new(*b"", 0o644));
        let stamp = file.stamp.unwrap_or(player.own_stamp());
        player.put_file(full, Some(File { stamp: Some(FileStamp { modified, ..stamp }), ..file }));
    }
}

fn rm(player: &mut Player<'_>, flags: &[&str], path: &str) {
    let full = player.own_path(path);
    let is_recursive = flags.iter().any(|flag| flag.contains(['r', 'R']));
    let doomed: Vec<String> = player
        .files()
        .into_keys()
        .filter(|file| *file == full || (is_recursive && file_system::is_within(&full, file)))
        .collect();
    let forced = flags.iter().any(|flag| flag.contains('f'));
    if doomed.is_empty() && !forced {
        return player.fail(&format!("rm: can't remove '{path}': No such file or directory\n"));
    }
    if let Err(why) = player.check_writable(&full) {
        return player.fail(&format!("rm: can't remove '{path}': {why}\n"));
    }
    doomed.into_iter().for_each(|file| player.put_file(file, None));
}

fn tee(player: &mut Player<'_>, flags: &[&str], paths: &[&str]) {
    let input = player.input();
    for path in paths {
        let old = player.file(path).filter(|_| flags.contains(&"-a"));
        let mut content = old.map_or_else(Vec::new, |file| file.content.to_vec());
        content.extend_from_slice(&byte_text::bytes_of(&input));
        write(player, "tee", path, content);
    }
    player.say(&input);
}

/// How much files take, each folder for itself.
fn du(player: &mut Player<'_>, flags: &[&str], paths: &[&str]) {
    let has = |letter: char| flags.iter().any(|flag| flag.contains(letter));
    let paths = if paths.is_empty() { vec!["."] } else { paths.to_vec() };
    for path in paths {
        let full = player.real_path(path);
        let is_there = player.file(&full).is_some() || player.is_folder(&full);
        if !is_there {
            player.fail(&format!("du: {path}: No such file or directory\n"));
            continue;
        }
        let files = player.files();
        let below = files.iter().filter(|(file, _)| file_system::is_within(&full, file));
        let bytes: usize = below.map(|(_, file)| file.size()).sum();
        // Blocks of 4 KiB.
        let kib = bytes.div_ceil(4096) * 4 + 4;
        let shown = if has('b') {
            bytes.to_string()
        } else if has('h') {
            format!("{kib}.0K")
        } else {
            kib.to_string()
        };
        player.say(&format!("{shown}\t{path}\n"));
    }
}

/// Modes in digits, and `+x` and its kin.
fn chmod(player: &mut Player<'_>, words: &[&str]) {
    let Some((mode, paths)) = words.split_first() else { return };
    for path in paths {
        let full = player.real_path(path);
        let Some(file) = player.file(&full) else {
            // Of the image's own files nothing is known.
            if !file_system::is_of_image(&full) && !player.is_folder(&full) {
                player.fail(&format!("chmod: {path}: No such file or directory\n"));
            }
            continue;
        };
        if let Err(why) = player.check_writable(&full) {
            player.fail(&format!("chmod: {path}: {why}\n"));
            continue;
        }
        let mode = changed_mode(file.mode & PERMISSIONS, mode) | file.mode & !PERMISSIONS;
        player.put_file(full, Some(File { mode, ..file }));
    }
}

fn changed_mode(mode: u32, text: &str) -> u32 {
    if let Ok(octal) = u32::from_str_radix(text, 8) {
        return octal & 0o7777;
    }
    text.split(',').fold(mode, |mode, change| {
        let Some(at) = change.find(['+', '-', '=']) else { return mode };
        let (who, what) = (&change[..at], &change[at + 1..]);
        let bits: u32 = what
            .chars()
            .map(|c| match c {
                'r' => 4,
                'w' => 2,
                'x' | 'X' => 1,
                _ => 0,
            })
            .sum();
        let shifts = [('u', 6), ('g', 3), ('o', 0)];
        let all = who.is_empty() || who.contains('a');
        let meant = shifts.iter().filter(|(letter, _)| all || who.contains(*letter));
        meant.fold(mode, |mode, (_, shift)| match &change[at..=at] {
            "+" => mode | bits << shift,
            "-" => mode & !(bits << shift),
            _ => mode & !(7 << shift) | bits << shift,
        })
    })
}

/// `truncate -s SIZE FILE`
fn truncate(player: &mut Player<'_>, words: &[&str]) {
    let at = words.iter().position(|word| *word == "-s");
    let size = at.and_then(|at| words.get(at + 1)).and_then(|size| match *size {
        "0" => Some(0),
        size => filling::bytes_of(size),
    });
    let (Some(size), Some(path)) = (size, words.last()) else {
        return player.fail("truncate: usage: truncate -s SIZE FILE\n");
    };
    if !player.holds(size) {
        return filling::fill(player, "truncate", path, size);
    }
    let mut content = player.file(path).map(|file| file.content.to_vec()).unwrap_or_default();
    content.resize(size, 0);
    write(player, "truncate", path, content);
}
