//! `stat`: what is known of a file, as a page or in a format of the user's.

use super::listing::implied_folder;
use super::words::unescape;
use crate::file_system::{File, PERMISSIONS};
use crate::interpreter::player::Player;

/// All of a file's times are that of its last change.
const TIMES: &str = "XYZW";

/// `stat [-L] [-c FORMAT | --format=FORMAT | --printf=FORMAT] FILE...`
pub(super) fn run(player: &mut Player<'_>, words: &[&str]) {
    let asked = read(words);
    if asked.paths.is_empty() {
        return player.fail("stat: missing operand\n");
    }
    for path in asked.paths {
        let full = if asked.follows { player.real_path(path) } else { player.own_path(path) };
        let folder = player.is_folder(path).then(|| implied_folder(player, &full));
        let Some(file) = player.own_file(&full).or(folder) else {
            player.fail(&format!("stat: can't stat '{path}': No such file or directory\n"));
            continue;
        };
        let format = asked.format.as_deref().unwrap_or(PAGE);
        if !player.handle(format.len() + (format.matches('%').count() + 1) * path.len()) {
            return;
        }
        let mut said = told(player, format, path, &file);
        if asked.ends_lines {
            said.push('\n');
        }
        player.say(&said);
    }
}

/// As GNU's prints it without a format.
const PAGE: &str = "  File: %n\n  Size: %s\tBlocks: %b\tIO Block: 4096   %F\nDevice: 0,50\tInode: %i\tLinks: %h\n\
                    Access: (%04a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: -";

/// What a command line of `stat` asks for.
struct AskedStat<'a> {
    format: Option<String>,
    follows: bool,
    ends_lines: bool,
    paths: Vec<&'a str>,
}

/// A format stands behind `-c` as a word of its own, or glued to it.
fn read<'a>(words: &[&'a str]) -> AskedStat<'a> {
    let mut asked = AskedStat { format: None, follows: false, ends_lines: true, paths: vec![] };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if let Some(format) = word.strip_prefix("--format=") {
            asked.format = Some(format.to_owned());
        } else if let Some(format) = word.strip_prefix("--printf=") {
            asked.ends_lines = false;
            asked.format = Some(unescape(format).0);
        } else if let Some(flag) = word.strip_prefix("--") {
            asked.follows |= flag == "dereference";
        } else if let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) {
            let format = flags.split_once('c');
            asked.follows |= format.map_or(flags, |(before, _)| before).contains('L');
            match format {
                Some((_, "")) => asked.format = words.next().map(str::to_owned),
                Some((_, glued)) => asked.format = Some(glued.to_owned()),
                None => {}
            }
        } else {
            asked.paths.push(word);
        }
    }
    asked
}

fn told(player: &Player<'_>, format: &str, path: &str, file: &File) -> String {
    let mut said = String::new();
    let mut rest = format.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter != '%' {
            said.push(letter);
            continue;
        }
        let is_padded = rest.next_if_eq(&'0').is_some();
        while rest.next_if(char::is_ascii_digit).is_some() {}
        match rest.next() {
            Some('a') if is_padded => said.push_str(&format!("{:04o}", file.mode & PERMISSIONS)),
            Some(letter) => said.push_str(&part(player, letter, path, file)),
            None => said.push('%'),
        }
    }
    said
}

fn part(player: &Player<'_>, letter: char, path: &str, file: &File) -> String {
    let name = |id: i64| if id == 0 { "root".to_owned() } else { "UNKNOWN".to_owned() };
    let stamp = player.stamp_at(&player.real_path(path), file);
    match letter {
        'a' => format!("{:o}", file.mode & PERMISSIONS),
        'A' => file.permissions(),
        's' if file.is_folder => "4096".into(),
        's' => file.size().to_string(),
        'b' => file.size().div_ceil(4096).saturating_mul(8).to_string(),
        'B' => "512".into(),
        'u' => stamp.user.to_string(),
        'g' => stamp.group.to_string(),
        'U' => name(stamp.user),
        'G' => name(stamp.group),
        'h' => "1".into(),
        'i' => "1".into(),
        'n' => path.into(),
        'N' if file.is_link() => format!("'{path}' -> '{}'", file.text()),
        'N' => format!("'{path}'"),
        'F' if file.is_folder => "directory".into(),
        'F' if file.is_pipe() => "fifo".into(),
        'F' if file.is_block_device() => "block special file".into(),
        'F' if file.is_link() => "symbolic link".into(),
        'F' if file.size() == 0 => "regular empty file".into(),
        'F' => "regular file".into(),
        '%' => "%".into(),
        letter if TIMES.contains(letter) => stamp.modified.timestamp().to_string(),
        letter if TIMES.contains(letter.to_ascii_uppercase()) => {
            stamp.modified.format("%Y-%m-%d %H:%M:%S.%f +0000").to_string()
        }
        letter => format!("?{letter}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::surroundings::Surroundings;

    fn said(line: &str) -> String {
        let words = ["sh".to_owned(), "-c".to_owned(), line.to_owned()];
        let ran = exec(&words, &Surroundings::default(), vec![], None).expect("it is understood");
        ran.out + &ran.errors
    }

    #[test]
    fn files_are_told_in_any_format() {
        let made = "cd /tmp; printf abcd > f; chmod 640 f; mkfifo p; mkdir d; ";
        for (line, wanted) in [
            ("stat -c '%a %A %s %F %n' f p", "640 -rw-r----- 4 regular file f\n644 prw-r--r-- 0 fifo p\n"),
            ("stat --format=%U:%G:%h d", "root:root:1\n"),
            ("stat -Lc %F d", "directory\n"),
            ("stat -c'=%g' f; stat -Lc%a f; stat --printf='%s\\n' f d", "=0\n640\n4\n4096\n"),
            ("stat -c '100%% %Q' f", "100% ?Q\n"),
            ("stat f | grep -o 'Access: (0640/-rw-r-----)'", "Access: (0640/-rw-r-----)\n"),
            ("stat none", "stat: can't stat 'none': No such file or directory\n"),
            ("test -p p && echo pipe; test -p f || echo none; ls -l p | cut -c1", "pipe\nnone\np\n"),
            ("chmod 600 p; stat -c %a%F p", "600fifo\n"),
        ] {
            assert_eq!(said(&format!("{made}{line}")), wanted, "{line}");
        }
    }
}
