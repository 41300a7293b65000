//! What the machine says of this process: its threads and its memory. Linux alone says it (`/proc/self`).

use std::fs;
use std::path::Path;

const SELF: &str = "/proc/self";
/// So many threads are told by name; of any more only how many they are.
const MAX_NAMED_THREADS: usize = 4096;

/// What a process has of the machine's memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResidentMemory {
    pub(super) now: i64,
    /// The most that it ever was.
    pub(super) most: i64,
}

/// The threads of a process.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProcessThreads {
    /// In any order, as often as there are threads of the name.
    pub(super) names: Vec<String>,
    pub(super) unnamed: usize,
}

/// None where the machine does not say.
pub(super) fn resident_memory() -> Option<ResidentMemory> {
    let status = fs::read_to_string(Path::new(SELF).join("status")).ok()?;
    Some(ResidentMemory { now: kilobytes(&status, "VmRSS")?, most: kilobytes(&status, "VmHWM")? })
}

/// None where the machine does not say.
pub(super) fn threads() -> Option<ProcessThreads> {
    threads_in(&Path::new(SELF).join("task"), MAX_NAMED_THREADS)
}

/// In bytes.
fn kilobytes(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<i64>().ok()?.checked_mul(1024)
}

/// A folder for each thread, in which a file says its name.
fn threads_in(folder: &Path, most: usize) -> Option<ProcessThreads> {
    let mut threads = ProcessThreads::default();
    for thread in fs::read_dir(folder).ok()?.flatten() {
        if threads.names.len() >= most {
            threads.unnamed += 1;
            continue;
        }
        // One that has ended meanwhile is none.
        let name = fs::read_to_string(thread.path().join("comm"));
        threads.names.extend(name.map(|name| name.trim_end().to_owned()));
    }
    Some(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_names_and_beyond_the_bound_a_number() {
        let folder = tempfile::tempdir().unwrap();
        for (thread, name) in [("1", "etcd-writer\n"), ("2", "etcd-writer\n"), ("3", "etcd-writer\n")] {
            fs::create_dir(folder.path().join(thread)).unwrap();
            fs::write(folder.path().join(thread).join("comm"), name).unwrap();
        }
        fs::create_dir(folder.path().join("ended")).unwrap();
        let all = threads_in(folder.path(), 9).unwrap();
        assert_eq!(all, ProcessThreads { names: vec!["etcd-writer".to_owned(); 3], unnamed: 0 });
        let some = threads_in(folder.path(), 1).unwrap();
        assert!(some.names.len() == 1 && (2..=3).contains(&some.unnamed), "{some:?}");
        assert_eq!(threads_in(&folder.path().join("nowhere"), 9), None);
    }

    #[test]
    fn memory_is_told_in_bytes() {
        let status = "VmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nVmData:\t many kB\n";
        assert_eq!((kilobytes(status, "VmRSS"), kilobytes(status, "VmHWM")), (Some(1 << 20), Some(2 << 20)));
        assert_eq!((kilobytes(status, "VmData"), kilobytes(status, "Vm")), (None, None));
    }
}
