//! `stat`: what is known of a file, as a page or in a format of the user's.

use super::listing::implied_folder;
use crate::file_system::{File, PERMISSIONS};
use crate::interpreter::player::Player;

/// All of a file's times are that of its last change.
const TIMES: &str = "XYZW";

/// `stat [-L] [-c FORMAT] FILE...`
pub(super) fn run(player: &mut Player<'_>, words: &[&str]) {
    let (format, paths) = read(words);
    let follows = words.iter().any(|word| matches!(*word, "-L" | "--dereference" | "-Lc"));
    if paths.is_empty() {
        return player.fail("stat: missing operand\n");
    }
    for path in paths {
        let full = if follows { player.real_path(path) } else { player.own_path(path) };
        let folder = player.is_folder(path).then(|| implied_folder(player, &full));
        let Some(file) = player.own_file(&full).or(folder) else {
            player.fail(&format!("stat: can't stat '{path}': No such file or directory\n"));
            continue;
        };
        let length = format.map_or(PAGE.len(), str::len);
        if !player.handle(length + format.map_or(1, |format| format.matches('%').count()) * path.len()) {
            return;
        }
        let said = told(player, format.unwrap_or(PAGE), path, &file);
        player.say(&said);
    }
}

/// As GNU's prints it without a format.
const PAGE: &str = "  File: %n\n  Size: %s\tBlocks: %b\tIO Block: 4096   %F\nDevice: 0,50\tInode: %i\tLinks: %h\n\
                    Access: (%04a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: -";

/// The format and the files.
fn read<'a>(words: &[&'a str]) -> (Option<&'a str>, Vec<&'a str>) {
    let mut format = None;
    let mut paths = vec![];
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some(("--format" | "--printf", value)) => format = Some(value),
            _ if word.starts_with("--") => {}
            _ if word.starts_with('-') && word.ends_with('c') => format = words.next(),
            _ if word.starts_with('-') && word.len() > 1 => {}
            _ => paths.push(word),
        }
    }
    (format, paths)
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
    said.push('\n');
    said
}

fn part(player: &Player<'_>, letter: char, path: &str, file: &File) -> String {
    let name = |id: i64| if id == 0 { "root".to_owned() } else { "UNKNOWN".to_owned() };
    let stamp = player.stamp_at(&player.real_path(path), file);
    match letter {
        'a' => format!("{:o}", file.mode & PERMISSIONS),
        'A' => file.permissions(),
        's' if file.is_folder => "4096".into(),
        's' => file.content.len().to_string(),
        'b' => file.content.len().div_ceil(4096).saturating_mul(8).to_string(),
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
        'F' if file.is_link() => "symbolic link".into(),
        'F' if file.content.is_empty() => "regular empty file".into(),
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
