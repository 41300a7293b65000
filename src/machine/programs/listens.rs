//! Programs that listen: `httpd` of busybox, and python's `http.server`. A script that runs one listens from
//! then on until it ends; whoever asks it is answered among the files that there are then.

use std::time::Duration;

use crate::file_system;
use crate::interpreter::player::{AfterCommand, Player};
use crate::listeners::{Listens, ScriptListener};
use crate::shell::{self, Word};

/// Where python's server listens unless it is told otherwise.
const PYTHON_PORT: u16 = 8000;
/// Those of `httpd` that have a value.
const HTTPD_VALUED: &[char] = &['p', 'h', 'c', 'u', 'r', 'd', 'e', 'm'];

pub(crate) fn is_known(name: &str) -> bool {
    matches!(name, "httpd" | "python" | "python3")
}

/// Whether the words are those of a server that is known: not Apache's `httpd`, nor any other module of
/// python.
pub(crate) fn is_understood(name: &str, arguments: &[Word]) -> bool {
    let words: Vec<&str> = arguments.iter().map(|word| shell::plain(word).unwrap_or_default()).collect();
    match name {
        "httpd" => httpd(&words).is_some(),
        _ => matches!(words.as_slice(), ["-m", "http.server", ..] | ["-u", "-m", "http.server", ..]),
    }
}

pub(crate) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    if name != "httpd" {
        return python(player, words);
    }
    let Some(Httpd { port, folder, stays }) = httpd(words) else {
        player.fail("httpd: usage: httpd [-f] [-p PORT] [-h HOME]\n");
        return AfterCommand::Go;
    };
    let folder = file_system::absolute(&player.folder, folder);
    player.listen(ScriptListener { port, what: Listens::Files(folder) });
    if stays { player.sleep(Duration::MAX) } else { AfterCommand::Go }
}

struct Httpd<'a> {
    port: u16,
    folder: &'a str,
    /// It does not go into the background.
    stays: bool,
}

/// Nothing for what is no busybox.
fn httpd<'a>(words: &[&'a str]) -> Option<Httpd<'a>> {
    let mut httpd = Httpd { port: 80, folder: ".", stays: false };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-')?.char_indices();
        for (at, letter) in letters {
            let rest = word.get(at + 2..).filter(|rest| !rest.is_empty());
            match letter {
                'f' => httpd.stays = true,
                'v' | 'i' => {}
                letter if HTTPD_VALUED.contains(&letter) => {
                    let value = rest.or_else(|| words.next())?;
                    match letter {
                        'p' => httpd.port = value.rsplit(':').next()?.parse().ok()?,
                        'h' => httpd.folder = value,
                        _ => {}
                    }
                    break;
                }
                _ => return None,
            }
        }
    }
    Some(httpd)
}

/// `python3 -m http.server [PORT] [--directory FOLDER]`
fn python(player: &mut Player<'_>, words: &[&str]) -> AfterCommand {
    let (port, folder) = http_server(words);
    player.say(&format!("Serving HTTP on 0.0.0.0 port {port} (http://0.0.0.0:{port}/) ...\n"));
    let folder = file_system::absolute(&player.folder, folder);
    player.listen(ScriptListener { port, what: Listens::Python(folder) });
    player.sleep(Duration::MAX)
}

/// The port and the folder.
fn http_server<'a>(words: &[&'a str]) -> (u16, &'a str) {
    let at = words.iter().position(|word| *word == "http.server").map_or(0, |at| at + 1);
    let mut words = words[at..].iter().copied();
    let mut port = PYTHON_PORT;
    let mut folder = ".";
    while let Some(word) = words.next() {
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        match name {
            "-d" | "--directory" => folder = given.or_else(|| words.next()).unwrap_or(folder),
            name if name.starts_with('-') => {
                given.or_else(|| words.next());
            }
            name => port = name.parse().unwrap_or(port),
        }
    }
    (port, folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busyboxs_flags_are_told_from_apaches() {
        let read = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            httpd(&words).map(|httpd| (httpd.port, httpd.folder.to_owned(), httpd.stays))
        };
        assert_eq!(read("-f -p 8080 -h /www"), Some((8080, "/www".into(), true)));
        assert_eq!(read("-fvp 0.0.0.0:81"), Some((81, ".".into(), true)));
        assert_eq!(read(""), Some((80, ".".into(), false)));
        assert_eq!(read("-DFOREGROUND"), None);
        assert_eq!(read("-k start"), None);
    }

    #[test]
    fn pythons_server_is_told_where() {
        let read = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (port, folder) = http_server(&words);
            (port, folder.to_owned())
        };
        assert_eq!(read("-m http.server"), (8000, ".".into()));
        assert_eq!(read("-m http.server 80 --directory /www --bind 0.0.0.0"), (80, "/www".into()));
        assert_eq!(read("-u -m http.server -d=/a"), (8000, "/a".into()));
    }
}
