//! What a container writes beside its volumes (the writable layer above its image), as far as the machine
//! plays it.

use std::collections::BTreeMap;

use super::invocation;
use apimachinery::time::Time;
use apis::views::pod::Container;
use machine::file_system::{File, mount_of};
use machine::process;
use machine::surroundings::Surroundings;

/// Programs that make files larger than what is held of all files of a container.
const FILLERS: [&str; 3] = ["dd", "fallocate", "truncate"];

/// Whether its command line names a program that fills files, or somebody has run one in it. What it reads
/// from files nobody looks at ahead.
pub(super) fn may_fill(container: &Container, around: &Surroundings) -> bool {
    let mut words = container.command.iter().chain(&container.args);
    let fills =
        |text: &String| text.split(|c: char| !c.is_alphanumeric()).any(|word| FILLERS.contains(&word));
    let is_large = |file: &File| file.unheld > 0;
    words.any(fills) || around.foreign.values().filter_map(|foreign| foreign.file.as_ref()).any(is_large)
}

/// How many bytes there are by `now`. It takes as long as to play the container's command.
pub(super) fn bytes(container: &Container, around: &Surroundings, now: Time) -> u64 {
    let ran = (now - around.started_at).to_std().unwrap_or_default();
    let played = process::play(&invocation::of(container), around, Some(ran)).unwrap_or_default();
    let foreign = around.foreign.iter().filter(|(_, foreign)| foreign.after <= ran);
    let mut files: BTreeMap<&str, Option<&File>> =
        foreign.map(|(path, foreign)| (path.as_str(), foreign.file.as_ref())).collect();
    files.extend(played.written.iter().map(|(path, file)| (path.as_str(), file.as_ref())));
    let is_own = |path: &str| !path.starts_with("/dev/") && mount_of(&around.mounts, path).is_none();
    let own = files.into_iter().filter(|(path, _)| is_own(path));
    own.filter_map(|(_, file)| file).map(|file| file.size() as u64).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;
    use machine::surroundings::ForeignFile;

    use super::*;

    #[test]
    fn what_is_filled_counts_as_soon_as_it_is_there() {
        let mut container = Container { image: "busybox".into(), ..Container::default() };
        container.command =
            ["sh", "-c", "sleep 10; fallocate -l 10M file; sleep 1000"].map(String::from).into();
        let started_at = DateTime::UNIX_EPOCH;
        let mut around = Surroundings { image: "busybox".into(), started_at, ..Surroundings::default() };
        let at = |around: &Surroundings, seconds| {
            bytes(&container, around, started_at + Duration::from_secs(seconds))
        };
        assert!(may_fill(&container, &around));
        assert_eq!([9, 11].map(|seconds| at(&around, seconds)), [0, 10 << 20]);
        let file = Some(File { unheld: 5, ..File::new("a", 0o644) });
        let after = Duration::from_secs(20);
        around.foreign = [("/other".to_owned(), ForeignFile { file, after })].into();
        assert_eq!([19, 20].map(|seconds| at(&around, seconds)), [10 << 20, (10 << 20) + 6]);
        let quiet = Container { command: vec!["echo".into(), "add".into()], ..container.clone() };
        assert!(may_fill(&quiet, &around));
        around.foreign.clear();
        assert!(!may_fill(&quiet, &around), "add is no dd");
    }
}
