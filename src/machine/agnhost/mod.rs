//! What the test image of Kubernetes' own suites does (`test/images/agnhost`), as far as it needs no kernel,
//! and what the images before it did that had one program each. Programs that say something and end are
//! here; those that serve are known to [`crate::servers`], and what they say to whom is beside.

pub(crate) mod flags;
pub(crate) mod klog_line;

mod clients;

pub(crate) mod asking;
pub mod forward_tester;
pub(crate) mod guestbook;
pub(crate) mod netexec;
pub(crate) mod no_snat;
pub(crate) mod webhook;

use std::time::Duration;

use self::flags::{TLS_FILE, flag};
use crate::file_system::{self, File};
use crate::images;
use crate::interpreter::player::{Flow, Player};
use crate::invocation::Invocation;

/// Programs that end, or say something.
const PLAYED: &[&str] = &[
    "mounttest",
    "entrypoint-tester",
    "pause",
    "logs-generator",
    "fake-gitserver",
    "etc-hosts",
    "dns-suffix",
    "dns-server-list",
    "connect",
    "inclusterclient",
];
/// Programs that serve and look at files or at names: what they find is made for them.
const PREPARED: &[&str] = &[
    "netexec",
    "guestbook",
    "porter",
    "webhook",
    "crd-conversion-webhook",
    "no-snat-test",
    "no-snat-test-proxy",
    "test-webserver",
];
const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";
const NEW_FILE: &str = "mount-tester new file\n";
/// What `statfs` calls tmpfs is a name; any other type is its number, here that of ext4.
const EXT4: &str = "61267";

/// The command line of a container of such an image: the program that is played, with its arguments.
pub(crate) fn command_line(image: &str, command: &[String], arguments: &[String]) -> Option<Vec<String>> {
    let name = images::base_name(image);
    let mut line: Vec<String> = match (name, command) {
        ("agnhost", []) => vec!["/agnhost".into()],
        ("agnhost", command) if is_binary(&command[0]) => command.to_vec(),
        (name, []) if is_picture(name) => vec!["/agnhost".into(), "test-webserver".into()],
        ("mounttest" | "entrypoint-tester" | "logs-generator", []) => vec![format!("/{name}"), name.into()],
        ("nonewprivs", []) => return Some(vec!["nonewprivs".into()]),
        _ => return None,
    };
    line.extend(arguments.iter().cloned());
    if line.len() == 1 {
        line.push("pause".into());
    }
    let mode = line[1].as_str();
    (PLAYED.contains(&mode) || PREPARED.contains(&mode)).then_some(line)
}

/// Whether a program looks at what volumes and Services say.
pub(crate) fn looks_around(line: &[String]) -> bool {
    let mode = line.get(1).map_or("", String::as_str);
    let has_own = matches!(
        mode,
        "mounttest" | "inclusterclient" | "webhook" | "crd-conversion-webhook" | "porter" | "test-webserver"
    );
    has_own || flag(line, TLS_FILE).is_some()
}

/// The subcommand of a container of that image that serves something.
pub(crate) fn serves<'a>(invocation: &Invocation<'a>) -> Option<&'a str> {
    let name = images::base_name(invocation.image);
    if is_picture(name) && invocation.words().next().is_none() {
        return Some("test-webserver");
    }
    if name != "agnhost" {
        return None;
    }
    let mut words = invocation.words();
    words.find(|word| !is_binary(word) && !word.starts_with('-')).map(String::as_str)
}

/// Images that serve a picture, made from agnhost's.
pub(crate) fn is_picture(name: &str) -> bool {
    matches!(name, "kitten" | "nautilus")
}

fn is_binary(word: &str) -> bool {
    matches!(word, "/agnhost" | "agnhost" | "/agnhost-2")
}

/// Runs a command line.
pub(crate) fn run(player: &mut Player<'_>, line: &[String]) -> Flow {
    let arguments = line.get(2..).unwrap_or_default();
    match line.get(1).map(String::as_str) {
        Some("mounttest") => mount_test(player, arguments),
        Some("entrypoint-tester") => {
            player.say(&format!("[{}]\n", line.join(" ")));
            Flow::Go
        }
        Some("logs-generator") => generate_logs(player, arguments),
        Some("connect") => clients::connect(player, arguments).err().unwrap_or(Flow::Exit(player.status)),
        Some("inclusterclient") => clients::poll(player, arguments).err().unwrap_or(Flow::Go),
        Some("no-snat-test") => no_snat::begin(player),
        Some(mode) if PREPARED.contains(&mode) => player.sleep(Duration::MAX),
        Some("etc-hosts") => show_line(player, HOSTS, |text| text),
        Some("dns-suffix") => show_line(player, RESOLVER, |text| resolver_words(&text, "search")),
        Some("dns-server-list") => show_line(player, RESOLVER, |text| resolver_words(&text, "nameserver")),
        Some(_) => {
            player.say("Paused\n");
            player.sleep(Duration::MAX)
        }
        None => {
            player.say(&format!("Effective uid: {}\n", player.around.user));
            Flow::Go
        }
    }
}

/// What is made of a file, as a line.
fn show_line(player: &mut Player<'_>, path: &str, made: impl FnOnce(String) -> String) -> Flow {
    let text = player.file(path).map(|file| file.text()).unwrap_or_default();
    player.say(&format!("{}\n", made(text)));
    Flow::Go
}

/// The words behind `keyword` in a `resolv.conf`.
fn resolver_words(text: &str, keyword: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix(keyword));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(",")
}

/// Looks at files in a fixed order, whatever that of its flags.
fn mount_test(player: &mut Player<'_>, arguments: &[String]) -> Flow {
    let mut is_well = true;
    if let Some(path) = flag(arguments, "fs_type") {
        let mount = file_system::mount_of(&player.around.mounts, path);
        let kind = if mount.is_some_and(|mount| mount.is_memory) { "tmpfs" } else { EXT4 };
        player.say(&format!("mount type of {path:?}: {kind}\n"));
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
        None => Flow::Exit(player.status),
    }
}

fn show_file(player: &mut Player<'_>, what: &str, path: &str) -> bool {
    let Some(file) = player.file(path).or_else(|| root_of_volume(player, path)) else {
        player.say(&format!("error Lstat {path:?}: lstat {path}: no such file or directory\n"));
        return false;
    };
    let permissions = file.permissions();
    match what {
        "mode" if file.is_folder => {
            player.say(&format!("mode of file {path:?}: d{}\n", permissions.replacen('-', "", 1)));
        }
        "owner" => {
            player
                .say(&format!("owner UID of {path:?}: 0\nowner GID of {path:?}: {}\n", player.around.group));
        }
        what => player.say(&format!("{what} of file {path:?}: {permissions}\n")),
    }
    true
}

/// Everybody may write into a volume.
fn root_of_volume(player: &Player<'_>, path: &str) -> Option<File> {
    let is_root = player.around.mounts.iter().any(|mount| mount.path.trim_end_matches('/') == path);
    is_root.then(|| File::folder(0o777))
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
fn show_in_loop(player: &mut Player<'_>, path: &str, arguments: &[String]) -> Flow {
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
                    return Flow::Exit(0);
                }
                if breaks {
                    player.say(&format!("Unexpected content. Expected: {NEW_FILE}. Retrying"));
                }
            }
        }
        match player.pause(Duration::from_secs(2)) {
            Flow::Go => {}
            flow => return flow,
        }
    }
    Flow::Exit(player.status)
}

/// So many lines in so much time, each a request as an apiserver would log it.
fn generate_logs(player: &mut Player<'_>, arguments: &[String]) -> Flow {
    let total: u32 = flag(arguments, "log-lines-total").and_then(|count| count.parse().ok()).unwrap_or(0);
    let duration = flag(arguments, "run-duration").and_then(golang::duration::parse);
    let pause = duration.unwrap_or_default() / total.max(1);
    for number in 0..total {
        match player.pause(pause) {
            Flow::Go => {}
            flow => return flow,
        }
        let at = player.now();
        let method = ["GET", "POST", "PUT"][number as usize % 3];
        let namespace = ["kube-system", "default", "ns"][number as usize / 3 % 3];
        let status = 200 + number * 37 % 400;
        player.say(&format!(
            "I{} 1 logs_generator.go:76] {number} {method} /api/v1/namespaces/{namespace}/pods/p{number} {status}\n",
            at.format("%m%d %H:%M:%S%.6f      "),
        ));
    }
    Flow::Exit(0)
}
