//! `tar`: what `kubectl cp` runs at the other end. Plain archives alone, of files and folders; bytes stay as
//! they are.

use std::collections::BTreeMap;

use super::gzip;
use crate::bounds::ScriptFault;
use crate::file_system::{self, File, PERMISSIONS};
use crate::interpreter::player::{AfterCommand, Player};

const BLOCK_BYTES: usize = 512;
/// A name that fits into its field of a header.
const NAME_BYTES: usize = 100;
/// Where the fields of a header are that are written and read here.
const MODE: (usize, usize) = (100, 8);
const SIZE: (usize, usize) = (124, 12);
const CHECKSUM: (usize, usize) = (148, 8);
const KIND: usize = 156;
const MAGIC: (usize, usize) = (257, 8);
const PREFIX: (usize, usize) = (345, 155);
const FILE: u8 = b'0';
const FOLDER: u8 = b'5';
/// What a symbolic link leads to stands in the header itself.
const LINK: u8 = b'2';
const LINK_TARGET: (usize, usize) = (157, 100);
/// The next entry's name is longer than its field (GNU).
const LONG_NAME: u8 = b'L';
/// Facts about the next entry (POSIX).
const FACTS: u8 = b'x';

/// What a command line says.
#[derive(Debug, Default, PartialEq)]
struct TarCommand<'a> {
    /// `c`, `x` or `t`.
    does: Option<char>,
    archive: Option<&'a str>,
    folder: Option<&'a str>,
    is_verbose: bool,
    /// Through `gzip`.
    is_packed: bool,
    paths: Vec<&'a str>,
}

/// One thing in an archive.
#[derive(Debug, PartialEq)]
struct ArchiveEntry<'a> {
    name: String,
    mode: u32,
    kind: u8,
    /// What a symbolic link leads to.
    link: String,
    content: &'a [u8],
}

/// Runs it.
pub(crate) fn run(player: &mut Player<'_>, words: &[&str]) -> AfterCommand {
    let asked = match TarCommand::read(words) {
        Ok(asked) => asked,
        Err(why) => {
            player.fail(&format!("tar: {why}\n"));
            return AfterCommand::Go;
        }
    };
    let before = player.folder.clone();
    if let Some(folder) = asked.folder {
        if !player.is_folder(folder) && player.file(folder).is_none_or(|file| !file.is_folder) {
            player.fail(&format!("tar: can't change directory to '{folder}': No such file or directory\n"));
            return AfterCommand::Go;
        }
        player.folder = file_system::absolute(&before, folder);
    }
    match asked.does {
        Some('c') => create(player, &asked, &before),
        Some(_) => read_archive(player, &asked, &before),
        None => player.fail("tar: must specify one of -c -x -t\n"),
    }
    player.folder = before;
    AfterCommand::Go
}

impl<'a> TarCommand<'a> {
    fn read(words: &[&'a str]) -> Result<TarCommand<'a>, String> {
        let mut asked = TarCommand::default();
        let mut words = words.iter().enumerate();
        while let Some((at, word)) = words.next() {
            if word.starts_with("--") {
                continue;
            }
            let is_flags = word.starts_with('-') && word.len() > 1;
            if !is_flags && at > 0 {
                asked.paths.push(word);
                continue;
            }
            for flag in word.trim_start_matches('-').chars() {
                let mut argument = || {
                    let needs = || format!("option requires an argument -- '{flag}'");
                    words.next().map(|(_, word)| *word).ok_or_else(needs)
                };
                match flag {
                    'c' | 'x' | 't' => asked.does = Some(flag),
                    'f' => asked.archive = Some(argument()?),
                    'C' => asked.folder = Some(argument()?),
                    'v' => asked.is_verbose = true,
                    'z' => asked.is_packed = true,
                    'm' | 'p' | 'o' | 'k' | 'h' | 'P' => {}
                    flag => return Err(format!("invalid option -- '{flag}'")),
                }
            }
        }
        asked.archive = asked.archive.filter(|archive| *archive != "-");
        Ok(asked)
    }
}

fn create(player: &mut Player<'_>, asked: &TarCommand<'_>, home: &str) {
    let mut archive = Vec::new();
    if asked.paths.is_empty() {
        return player.fail("tar: empty archive\n");
    }
    if asked.paths.iter().any(|path| path.starts_with('/')) {
        player.complain("tar: removing leading '/' from member names\n");
    }
    let mut is_whole = true;
    for path in &asked.paths {
        let found = found(player, path);
        if found.is_empty() {
            player.complain(&format!("tar: {path}: No such file or directory\n"));
            is_whole = false;
        }
        for (name, file) in found {
            if file.is_link() && file.content.len() > LINK_TARGET.1 {
                player.complain(&format!("tar: {name}: link is too long\n"));
                is_whole = false;
                continue;
            }
            if !player.handle_file(&file) || !player.handle(BLOCK_BYTES) {
                return;
            }
            if asked.is_verbose {
                player.complain(&format!("{name}\n"));
            }
            add(&mut archive, &name, &file);
        }
    }
    // An end that stands alone would tell whoever reads that all is well.
    if is_whole || !archive.is_empty() {
        archive.resize(archive.len() + 2 * BLOCK_BYTES, 0);
    }
    if asked.is_packed {
        player.handle(archive.len() * 4);
        archive = gzip::packed(&archive);
    }
    match asked.archive {
        None => player.say_bytes(&archive),
        Some(path) => {
            if let Err(why) = player.write_file(&file_system::absolute(home, path), archive) {
                return player.fail(&format!("tar: can't open '{path}': {why}\n"));
            }
        }
    }
    if !is_whole {
        player.fail("tar: error exit delayed from previous errors\n");
    }
}

/// A file, or a folder and all below it, by their names in an archive.
fn found(player: &mut Player<'_>, path: &str) -> BTreeMap<String, File> {
    let full = if path.ends_with('/') { player.real_path(path) } else { player.own_path(path) };
    let is_folder = player.is_folder(&full) && player.own_link(path).is_none();
    let name = path.trim_start_matches('/').trim_end_matches('/');
    let own_name = if name.is_empty() { "." } else { name };
    let mut found = BTreeMap::new();
    for (file_path, file) in player.files() {
        if !file_system::is_within(&full, &file_path) {
            continue;
        }
        let below = file_path[full.trim_end_matches('/').len()..].trim_start_matches('/');
        let slash = if below.is_empty() { "" } else { "/" };
        found.insert(format!("{own_name}{slash}{below}"), file);
    }
    if is_folder {
        found.insert(own_name.to_owned(), File::folder(0o755));
    }
    found
}

fn add(archive: &mut Vec<u8>, name: &str, file: &File) {
    let name = if file.is_folder { format!("{name}/") } else { name.to_owned() };
    if name.len() > NAME_BYTES {
        let long = [name.as_bytes(), &[0]].concat();
        archive.extend(header("././@LongLink", 0o644, LONG_NAME, long.len()));
        add_content(archive, &long);
    }
    if file.is_link() {
        let mut block = header(&name, 0o777, LINK, 0);
        block[LINK_TARGET.0..LINK_TARGET.0 + file.content.len()].copy_from_slice(&file.content);
        archive.extend(with_checksum(block));
        return;
    }
    let kind = if file.is_folder { FOLDER } else { FILE };
    archive.extend(header(&name, file.mode & PERMISSIONS, kind, file.content.len()));
    add_content(archive, &file.content);
}

fn add_content(archive: &mut Vec<u8>, content: &[u8]) {
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK_BYTES), 0);
}

fn header(name: &str, mode: u32, kind: u8, size: usize) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let mut put = |(from, _): (usize, usize), bytes: &[u8]| {
        block[from..from + bytes.len()].copy_from_slice(bytes);
    };
    put((0, NAME_BYTES), &name.as_bytes()[..name.len().min(NAME_BYTES)]);
    put(MODE, format!("{mode:07o}").as_bytes());
    // Owner and group are root's, and the time is none.
    put((108, 8), b"0000000");
    put((116, 8), b"0000000");
    put(SIZE, format!("{size:011o}").as_bytes());
    put((136, 12), b"00000000000");
    put((KIND, 1), &[kind]);
    put(MAGIC, b"ustar  \0");
    with_checksum(block)
}

fn with_checksum(mut block: [u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
    let sum = checksum(&block);
    block[CHECKSUM.0..CHECKSUM.0 + CHECKSUM.1].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The sum of a header, whose own field counts as blanks.
fn checksum(block: &[u8]) -> u64 {
    let field = CHECKSUM.0..CHECKSUM.0 + CHECKSUM.1;
    let bytes = block.iter().enumerate();
    bytes.map(|(at, byte)| u64::from(if field.contains(&at) { b' ' } else { *byte })).sum()
}

fn read_archive(player: &mut Player<'_>, asked: &TarCommand<'_>, home: &str) {
    let archive = match asked.archive {
        None => player.input_bytes(),
        Some(path) => match player.file(&file_system::absolute(home, path)) {
            Some(file) => file.content.to_vec(),
            None => return player.fail(&format!("tar: can't open '{path}': No such file or directory\n")),
        },
    };
    // A command that waits for its input has not run.
    if player.is_waiting || !player.handle(archive.len()) {
        return;
    }
    let archive = match gzip::is_packed(&archive).then(|| gzip::unpacked(&archive)) {
        None => archive,
        Some(Ok(unpacked)) if player.handle(unpacked.len()) => unpacked,
        Some(Ok(_)) => return,
        Some(Err(gzip::Unpacking::TooMuch)) => {
            player.stop(ScriptFault::Files);
            return;
        }
        Some(Err(gzip::Unpacking::NoStream)) => return player.fail("tar: corrupted gzip stream\n"),
    };
    let entries = match entries(&archive) {
        Ok(entries) => entries,
        Err(why) => return player.fail(&format!("tar: {why}\n")),
    };
    for entry in entries {
        let name = entry.name.trim_end_matches('/');
        let is_wanted =
            asked.paths.is_empty() || asked.paths.iter().any(|path| file_system::is_within(path, name));
        if !is_wanted {
            continue;
        }
        match (asked.does, asked.is_verbose) {
            (Some('t'), _) => player.say(&format!("{}\n", entry.name)),
            (_, is_verbose) => {
                if is_verbose {
                    player.say(&format!("{}\n", entry.name));
                }
                extract(player, &entry);
            }
        }
    }
}

fn extract(player: &mut Player<'_>, entry: &ArchiveEntry<'_>) {
    let name = entry.name.trim_start_matches('/').trim_end_matches('/');
    if name.split('/').any(|part| part == "..") {
        return player.fail(&format!("tar: name with '..' skipped: '{}'\n", entry.name));
    }
    let path = player.own_path(name);
    let file = match entry.kind {
        FILE | 0 => File::new(entry.content, entry.mode & 0o7777),
        FOLDER if player.is_folder(&path) => return,
        FOLDER => File::folder(entry.mode & 0o7777),
        LINK => File::link(&entry.link),
        _ => return player.fail(&format!("tar: can't create '{name}': Operation not permitted\n")),
    };
    match player.check_writable(&path) {
        Ok(()) => player.put_file(path, Some(file)),
        Err(why) => player.fail(&format!("tar: can't open '{name}': {why}\n")),
    }
}

/// All that is in an archive; what tar says of one that is broken.
fn entries(archive: &[u8]) -> Result<Vec<ArchiveEntry<'_>>, &'static str> {
    let mut entries = Vec::new();
    let mut rest = archive;
    let mut long_name = None;
    if archive.is_empty() {
        return Err("short read");
    }
    while let Some((block, behind)) = rest.split_at_checked(BLOCK_BYTES) {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(entries);
        }
        if number(block, CHECKSUM) != Some(checksum(block)) {
            return Err("invalid tar magic");
        }
        let size =
            number(block, SIZE).and_then(|size| usize::try_from(size).ok()).ok_or("invalid tar magic")?;
        let content = behind.get(..size).ok_or("short read")?;
        rest = behind.get(size.next_multiple_of(BLOCK_BYTES)..).unwrap_or_default();
        match block[KIND] {
            LONG_NAME => long_name = Some(text(content)),
            FACTS => long_name = path_of(content).or(long_name),
            b'g' => {}
            kind => {
                let name = long_name.take().unwrap_or_else(|| name(block));
                let mode = number(block, MODE).and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644);
                let link = text(&block[LINK_TARGET.0..LINK_TARGET.0 + LINK_TARGET.1]);
                entries.push(ArchiveEntry { name, mode, kind, link, content });
            }
        }
    }
    if rest.is_empty() { Ok(entries) } else { Err("short read") }
}

fn name(block: &[u8]) -> String {
    let name = text(&block[..NAME_BYTES]);
    let is_posix = block[MAGIC.0..].starts_with(b"ustar\0");
    match text(&block[PREFIX.0..PREFIX.0 + PREFIX.1]) {
        prefix if is_posix && !prefix.is_empty() => format!("{prefix}/{name}"),
        _ => name,
    }
}

/// What stands before the first zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn number(block: &[u8], (from, length): (usize, usize)) -> Option<u64> {
    let digits = text(&block[from..from + length]);
    u64::from_str_radix(digits.trim(), 8).ok()
}

/// `27 path=a/long/name`, among other facts.
fn path_of(facts: &[u8]) -> Option<String> {
    let facts = String::from_utf8_lossy(facts);
    let path = facts.lines().find_map(|fact| fact.split_once(' ')?.1.strip_prefix("path="));
    path.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Executed, exec};
    use crate::surroundings::Surroundings;

    fn run(words: &[&str], files: &[(&str, &[u8])], input: Option<Vec<u8>>) -> Executed {
        let command: Vec<String> = words.iter().map(ToString::to_string).collect();
        let file = |(path, content): &(&str, &[u8])| (path.to_string(), Some(File::new(*content, 0o640)));
        let files = files.iter().map(file).collect();
        exec(&command, &Surroundings { folder: "/".into(), ..Surroundings::default() }, files, input).unwrap()
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        let every: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let long = format!("/data/{}/x", "long".repeat(40));
        let files = [("/data/a", &every[..]), (&long, b"text"), ("/other", b"no")];
        let made = run(&["tar", "cf", "-", "/data"], &files, None);
        assert_eq!(made.errors, "tar: removing leading '/' from member names\n");
        let archive = crate::byte_text::bytes_of(&made.out).into_owned();
        assert_eq!(archive.len() % BLOCK_BYTES, 0);
        let listed = run(&["tar", "tf", "-"], &[], Some(archive.clone()));
        assert_eq!(listed.out, format!("data/\ndata/a\n{}\n", &long[1..]));
        let read = run(&["tar", "-xmf", "-", "-C", "/tmp"], &[], Some(archive));
        let written: BTreeMap<_, _> = read.written.into_iter().collect();
        let file = written["/tmp/data/a"].as_ref().unwrap();
        assert_eq!((&*file.content, file.mode), (&every, 0o640));
        assert!(written.contains_key(&format!("/tmp{long}")), "{:?}", written.keys());
        assert_eq!((written.len(), read.end.map(|(_, code)| code)), (3, Some(0)));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let code = |executed: Executed| (executed.end.map_or(-1, |(_, code)| code), executed.errors);
        let none = "tar: none: No such file or directory\ntar: error exit delayed from previous errors\n";
        assert_eq!(code(run(&["tar", "cf", "-", "none"], &[], None)), (1, none.into()));
        assert_eq!(code(run(&["tar", "xf", "-"], &[], Some(vec![]))), (1, "tar: short read\n".into()));
        let garbage = Some(vec![7; BLOCK_BYTES]);
        assert_eq!(code(run(&["tar", "xf", "-"], &[], garbage)), (1, "tar: invalid tar magic\n".into()));
        let mut huge = header("a", 0o644, FILE, 0).to_vec();
        huge[SIZE.0..SIZE.0 + 11].copy_from_slice(b"77777777777");
        let sum = format!("{:06o}", checksum(&huge));
        huge[CHECKSUM.0..CHECKSUM.0 + 6].copy_from_slice(sum.as_bytes());
        assert_eq!(code(run(&["tar", "xf", "-"], &[], Some(huge))), (1, "tar: short read\n".into()));
        let mut sly = Vec::new();
        let mut kept = Vec::new();
        add(&mut sly, "../etc/passwd", &File::new(*b"x", 0o644));
        add(&mut kept, "a", &File::new(*b"x", 0o644));
        let read = run(&["tar", "xf", "-"], &[], Some([sly, kept].concat()));
        assert_eq!(read.errors, "tar: name with '..' skipped: '../etc/passwd'\n");
        assert_eq!(read.written.len(), 1, "{:?}", read.written);
        assert!(run(&["tar", "xf", "-"], &[], None).is_waiting);
        let no_folder = "tar: can't change directory to '/no': No such file or directory\n";
        assert_eq!(code(run(&["tar", "xf", "-", "-C", "/no"], &[], Some(vec![]))), (1, no_folder.into()));
    }
}
