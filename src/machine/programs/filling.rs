//! Programs that fill files, `dd` and `fallocate`: of a file larger than what is held of a container's files
//! nothing but its size is kept.

use super::listing::human;
use crate::bounds::{MAX_FILE_BYTES, ScriptFault};
use crate::interpreter::dialect::Dialect;
use crate::interpreter::player::Player;

/// What `dd` copies at once, unless it is told.
const BLOCK_BYTES: usize = 512;
const FULL: &str = "No space left on device";

/// What `dd` is to copy.
struct CopiedBlocks<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    /// How much at once.
    size: usize,
    /// How many bytes; without, all.
    wanted: Option<usize>,
    skipped: usize,
    status: Option<&'a str>,
}

/// `dd if=FILE of=FILE bs=SIZE count=N`
pub(super) fn dd(player: &mut Player<'_>, words: &[&str]) {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let size = option("bs").map_or(Some(BLOCK_BYTES), bytes_of);
    let count = option("count").map(str::parse::<usize>);
    let (Some(size), None | Some(Ok(_))) = (size, &count) else {
        return player.fail("dd: invalid number\n");
    };
    let wanted = count.and_then(Result::ok).map(|count| count.saturating_mul(size));
    let skip = option("skip").and_then(|skip| skip.parse().ok()).unwrap_or(0usize);
    let (from, to, status) = (option("if"), option("of"), option("status"));
    let call = CopiedBlocks { from, to, size, wanted, skipped: skip.saturating_mul(size), status };
    match (call.endless_count(), to) {
        (Some(count), Some("/dev/null")) => tell(player, &call, count),
        (Some(count), Some(path)) if !player.holds(count) => dd_bulk(player, &call, path, count),
        _ => dd_bytes(player, &call),
    }
}

impl CopiedBlocks<'_> {
    /// How much it copies of what never ends.
    fn endless_count(&self) -> Option<usize> {
        let is_endless = matches!(self.from?, "/dev/zero" | "/dev/urandom" | "/dev/random");
        self.wanted.filter(|_| is_endless)
    }
}

fn dd_bulk(player: &mut Player<'_>, call: &CopiedBlocks<'_>, path: &str, count: usize) {
    let fits = player.space_left(path).min(count);
    let written = player.fill_file(path, fits);
    tell_written(player, call, (path, written), (fits, count));
}

fn dd_bytes(player: &mut Player<'_>, call: &CopiedBlocks<'_>) {
    let Some(content) = input(player, call) else { return };
    let wanted = call.wanted.unwrap_or(usize::MAX);
    let mut taken: Vec<u8> = content.into_iter().skip(call.skipped).take(wanted).collect();
    let count = taken.len();
    match call.to {
        Some("/dev/null") => {}
        Some(path) => {
            taken.truncate(player.space_left(path));
            let fits = taken.len();
            let written = player.write_file(path, taken);
            return tell_written(player, call, (path, written), (fits, count));
        }
        None => player.say_bytes(&taken),
    }
    tell(player, call, count);
}

/// Whether a file was written, and how much of it found room.
fn tell_written(
    player: &mut Player<'_>,
    call: &CopiedBlocks<'_>,
    (path, written): (&str, Result<(), &'static str>),
    (fits, count): (usize, usize),
) {
    if let Err(why) = written {
        return player.fail(&format!("dd: can't open '{path}': {why}\n"));
    }
    if fits < count {
        player.fail(&format!("dd: error writing '{path}': {FULL}\n"));
    }
    tell(player, call, fits);
}

/// Nothing where there is none, or too much: that is told already.
fn input(player: &mut Player<'_>, call: &CopiedBlocks<'_>) -> Option<Vec<u8>> {
    match call.from {
        Some("/dev/zero") => endless(player, call.wanted, &mut |_, count| vec![0; count]),
        Some("/dev/urandom" | "/dev/random") => {
            endless(player, call.wanted, &mut |player, count| player.random_bytes(count))
        }
        Some(path) => match player.file(path) {
            Some(file) => player.handle_file(&file).then(|| file.content.to_vec()),
            None => {
                player.fail(&format!("dd: can't open '{path}': No such file or directory\n"));
                None
            }
        },
        None => Some(player.input_bytes()),
    }
}

/// How much was copied.
fn tell(player: &mut Player<'_>, call: &CopiedBlocks<'_>, bytes: usize) {
    let size = call.size.max(1);
    let (whole, part) = (bytes / size, usize::from(!bytes.is_multiple_of(size)));
    let counts = format!("{whole}+{part} records in\n{whole}+{part} records out\n");
    let told = match call.status {
        Some("none") => String::new(),
        Some("noxfer") => counts,
        _ => format!("{counts}{}", copied(player, bytes)),
    };
    player.complain(&told);
}

/// The last line, in which each tells sizes in its own way; it took no time.
fn copied(player: &Player<'_>, bytes: usize) -> String {
    let short = match bytes {
        _ if player.dialect == Dialect::Ash => format!(" ({}B)", human(bytes)),
        0..1000 => String::new(),
        1000..1_000_000 => format!(" ({:.1} kB, {} KiB)", bytes as f64 / 1e3, bytes >> 10),
        _ => format!(" ({:.1} MB, {:.1} MiB)", bytes as f64 / 1e6, bytes as f64 / (1 << 20) as f64),
    };
    match player.dialect {
        Dialect::Ash => {
            format!(
                "{bytes} bytes{short} copied, 0.000100 seconds, {}B/s\n",
                human(bytes.saturating_mul(10_000))
            )
        }
        _ => format!("{bytes} bytes{short} copied, 0.0001 s, {:.1} MB/s\n", bytes as f64 / 100.0),
    }
}

/// So much of what never ends; more than is held of any file is over the bound.
fn endless(
    player: &mut Player<'_>,
    wanted: Option<usize>,
    make: &mut dyn FnMut(&mut Player<'_>, usize) -> Vec<u8>,
) -> Option<Vec<u8>> {
    let Some(count) = wanted.filter(|count| *count <= MAX_FILE_BYTES) else {
        player.stop(ScriptFault::Files);
        return None;
    };
    player.handle(count).then(|| make(player, count))
}

/// `fallocate -l SIZE FILE`: what is longer stays as it is.
pub(super) fn fallocate(player: &mut Player<'_>, words: &[&str]) {
    let mut words = words.iter();
    let mut size = None;
    let mut offset = 0;
    let mut path = None;
    while let Some(word) = words.next() {
        match *word {
            "-l" | "--length" => size = words.next().and_then(|size| bytes_of(size)),
            "-o" | "--offset" => offset = words.next().and_then(|size| bytes_of(size)).unwrap_or_default(),
            word if word.starts_with('-') => {}
            word => path = Some(word),
        }
    }
    let (Some(size), Some(path)) = (size, path) else {
        return player.fail("fallocate: usage: fallocate [-o OFFSET] -l LENGTH FILE\n");
    };
    let (size, there) = (size.saturating_add(offset), player.file(path));
    if there.as_ref().is_some_and(|file| file.size() >= size) {
        return;
    }
    if there.as_ref().is_some_and(|file| file.unheld > 0) || !player.holds(size) {
        return fill(player, "fallocate", path, size);
    }
    if player.space_left(path) < size {
        return player.fail(&format!("fallocate: fallocate '{path}': {FULL}\n"));
    }
    let mut content = there.map(|file| file.content.to_vec()).unwrap_or_default();
    content.resize(size, 0);
    if let Err(why) = player.write_file(path, content) {
        player.fail(&format!("fallocate: can't open '{path}': {why}\n"));
    }
}

/// Makes a file of so many bytes, none of which are held; none where a disk has not so many.
pub(super) fn fill(player: &mut Player<'_>, program: &str, path: &str, count: usize) {
    if player.space_left(path) < count {
        return player.fail(&format!("{program}: {program} '{path}': {FULL}\n"));
    }
    if let Err(why) = player.fill_file(path, count) {
        player.fail(&format!("{program}: can't open '{path}': {why}\n"));
    }
}

/// `4k`, `1M`
pub(super) fn bytes_of(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = match &text[end..] {
        "" | "c" => 1,
        "w" => 2,
        "b" => 512,
        "k" | "K" | "kB" | "KiB" => 1 << 10,
        "M" | "MB" | "MiB" => 1 << 20,
        "G" | "GB" | "GiB" => 1 << 30,
        _ => return None,
    };
    text[..end].parse::<usize>().ok()?.checked_mul(factor).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::file_system::MountedVolume;
    use crate::surroundings::Surroundings;

    fn run(script: &str) -> (i32, String) {
        let memory = MountedVolume {
            path: "/memory".into(),
            sub_path: String::new(),
            volume: "m".into(),
            is_read_only: false,
            memory_bytes: Some(3 << 20),
            is_kept: true,
            group: None,
            is_device: false,
        };
        let around =
            Surroundings { image: "busybox".into(), mounts: vec![memory], ..Surroundings::default() };
        let words = ["sh", "-c", script].map(str::to_owned);
        let ran = exec(&words, &around, vec![], None).unwrap();
        (ran.end.unwrap().1, ran.out + &ran.errors)
    }

    #[test]
    fn of_a_large_file_its_size_is_kept() {
        for (script, said) in [
            (
                "dd if=/dev/zero of=/f bs=1M count=10 status=noxfer; stat -c %s /f; ls -l /f | grep -c 10485760",
                "10485760\n1\n10+0 records in\n10+0 records out\n",
            ),
            (
                "fallocate -l 10M /f; fallocate -l 1M /f; cp /f /g; wc -c < /dev/null; du -b /g",
                "0\n10485760\t/g\n",
            ),
            (
                "for i in 1 2 3; do dd if=/dev/urandom of=/f$i bs=1M count=1 status=none; done; du -sb / | cut -f1",
                "3145728\n",
            ),
            ("truncate -s 99999999 /f; stat -c %s /f; echo > /f; stat -c %s /f", "99999999\n1\n"),
            ("truncate -s 1k /f; stat -c %s /f; truncate -s 0 /f; stat -c %s /f", "1024\n0\n"),
            (
                "dd if=/dev/zero of=/dev/null bs=1M count=4000 status=noxfer",
                "4000+0 records in\n4000+0 records out\n",
            ),
            ("fallocate -l 1k /f; stat -c %s /f; wc -c < /f", "1024\n1024\n"),
        ] {
            assert_eq!(run(script), (0, said.to_owned()), "{script}");
        }
        for script in
            ["fallocate -l 9M /f; cat /f", "fallocate -l 9M /f; wc -c < /f", "fallocate -l 9M /f; dd if=/f"]
        {
            let (code, said) = run(script);
            assert!(code == 137 && said.contains("stopped: over 2097152 bytes in files"), "{script}: {said}");
        }
    }

    #[test]
    fn no_file_is_larger_than_a_disk_can_be() {
        let (code, said) = run("dd if=/dev/zero of=/f bs=1G count=99999999999 status=none; stat -c %s /f");
        assert_eq!(
            (code, said.as_str()),
            (0, "17592186044416\ndd: error writing '/f': No space left on device\n")
        );
        let (code, said) = run("truncate -s 99999999G /f; fallocate -l 99999999G /f");
        let full = "No space left on device";
        let both = format!("truncate: truncate '/f': {full}\nfallocate: fallocate '/f': {full}\n");
        assert_eq!((code, said), (1, both));
        let (code, said) = run("dd if=/dev/zero of=/dev/null bs=1G count=99999999999 status=noxfer");
        assert!(code == 0 && said.contains("records out"), "{said}");
        assert_eq!(run("dd if=/dev/zero of=/dev/null bs=1G count=99999999999").0, 0);
    }

    #[test]
    fn a_disk_in_memory_is_full_one_time() {
        let full =
            "dd: error writing '/memory/f': No space left on device\n3+0 records in\n3+0 records out\n";
        assert_eq!(run("dd if=/dev/zero of=/memory/f bs=1M count=4 status=noxfer"), (1, full.to_owned()));
        let script = "dd if=/dev/zero of=/memory/a bs=1M count=3 status=none; echo $?; \
            dd if=/dev/zero of=/memory/b bs=1k count=1 status=none; echo $?; stat -c %s /memory/b; \
            fallocate -l 4M /memory/c";
        let (code, said) = run(script);
        assert_eq!(code, 1);
        assert_eq!(
            said,
            "0\n1\n0\ndd: error writing '/memory/b': No space left on device\n\
             fallocate: fallocate '/memory/c': No space left on device\n"
        );
    }
}
