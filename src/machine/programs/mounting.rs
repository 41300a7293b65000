//! File systems and the devices they are on: `mount`, `umount`, `losetup` and `mkfs`. Who may not
//! (`CAP_SYS_ADMIN`) is told so.
//!
//! What is mounted elsewhere is a link to where its files are: those of a device or of a `tmpfs` in a folder
//! of their own, which nobody sees while it is not mounted.

use crate::file_system::{BLOCK_DEVICE, File, MountedVolume};
use crate::interpreter::player::Player;

const PROGRAMS: &[&str] = &["mount", "umount", "losetup", "mkfs", "mke2fs"];
/// Before the type of a file system, in the name of the program that makes one.
const MAKER: &str = "mkfs.";
/// What is mounted, a line each: the device, where, the type, the options, and the mode of the folder there.
const TABLE: &str = "/run/mount/utab";
/// Where the files of mounted file systems are.
const FILE_SYSTEMS: &str = "/run/mount/fs";
/// Which file is behind a device.
const BACKING: (&str, &str) = ("/sys/block/loop", "/loop/backing_file");
/// So many loop devices there are.
const MAX_LOOPS: usize = 256;
/// Types that have no device.
const WITHOUT_DEVICE: [&str; 9] =
    ["proc", "sysfs", "devpts", "cgroup", "cgroup2", "overlay", "debugfs", "bpf", "mqueue"];
const MISSING: &str = "No such file or directory";

pub(super) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name) || name.starts_with(MAKER)
}

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    match name {
        "mount" => mount(player, words),
        "umount" => unmount(player, words),
        "losetup" => loops(player, words),
        name => make_file_system(player, name, words),
    }
}

/// Whether a mount is seen through a process alone (`/proc/1/root`), and is none of the container's own.
pub(super) fn is_in_sight_alone(mount: &MountedVolume) -> bool {
    mount.is_device || mount.volume == "/" && mount.path.ends_with("/1/root")
}

/// A line of the table.
struct MountLine {
    device: String,
    place: String,
    kind: String,
    options: String,
    /// Of the folder there, where something else stands in its place.
    mode: Option<u32>,
}

impl MountLine {
    fn read(line: &str) -> Option<MountLine> {
        let mut words = line.split('\t').map(str::to_owned);
        let [device, place, kind, options] = [words.next()?, words.next()?, words.next()?, words.next()?];
        Some(MountLine {
            device,
            place,
            kind,
            options,
            mode: words.next().and_then(|mode| mode.parse().ok()),
        })
    }

    fn written(&self) -> String {
        let mode = self.mode.map(|mode| mode.to_string()).unwrap_or_default();
        format!("{}\t{}\t{}\t{}\t{mode}\n", self.device, self.place, self.kind, self.options)
    }
}

fn table(player: &Player<'_>) -> Vec<MountLine> {
    let text = player.file(TABLE).map(|file| file.text()).unwrap_or_default();
    text.lines().filter_map(MountLine::read).collect()
}

fn write_table(player: &mut Player<'_>, table: &[MountLine]) {
    let text: String = table.iter().map(MountLine::written).collect();
    let _ = player.write_file(TABLE, text.into_bytes());
}

/// What `mount` is told.
#[derive(Default)]
struct MountCall<'a> {
    kind: Option<&'a str>,
    options: Vec<&'a str>,
    is_bind: bool,
    /// Of `--make-rshared` and its kin nothing is to be seen.
    only_propagates: bool,
    paths: Vec<&'a str>,
}

impl<'a> MountCall<'a> {
    fn of(words: &[&'a str]) -> MountCall<'a> {
        let mut call = MountCall::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "-t" | "--types" => call.kind = words.next(),
                "-o" | "--options" => call.options.extend(words.next().unwrap_or_default().split(',')),
                "--bind" | "-B" | "--rbind" | "-R" => call.is_bind = true,
                "-r" | "--read-only" => call.options.push("ro"),
                word if word.starts_with("--make-") => call.only_propagates = true,
                word if word.starts_with('-') && word.len() > 1 => {}
                word => call.paths.push(word),
            }
        }
        call.is_bind |= call.options.iter().any(|option| matches!(*option, "bind" | "rbind"));
        call
    }
}

fn mount(player: &mut Player<'_>, words: &[&str]) {
    let call = MountCall::of(words);
    if call.paths.is_empty() && call.options.is_empty() {
        return tell_mounts(player, call.kind);
    }
    if !player.is_admin() {
        return player.fail("mount: permission denied (are you root?)\n");
    }
    if call.only_propagates || call.options.contains(&"remount") {
        return;
    }
    let [source, place] = call.paths[..] else {
        let path = call.paths.first().copied().unwrap_or_default();
        return player.fail(&format!("mount: can't find {path} in /etc/fstab\n"));
    };
    if let Err(why) = mount_at(player, &call, (source, place)) {
        player.fail(&format!("mount: mounting {source} on {place} failed: {why}\n"));
    }
}

fn mount_at(
    player: &mut Player<'_>,
    call: &MountCall<'_>,
    (source, place): (&str, &str),
) -> Result<(), &'static str> {
    let place = player.real_path(place);
    let folder = player.file(&place).filter(|file| file.is_folder);
    let is_folder = player.has_folder(&place);
    let (device, kind, files) = files_of(player, call, source)?;
    let is_file = call.is_bind && player.file(&place).is_some();
    if !(is_folder || is_file) {
        return Err(MISSING);
    }
    let mut options: Vec<&str> = call.options.iter().copied().filter(|option| !option.is_empty()).collect();
    if !options.contains(&"ro") {
        options.insert(0, "rw");
    }
    let stands_in = files.filter(|files| *files != place);
    let mode = stands_in.is_some().then(|| folder.map_or(0o755, |folder| folder.mode));
    if let Some(files) = stands_in {
        player.check_writable(&place)?;
        player.put_file(place.clone(), Some(File::link(&files)));
    }
    let mut table = table(player);
    table.push(MountLine { device, place, kind, options: options.join(","), mode });
    write_table(player, &table);
    Ok(())
}

/// The device as it is told, the type, and where the files are; nothing of those that nobody sees.
fn files_of(
    player: &mut Player<'_>,
    call: &MountCall<'_>,
    source: &str,
) -> Result<(String, String, Option<String>), &'static str> {
    if call.is_bind {
        let path = player.real_path(source);
        let is_there = player.has_folder(&path) || player.file(&path).is_some();
        return if is_there { Ok((path.clone(), "none".into(), Some(path))) } else { Err(MISSING) };
    }
    match call.kind {
        Some(kind @ ("tmpfs" | "ramfs")) => {
            let number = table(player).len();
            let taken =
                |player: &Player<'_>, at: usize| player.file(&format!("{FILE_SYSTEMS}/tmpfs-{at}")).is_some();
            let at = (number..number + MAX_LOOPS).find(|at| !taken(player, *at)).unwrap_or(number);
            let files = format!("{FILE_SYSTEMS}/tmpfs-{at}");
            player.put_file(files.clone(), Some(File::folder(0o1777)));
            Ok((source.to_owned(), kind.to_owned(), Some(files)))
        }
        Some(kind) if WITHOUT_DEVICE.contains(&kind) => Ok((source.to_owned(), kind.to_owned(), None)),
        kind => {
            let path = player.real_path(source);
            let device = player.file(&path).ok_or(MISSING)?;
            let is_loop = call.options.contains(&"loop") && !device.is_folder;
            if !device.is_block_device() && !is_loop {
                return Err("Block device required");
            }
            let files = files_on(&path);
            let is_made = player.file(&files).is_some();
            let kind = kind.unwrap_or("ext4").to_owned();
            if is_made { Ok((path, kind, Some(files))) } else { Err("Invalid argument") }
        }
    }
}

/// Where the files of a device are.
fn files_on(device: &str) -> String {
    format!("{FILE_SYSTEMS}/{}", device.trim_matches('/').replace('/', "-"))
}

fn unmount(player: &mut Player<'_>, words: &[&str]) {
    for path in words.iter().filter(|word| !word.starts_with('-')) {
        if !player.is_admin() {
            player.fail(&format!("umount: can't unmount {path}: Operation not permitted\n"));
            continue;
        }
        let places = [player.own_path(path), player.real_path(path)];
        let mut table = table(player);
        let is_it = |line: &MountLine| places.contains(&line.place) || line.device == places[1];
        let Some(at) = table.iter().rposition(is_it) else {
            player.fail(&format!("umount: can't unmount {path}: Invalid argument\n"));
            continue;
        };
        let line = table.remove(at);
        if matches!(line.kind.as_str(), "tmpfs" | "ramfs") {
            let files = player.real_path(&line.place);
            player.remove_all(&files);
        }
        if let Some(mode) = line.mode {
            player.put_file(line.place, Some(File::folder(mode)));
        }
        write_table(player, &table);
    }
}

/// `mkfs -t ext4 DEVICE` and `mkfs.ext4 DEVICE`
fn make_file_system(player: &mut Player<'_>, name: &str, words: &[&str]) {
    let path = words.iter().rfind(|word| !word.starts_with('-')).copied().unwrap_or_default();
    let full = player.real_path(path);
    match player.file(&full) {
        None => player.fail(&format!("{name}: can't open '{path}': {MISSING}\n")),
        Some(_) if !player.is_admin() => {
            player.fail(&format!("{name}: can't open '{path}': Permission denied\n"))
        }
        Some(file) if file.is_folder => {
            player.fail(&format!("{name}: can't open '{path}': Is a directory\n"))
        }
        Some(_) => {
            let files = files_on(&full);
            player.remove_all(&files);
            player.put_file(files, Some(File::folder(0o755)));
            player.say("Writing superblocks and filesystem accounting information: done\n");
        }
    }
}

fn loops(player: &mut Player<'_>, words: &[&str]) {
    let paths: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let has = |flags: &[&str]| words.iter().any(|word| flags.contains(word));
    if has(&["-f", "--find", "-fP", "-fr"]) {
        return attach_any(player, paths.first().copied(), has(&["--show"]));
    }
    if has(&["-d", "--detach", "-D", "--detach-all"]) {
        let all: Vec<String> = (0..MAX_LOOPS).map(device).collect();
        let every = has(&["-D", "--detach-all"]);
        let wanted = if every { all.iter().map(String::as_str).collect() } else { paths };
        return wanted.into_iter().for_each(|device| detach(player, device, every));
    }
    match paths[..] {
        // What is behind it is looked at anew, and is as large as it is.
        [_] if has(&["-c", "--set-capacity"]) => {}
        [own, file] => attach(player, own, file),
        ref shown => tell_loops(player, shown),
    }
}

fn device(number: usize) -> String {
    format!("/dev/loop{number}")
}

/// Where it stands which file is behind a loop device.
fn backing(device: &str) -> Option<String> {
    let number: usize = device.strip_prefix("/dev/loop")?.parse().ok()?;
    Some(format!("{}{number}{}", BACKING.0, BACKING.1))
}

fn backing_file(player: &Player<'_>, device: &str) -> Option<String> {
    let text = player.file(&backing(device)?)?.text();
    Some(text.trim_end().to_owned())
}

fn attach_any(player: &mut Player<'_>, file: Option<&str>, is_shown: bool) {
    let free = (0..MAX_LOOPS).map(device).find(|device| backing_file(player, device).is_none());
    match (free, file) {
        (None, _) => player.fail("losetup: cannot find an unused loop device\n"),
        (Some(device), None) => player.say(&format!("{device}\n")),
        (Some(device), Some(file)) => {
            attach(player, &device, file);
            if is_shown && player.status == 0 {
                player.say(&format!("{device}\n"));
            }
        }
    }
}

fn attach(player: &mut Player<'_>, device: &str, file: &str) {
    if !player.is_admin() {
        return player.fail(&format!("losetup: {device}: Permission denied\n"));
    }
    let path = player.real_path(file);
    let (Some(there), Some(backing)) = (player.file(&path).filter(|file| !file.is_folder), backing(device))
    else {
        return player.fail(&format!("losetup: {file}: {MISSING}\n"));
    };
    let blocks = File { mode: BLOCK_DEVICE | 0o660, ..there };
    player.put_file(device.to_owned(), Some(blocks));
    let _ = player.write_file(&backing, format!("{path}\n").into_bytes());
}

fn detach(player: &mut Player<'_>, device: &str, is_any: bool) {
    let Some(backing) = backing(device).filter(|path| player.file(path).is_some()) else {
        if !is_any {
            player.fail(&format!("losetup: {device}: No such device or address\n"));
        }
        return;
    };
    player.put_file(backing, None);
    player.put_file(device.to_owned(), None);
    let files = files_on(device);
    player.remove_all(&files);
}

/// As util-linux and busybox list them; all, or those that are named.
fn tell_loops(player: &mut Player<'_>, wanted: &[&str]) {
    let is_wanted = |device: &String| wanted.is_empty() || wanted.contains(&device.as_str());
    let attached: Vec<(String, String)> = (0..MAX_LOOPS)
        .map(device)
        .filter(is_wanted)
        .filter_map(|device| backing_file(player, &device).map(|file| (device, file)))
        .collect();
    let is_whole = player.roots.is_entered;
    let mut said = String::new();
    if is_whole && !attached.is_empty() {
        said.push_str("NAME       SIZELIMIT OFFSET AUTOCLEAR RO BACK-FILE DIO LOG-SEC\n");
    }
    for (device, file) in attached {
        said.push_str(&if is_whole {
            format!("{device:<18} 0      0         0  0 {file}   0     512\n")
        } else {
            format!("{device}: 0 {file}\n")
        });
    }
    player.say(&said);
}

/// `mount`, and `mount -t TYPE`.
fn tell_mounts(player: &mut Player<'_>, wanted: Option<&str>) {
    let own = [
        ("overlay", "/", "overlay", "rw,relatime"),
        ("proc", "/proc", "proc", "rw,nosuid,nodev,noexec"),
        ("tmpfs", "/dev", "tmpfs", "rw,nosuid"),
        ("cgroup", "/sys/fs/cgroup", "cgroup2", "ro,nosuid,nodev,noexec,relatime"),
    ];
    let line = |device: &str, at: &str, kind: &str, how: &str| MountLine {
        device: device.to_owned(),
        place: at.to_owned(),
        kind: kind.to_owned(),
        options: how.to_owned(),
        mode: None,
    };
    let of_volumes = player.mounts().iter().filter(|mount| !is_in_sight_alone(mount)).map(|mount| {
        let how = if mount.is_read_only { "ro,relatime" } else { "rw,relatime" };
        match mount.memory_bytes {
            Some(bytes) => line("tmpfs", &mount.path, "tmpfs", &format!("{how},size={}k", bytes / 1024)),
            None => line("/dev/vda1", &mount.path, "ext4", how),
        }
    });
    let own = own.into_iter().map(|(device, at, kind, how)| line(device, at, kind, how));
    let all = own.chain(of_volumes).chain(table(player));
    let shown = all.filter(|line| wanted.is_none_or(|wanted| wanted == line.kind));
    let said: String = shown
        .map(|line| format!("{} on {} type {} ({})\n", line.device, line.place, line.kind, line.options))
        .collect();
    player.say(&said);
}
