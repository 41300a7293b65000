//! A CPU profile as pprof reads it (`profile.proto`, gzipped), or as a table for people.
//!
//! Upstream's comes from Go's runtime (`net/http/pprof.Profile`). Ours has tasks, requests, filters and
//! plugins where that has functions: see the clock's `profile.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;

use crate::endpoints::response::writers::gzip;
use apimachinery::protobuf::{write_bytes, write_int, write_nested};
use clock::{CpuProfile, CpuShare, FrameName};

/// What is nobody's.
const ELSEWHERE: &str = "(elsewhere in this process)";
/// How many rows people are shown.
const MAX_ROWS: usize = 100;

/// Fields of `perftools.profiles.Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
}

/// The texts of a profile: each stands once, and is named by its place.
struct StringTable<'a> {
    known: BTreeMap<&'a str, i64>,
    all: Vec<&'a str>,
}

impl<'a> StringTable<'a> {
    /// The first is empty, as the format demands.
    fn new() -> StringTable<'a> {
        StringTable { known: BTreeMap::from([("", 0)]), all: vec![""] }
    }

    fn place(&mut self, text: &'a str) -> i64 {
        *self.known.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() as i64 - 1
        })
    }
}

/// All shares, with one for what is nobody's.
fn all_shares(profile: &CpuProfile) -> Vec<CpuShare> {
    let stack = vec![FrameName::Static(ELSEWHERE)];
    let elsewhere = CpuShare { stack, cpu: profile.elsewhere, polls: 0 };
    profile.shares.iter().cloned().chain([elsewhere]).collect()
}

/// As `go tool pprof` takes it. `at` is when it began, in nanoseconds since 1970.
pub(super) fn encoded(profile: &CpuProfile, at: i64) -> Bytes {
    let shares = all_shares(profile);
    let mut strings = StringTable::new();
    // A function has one place in the program here, and the number of its name.
    let mut functions: Vec<i64> = Vec::new();
    let mut out = Vec::new();
    for (kind, unit) in [("samples", "count"), ("cpu", "nanoseconds")] {
        let (kind, unit) = (strings.place(kind), strings.place(unit));
        write_nested(&mut out, field::SAMPLE_TYPE, |out| value_type(out, kind, unit));
    }
    for share in &shares {
        // The innermost is first.
        let places: Vec<i64> = share.stack.iter().rev().map(|name| strings.place(name.as_str())).collect();
        write_nested(&mut out, field::SAMPLE, |out| {
            places.iter().for_each(|place| write_int(out, 1, *place));
            write_int(out, 2, share.polls as i64);
            write_int(out, 2, nanoseconds(share.cpu));
        });
        functions.extend(places);
    }
    functions.sort_unstable();
    functions.dedup();
    for number in functions {
        write_nested(&mut out, field::LOCATION, |out| {
            write_int(out, 1, number);
            write_nested(out, 4, |line| write_int(line, 1, number));
        });
        write_nested(&mut out, field::FUNCTION, |out| {
            write_int(out, 1, number);
            write_int(out, 2, number);
            write_int(out, 3, number);
        });
    }
    let (kind, unit) = (strings.place("cpu"), strings.place("nanoseconds"));
    write_nested(&mut out, field::PERIOD_TYPE, |out| value_type(out, kind, unit));
    write_int(&mut out, field::PERIOD, 1);
    write_int(&mut out, field::TIME_NANOS, at);
    write_int(&mut out, field::DURATION_NANOS, nanoseconds(profile.elapsed));
    strings.all.iter().for_each(|text| write_bytes(&mut out, field::STRING_TABLE, text.as_bytes()));
    gzip(&out)
}

/// `ValueType`
fn value_type(out: &mut Vec<u8>, kind: i64, unit: i64) {
    write_int(out, 1, kind);
    write_int(out, 2, unit);
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// As `go tool pprof -top` shows it: of each name its own time, and that with what is deeper.
pub(super) fn table(profile: &CpuProfile) -> String {
    let shares = all_shares(profile);
    let total: Duration = shares.iter().map(|share| share.cpu).sum();
    let mut rows: BTreeMap<&str, (Duration, Duration)> = BTreeMap::new();
    for CpuShare { stack, cpu, .. } in &shares {
        let names: std::collections::BTreeSet<&str> = stack.iter().map(FrameName::as_str).collect();
        names.into_iter().for_each(|name| rows.entry(name).or_default().1 += *cpu);
        if let Some(last) = stack.last() {
            rows.entry(last.as_str()).or_default().0 += *cpu;
        }
    }
    let mut rows: Vec<(&str, (Duration, Duration))> = rows.into_iter().collect();
    rows.sort_by_key(|(_, (own, whole))| std::cmp::Reverse((*own, *whole)));
    let part = |one: Duration| 100.0 * one.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
    let milliseconds = |one: Duration| one.as_secs_f64() * 1e3;
    let of_time = 100.0 * total.as_secs_f64() / profile.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let mut text = format!(
        "Duration: {:.2}s, Total samples = {:.2}ms ({of_time:.2}%)\n{:>12} {:>6} {:>12} {:>6}\n",
        profile.elapsed.as_secs_f64(),
        milliseconds(total),
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
    use std::io::Read as _;

    use apimachinery::protobuf::pieces;

    use super::*;

    fn profile() -> CpuProfile {
        let share = |names: &[&'static str], milliseconds, polls| CpuShare {
            stack: names.iter().map(|name| FrameName::Static(name)).collect(),
            cpu: Duration::from_millis(milliseconds),
            polls,
        };
        CpuProfile {
            shares: vec![share(&["a", "b"], 30, 3), share(&["a", "b", "a"], 10, 1)],
            elapsed: Duration::from_secs(1),
            elsewhere: Duration::from_millis(60),
        }
    }

    #[test]
    fn a_profile_has_its_texts_once_and_its_samples_from_within() {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&*encoded(&profile(), 7)).read_to_end(&mut bytes).unwrap();
        let pieces = pieces(&bytes).unwrap();
        let of = |number| pieces.iter().filter(move |(one, _)| *one == number).map(|(_, bytes)| *bytes);
        let texts: Vec<&str> =
            of(field::STRING_TABLE).map(|text| std::str::from_utf8(text).unwrap()).collect();
        assert_eq!(texts, ["", "samples", "count", "cpu", "nanoseconds", "b", "a", ELSEWHERE]);
        let second = of(field::SAMPLE).nth(1).unwrap();
        // location_id 6, 5, 6; value 1, 10000000
        assert_eq!(second, [8, 6, 8, 5, 8, 6, 16, 1, 16, 0x80, 0xad, 0xe2, 4]);
        assert_eq!(of(field::SAMPLE).count(), 3);
        assert_eq!((of(field::LOCATION).count(), of(field::FUNCTION).count()), (3, 3));
        assert_eq!(of(field::FUNCTION).next().unwrap(), [8, 5, 16, 5, 24, 5]);
    }

    #[test]
    fn people_see_what_is_a_names_own_and_what_is_deeper() {
        let text = table(&profile());
        assert!(text.starts_with("Duration: 1.00s, Total samples = 100.00ms (10.00%)\n"), "{text}");
        let rows: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0][..4], ["60.00ms", "60.0%", "60.00ms", "60.0%"]);
        assert_eq!(rows[1], ["30.00ms", "30.0%", "40.00ms", "40.0%", "b"]);
        assert_eq!(rows[2], ["10.00ms", "10.0%", "40.00ms", "40.0%", "a"], "once, though it is there twice");
    }
}
