//! Programs that tell of the machine and change it: disks, memory, sockets, terminals, package managers.

use super::mounting::is_in_sight_alone;
use super::openssl;
use super::packages;
use crate::file_system::{self, FIFO, File, MountedVolume, Tree};
use crate::interpreter::player::{AfterCommand, Player};
use crate::standard_input::TerminalSize;

const PROGRAMS: &[&str] = &[
    "df", "free", "top", "nproc", "ps", "stty", "tty", "tput", "clear", "reset", "mktemp", "mkfifo", "apk",
    "apt-get", "apt", "yum", "dnf", "microdnf", "lscpu", "dmesg", "arch", "logname", "groups", "getconf",
    "pgrep", "pkill", "pidof", "killall", "chgrp", "adduser", "addgroup", "useradd", "groupadd", "openssl",
];

pub(super) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name)
}

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    match name {
        "nproc" | "getconf" => player.say("8\n"),
        "arch" => player.say("x86_64\n"),
        "ps" => {
            let (main, own) =
                (player.around.process_name(), ["ps"].iter().chain(words).copied().collect::<Vec<_>>());
            let user = match player.around.user {
                0 => "root".to_owned(),
                number => number.to_string(),
            };
            player.say(&format!(
                "PID   USER     TIME  COMMAND\n    1 {user:<8}  0:00 {main}\n   12 {user:<8}  0:00 {}\n",
                own.join(" ")
            ));
        }
        "df" => df(player, words),
        "free" => free(player, words),
        "top" => top(player),
        "stty" | "tput" => terminal(player, name, words),
        "tty" => tty(player),
        "clear" | "reset" if player.terminal().is_some() => player.say("\u{1b}[H\u{1b}[J"),
        "mktemp" => mktemp(player, words),
        "mkfifo" => make_pipes(player, words),
        "apk" | "apt-get" | "apt" | "yum" | "dnf" | "microdnf" => {
            return packages::manage(player, name, words);
        }
        "lscpu" => player.say("Architecture:        x86_64\nCPU(s):              8\n"),
        "groups" | "logname" => {
            let root = if player.around.user == 0 { "root" } else { "nobody" };
            player.say(&format!("{root}\n"));
        }
        "pgrep" | "pidof" => player.status = 1,
        "pkill" | "killall" => player.fail(&format!("{name}: no process found\n")),
        "openssl" => return openssl::run(player, words),
        _ => {}
    }
    AfterCommand::Go
}

/// `df`, and `df -h PATH`: the disks of all files, or those that these paths are on.
fn df(player: &mut Player<'_>, words: &[&str]) {
    let (flags, paths): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let is_human = flags.iter().any(|flag| flag.contains('h'));
    let amounts = |kib: u64| if is_human { human(kib) } else { kib.to_string() };
    let unit = if is_human { "     Size" } else { "1K-blocks" };
    let mut said =
        format!("Filesystem           {unit:>9} {:>9} {:>9} Use% Mounted on\n", "Used", "Available");
    for disk in disks_of(player, &paths) {
        let percent = (disk.used * 100).div_ceil(disk.size.max(1));
        said.push_str(&format!(
            "{:<20} {:>9} {:>9} {:>9} {percent:>3}% {}\n",
            disk.device,
            amounts(disk.size),
            amounts(disk.used),
            amounts(disk.size.saturating_sub(disk.used)),
            disk.place
        ));
    }
    player.say(&said);
}

/// A line of `df`; amounts in KiB.
struct DiskLine {
    device: &'static str,
    place: String,
    size: u64,
    used: u64,
}

fn disks_of(player: &mut Player<'_>, paths: &[&str]) -> Vec<DiskLine> {
    let files = player.files();
    if paths.is_empty() {
        let of_volumes = player.mounts().iter().filter(|mount| !is_in_sight_alone(mount));
        let all = std::iter::once(None).chain(of_volumes.map(Some));
        return all.map(|mount| disk(&files, mount)).collect();
    }
    let mut lines = Vec::new();
    for path in paths {
        let full = player.real_path(path);
        if player.file(&full).is_none() && !player.is_folder(&full) && !file_system::is_of_image(&full) {
            player.fail(&format!("df: {path}: can't find mount point\n"));
            continue;
        }
        lines.push(disk(&files, file_system::mount_of(player.mounts(), &full)));
    }
    lines
}

/// The disk of a volume, or of the container's own files. A disk of the node has what is made up of it; what
/// is in memory has what fits there, and what is in it in blocks of 4 KiB.
fn disk(files: &Tree, mount: Option<&MountedVolume>) -> DiskLine {
    let size = 104_857_600;
    let used = size / 10;
    let Some(mount) = mount else { return DiskLine { device: "overlay", place: "/".into(), size, used } };
    let place = mount.path.clone();
    let Some(bytes) = mount.memory_bytes else { return DiskLine { device: "/dev/vda1", place, size, used } };
    let below = files.iter().filter(|(file, _)| file_system::is_within(&mount.path, file));
    let used = below.map(|(_, file)| file.size().div_ceil(4096) as u64 * 4).sum();
    DiskLine { device: "tmpfs", place, size: bytes / 1024, used }
}

/// As `-h` has it.
fn human(kib: u64) -> String {
    match kib {
        1_048_576.. => format!("{:.1}G", kib as f64 / 1_048_576.0),
        1024.. => format!("{:.1}M", kib as f64 / 1024.0),
        _ => format!("{kib}.0K"),
    }
}

fn free(player: &mut Player<'_>, words: &[&str]) {
    let divisor = match words.first() {
        Some(&"-m") => 1024,
        Some(&"-g") => 1 << 20,
        _ => 1,
    };
    let [total, used, left] = [33_554_432u64, 1_048_576, 32_505_856].map(|kib| kib / divisor);
    player.say(&format!(
        "              total        used        free      shared  buff/cache   available\n\
         Mem:    {total:>11} {used:>11} {left:>11} {:>11} {:>11} {left:>11}\n\
         Swap:   {:>11} {:>11} {:>11}\n",
        0, 0, 0, 0, 0
    ));
}

fn top(player: &mut Player<'_>) {
    let main = player.around.process_name();
    player.say(&format!(
        "Mem: 1048576K used, 32505856K free, 0K shrd, 0K buff, 0K cached\n\
         CPU:   0% usr   0% sys   0% nic 100% idle   0% io   0% irq   0% sirq\n\
         Load average: 0.00 0.00 0.00 1/2 12\n\
         \u{20} PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND\n\
         \u{20}   1     0 root     S     4400   0%   0   0% {main}\n",
    ));
}

/// `stty size` and `tput cols`
fn terminal(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let window = player.terminal();
    let TerminalSize { columns, lines } = window.unwrap_or_default();
    match (name, words) {
        ("stty", _) if window.is_none() => player.fail("stty: standard input: Not a tty\n"),
        ("stty", ["size"]) => player.say(&format!("{lines} {columns}\n")),
        ("stty", [] | ["-a"]) => {
            player.say(&format!("speed 38400 baud; rows {lines}; columns {columns}; line = 0;\n"));
        }
        ("tput", ["cols", ..]) => player.say(&format!("{columns}\n")),
        ("tput", ["lines", ..]) => player.say(&format!("{lines}\n")),
        _ => {}
    }
}

fn tty(player: &mut Player<'_>) {
    if player.terminal().is_some() {
        return player.say("/dev/pts/0\n");
    }
    player.say("not a tty\n");
    player.status = 1;
}

/// A file or a folder of its own, with a name that was not there.
fn mktemp(player: &mut Player<'_>, words: &[&str]) {
    let is_folder = words.iter().any(|word| word.starts_with('-') && word.contains('d'));
    let template = words.iter().rfind(|word| !word.starts_with('-')).copied().unwrap_or("/tmp/tmp.XXXXXX");
    let stem = template.trim_end_matches('X');
    let width = template.len() - stem.len();
    let mut number = player.written.len();
    let path = loop {
        let name = format!("{number:0>width$}").replace('0', "a").replace('1', "b").replace('2', "c");
        let path = player.own_path(&format!("{stem}{name}"));
        if player.file(&path).is_none() || player.spend(1) != AfterCommand::Go {
            break path;
        }
        number += 1;
    };
    if let Err(why) = player.check_writable(&path) {
        return player.fail(&format!("mktemp: {path}: {why}\n"));
    }
    let file = if is_folder { File::folder(0o700) } else { File::new(*b"", 0o600) };
    player.put_file(path.clone(), Some(file));
    player.say(&format!("{path}\n"));
}

/// Pipes with names: here files, since one who writes is done before anybody reads.
fn make_pipes(player: &mut Player<'_>, words: &[&str]) {
    for path in words.iter().filter(|word| !word.starts_with('-')) {
        let full = player.own_path(path);
        if player.file(&full).is_some() {
            player.fail(&format!("mkfifo: {path}: File exists\n"));
        } else if let Err(why) = player.check_writable(&full) {
            player.fail(&format!("mkfifo: {path}: {why}\n"));
        } else {
            player.put_file(full, Some(File::new(*b"", FIFO | 0o644)));
        }
    }
}
