//! Profiles for people (`?debug=1`), in the form in which Go's runtime writes them; names stand where Go has
//! addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::pprof::{PprofProfile, StackSample};
use clock::{FrameName, LiveTask};

/// How many rows people are shown of a profile of processor time.
const MAX_ROWS: usize = 100;
/// A dump of all tasks ends where it is longer, as Go's does.
const MAX_DUMP_BYTES: usize = 64 << 20;
/// Times are counted in nanoseconds, whatever the processor counts in.
const CYCLES_PER_SECOND: u64 = 1_000_000_000;

/// How many there are of each stack (`printCountProfile`).
pub(super) fn counts(name: &str, profile: &PprofProfile) -> String {
    let mut text = format!("{name} profile: total {}\n", profile.total(0));
    for StackSample { stack, values } in profile.samples() {
        let _ = write!(text, "{} @\n{}\n", values[0], frames(stack));
    }
    text
}

/// Memory (`writeHeapInternal`): what is in use first, in brackets all that is known to have been taken.
/// Nothing is sampled, which is a rate of 1 and is written twice as large.
pub(super) fn heap(profile: &PprofProfile) -> String {
    let line = |values: [i64; 4]| {
        let [all_objects, all_bytes, objects, bytes] = values;
        format!("{objects}: {bytes} [{all_objects}: {all_bytes}] @")
    };
    let mut text = format!("heap profile: {} heap/2\n", line([0, 1, 2, 3].map(|at| profile.total(at))));
    for StackSample { stack, values } in profile.samples() {
        let _ = write!(text, "{}\n{}\n", line([0, 1, 2, 3].map(|at| values[at])), frames(stack));
    }
    text
}

/// Waits (`writeProfileInternal`).
pub(super) fn contention(name: &str, profile: &PprofProfile) -> String {
    let mut text = format!("--- {name}:\ncycles/second={CYCLES_PER_SECOND}\n");
    if name == "mutex" {
        // As in an apiserver whatever its flags: nobody samples it.
        text += "sampling period=0\n";
    }
    for StackSample { stack, values } in profile.samples() {
        let _ = write!(text, "{} {} @\n{}\n", values[1], values[0], frames(stack));
    }
    text
}

/// The innermost first.
fn frames(stack: &[FrameName]) -> String {
    stack.iter().rev().map(|name| format!("#\t{}\n", name.as_str())).collect()
}

/// Each task with what it does (`?debug=2`).
pub(super) fn dump(tasks: &[LiveTask]) -> String {
    dump_within(tasks, MAX_DUMP_BYTES)
}

fn dump_within(tasks: &[LiveTask], most: usize) -> String {
    let mut text = String::new();
    for (number, LiveTask { stack, state }) in tasks.iter().enumerate() {
        if text.len() >= most {
            let _ = writeln!(text, "and {} more", tasks.len() - number);
            break;
        }
        let _ = writeln!(text, "goroutine {} [{}]:", number + 1, state.as_str());
        stack.iter().rev().for_each(|name| text += &format!("{}\n", name.as_str()));
        text.push('\n');
    }
    text
}

/// Processor time, as `go tool pprof -top` shows it: of each name its own time, and that with what is deeper.
pub(super) fn table(profile: &PprofProfile) -> String {
    let total = profile.total(1);
    let mut rows: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for StackSample { stack, values } in profile.samples() {
        let names: BTreeSet<&str> = stack.iter().map(FrameName::as_str).collect();
        names.into_iter().for_each(|name| rows.entry(name).or_default().1 += values[1]);
        if let Some(last) = stack.last() {
            rows.entry(last.as_str()).or_default().0 += values[1];
        }
    }
    let mut rows: Vec<(&str, (i64, i64))> = rows.into_iter().collect();
    rows.sort_by_key(|(_, (own, whole))| std::cmp::Reverse((*own, *whole)));
    let part = |one: i64| 100.0 * one as f64 / (total as f64).max(f64::MIN_POSITIVE);
    let milliseconds = |one: i64| one as f64 / 1e6;
    let elapsed = profile.elapsed.as_secs_f64();
    let mut text = format!(
        "Duration: {elapsed:.2}s, Total samples = {:.2}ms ({:.2}%)\n{:>12} {:>6} {:>12} {:>6}\n",
        milliseconds(total),
        100.0 * total as f64 / 1e9 / elapsed.max(f64::MIN_POSITIVE),
        "flat",
        "flat%",
        "cum",
        "cum%"
    );
    for (name, (own, whole)) in rows.iter().take(MAX_ROWS) {
        let (flat, cum) = (milliseconds(*own), milliseconds(*whole));
        let _ = writeln!(
            text,
            "{flat:>10.2}ms {:>5.1}% {cum:>10.2}ms {:>5.1}%  {name}",
            part(*own),
            part(*whole)
        );
    }
    if let Some(more) = rows.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more: pprof shows all, without ?debug=1");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clock::TaskState;

    use super::super::pprof::{ELSEWHERE, ProfileShape};
    use super::*;

    const SHAPE: ProfileShape = ProfileShape {
        values: &[("samples", "count"), ("cpu", "nanoseconds")],
        period: ("cpu", "nanoseconds"),
        shown: None,
    };

    fn stack(names: &[&'static str]) -> Vec<FrameName> {
        names.iter().map(|name| FrameName::Static(name)).collect()
    }

    #[test]
    fn people_see_what_is_a_names_own_and_what_is_deeper() {
        let mut profile = PprofProfile::new(&SHAPE, 0);
        profile.elapsed = Duration::from_secs(1);
        profile.add(stack(&["a", "b"]), &[3, 30_000_000]);
        profile.add(stack(&["a", "b", "a"]), &[1, 10_000_000]);
        profile.add(stack(&[ELSEWHERE]), &[0, 60_000_000]);
        let text = table(&profile);
        assert!(text.starts_with("Duration: 1.00s, Total samples = 100.00ms (10.00%)\n"), "{text}");
        let rows: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0][..4], ["60.00ms", "60.0%", "60.00ms", "60.0%"]);
        assert_eq!(rows[1], ["30.00ms", "30.0%", "40.00ms", "40.0%", "b"]);
        assert_eq!(rows[2], ["10.00ms", "10.0%", "40.00ms", "40.0%", "a"], "once, though it is there twice");
        for number in 0..MAX_ROWS {
            profile.add(vec![FrameName::Shared(number.to_string().into())], &[1, 1]);
        }
        assert!(table(&profile).ends_with("\nand 3 more: pprof shows all, without ?debug=1\n"));
    }

    #[test]
    fn waits_are_told_as_go_tells_them() {
        let mut profile = PprofProfile::new(&SHAPE, 0);
        let head = "--- contention:\ncycles/second=1000000000\n";
        assert_eq!(contention("contention", &profile), head);
        profile.add(stack(&["runtime", "thread 0"]), &[2, 5]);
        assert_eq!(contention("contention", &profile), format!("{head}5 2 @\n#\tthread 0\n#\truntime\n\n"));
        assert_eq!(counts("goroutine", &profile).lines().next(), Some("goroutine profile: total 2"));
    }

    #[test]
    fn a_dump_of_tasks_has_an_end() {
        let task = LiveTask { stack: stack(&["kubelet", "sync loop"]), state: TaskState::Waiting };
        let one = "goroutine 1 [waiting]:\nsync loop\nkubelet\n\n";
        assert_eq!(dump(std::slice::from_ref(&task)), one);
        let cut = dump_within(&[task.clone(), task.clone(), task], one.len());
        assert_eq!(cut, format!("{one}and 2 more\n"));
    }
}
