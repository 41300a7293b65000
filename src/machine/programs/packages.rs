//! Package managers: what somebody wants to have is there from then on, as far as it is played at all.
//! Nothing is fetched from anywhere.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::finding::is_builtin;
use crate::file_system::File;
use crate::interpreter::player::{AfterCommand, Player};

/// How an installed program begins; its name stands behind that, so that a copy of it is the same program.
const MAGIC: &[u8] = b"\x7fELF\x02\x01\x01\0";
/// Where packages put their programs.
const FOLDER: &str = "/usr/bin";

/// By package managers: packages, and the programs that each brings.
type Packages = BTreeMap<&'static str, BTreeMap<&'static str, Vec<&'static str>>>;

static PACKAGES: LazyLock<Packages> = LazyLock::new(|| {
    let text = include_str!("packages.txt");
    let sections = text.split("\n\n").filter_map(|section| section.split_once('\n'));
    let package = |line: &'static str| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.collect()))
    };
    let of_manager = |(manager, lines): (&'static str, &'static str)| {
        (manager, lines.lines().filter_map(package).collect())
    };
    sections.filter(|(manager, _)| !manager.starts_with('#')).map(of_manager).collect()
});

/// A package manager: whose packages it knows, and what it is told.
struct PackageManager {
    section: &'static str,
    install: &'static str,
    remove: &'static [&'static str],
    /// Flags with a value.
    valued: &'static [&'static str],
    said: &'static str,
    /// How it says that it may not, and its code then.
    refusal: (&'static str, i32),
}

const APK: PackageManager = PackageManager {
    section: "apk",
    install: "add",
    remove: &["del"],
    valued: &["-t", "--virtual", "-X", "--repository", "-p", "--root", "--arch", "--keys-dir", "--wait"],
    said: "OK: 8 MiB in 15 packages\n",
    refusal: ("ERROR: Unable to lock database: {}\nERROR: Failed to open apk database: {}\n", 99),
};
const APT: PackageManager = PackageManager {
    section: "apt",
    install: "install",
    remove: &["remove", "purge"],
    valued: &["-o", "--option", "-t", "--target-release", "-c", "--config-file"],
    said: "Reading package lists...\nBuilding dependency tree...\n",
    refusal: (
        "E: Could not open lock file /var/lib/dpkg/lock-frontend - open ({})\n\
         E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?\n",
        100,
    ),
};

/// The program that an installed file is.
pub(super) fn program_in(file: &File) -> Option<String> {
    let name = file.content.strip_prefix(MAGIC)?;
    String::from_utf8(name.to_vec()).ok()
}

/// `apk add NAME...`, `apt-get install NAME...`, and what undoes them.
pub(super) fn manage(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    let manager = match name {
        "apk" => &APK,
        "apt-get" | "apt" => &APT,
        _ => {
            player.say("Complete!\n");
            return AfterCommand::Go;
        }
    };
    let plain = plain_words(manager, words);
    match plain.split_first() {
        Some((verb, packages)) if *verb == manager.install || manager.remove.contains(verb) => {
            if let Err(why) = may_write(player) {
                let (text, code) = manager.refusal;
                player.complain(&text.replace("{}", &why));
                player.status = code;
                return AfterCommand::Go;
            }
            let is_played = |name: &str| player.plays(name);
            let all: Vec<&str> =
                packages.iter().flat_map(|package| programs(manager, package, &is_played)).collect();
            for program in all {
                put(player, program, *verb == manager.install);
            }
        }
        _ => {}
    }
    player.say(manager.said);
    AfterCommand::Go
}

/// Whether it may write its files.
fn may_write(player: &Player<'_>) -> Result<(), String> {
    match player.around.user {
        0 => player.check_writable(&format!("{FOLDER}/x")).map_err(|why| why.to_string()),
        _ => Err("Permission denied".into()),
    }
}

/// Without flags and their values.
fn plain_words<'a>(manager: &PackageManager, words: &[&'a str]) -> Vec<&'a str> {
    let is_value = |at: usize| at > 0 && manager.valued.contains(&words[at - 1]);
    let plain = words.iter().enumerate().filter(|(at, word)| !word.starts_with('-') && !is_value(*at));
    plain.map(|(_, word)| *word).collect()
}

/// What a package brings: what its line says, or the program that is called as it is. It may be named with a
/// version, an architecture or a repository.
fn programs<'a>(
    manager: &PackageManager,
    package: &'a str,
    is_played: &dyn Fn(&str) -> bool,
) -> Vec<&'a str> {
    let name = package.split(['=', '<', '>', '~', '@', '/', ':']).next().unwrap_or(package);
    let lines = PACKAGES.get(manager.section);
    let line = |name: &str| lines.and_then(|lines| lines.get(name)).cloned();
    if let Some(programs) = line(name) {
        return programs;
    }
    if is_played(name) && !is_builtin(name) {
        return vec![name];
    }
    // As `postgresql16-client` and `postgresql-client-16`.
    let unversioned: String = name.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    line(unversioned.trim_end_matches('-')).unwrap_or_default()
}

fn put(player: &mut Player<'_>, program: &str, is_there: bool) {
    let path = format!("{FOLDER}/{program}");
    let installed = player.file(&path).filter(|file| program_in(file).is_some());
    if is_there {
        player.put_file(path, Some(File::new([MAGIC, program.as_bytes()].concat(), 0o755)));
    } else if installed.is_some() {
        player.put_file(path, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::is_known;

    #[test]
    fn every_program_of_a_package_is_played() {
        assert_eq!(PACKAGES.keys().copied().collect::<Vec<_>>(), ["apk", "apt"]);
        for (package, programs) in PACKAGES.values().flatten() {
            assert!(!programs.is_empty() && programs.iter().all(|name| is_known(name)), "{package}");
        }
    }

    #[test]
    fn packages_are_named_in_many_ways() {
        for (manager, package, wanted) in [
            (&APK, "curl", vec!["curl"]),
            (&APK, "curl=8.11.0-r2", vec!["curl"]),
            (&APK, "kubectl@testing", vec!["kubectl"]),
            (&APK, "bind-tools", vec!["dig", "host", "nslookup"]),
            (&APK, "postgresql16-client", vec!["pg_isready"]),
            (&APT, "postgresql-client-16", vec!["pg_isready"]),
            (&APT, "python3:amd64", vec!["python3"]),
            (&APT, "bind-tools", vec![]),
            (&APT, "ca-certificates", vec![]),
        ] {
            assert_eq!(programs(manager, package, &is_known), wanted, "{package}");
        }
        let words = ["add", "--no-cache", "-t", ".deps", "curl"];
        assert_eq!(plain_words(&APK, &words), ["add", "curl"]);
    }
}
