//! `PprofProfile`: numbers by stack, as pprof reads them (`profile.proto`, gzipped).
//!
//! Upstream's come from Go's runtime (`runtime/pprof`). Where those have functions, ours have components,
//! tasks, requests, threads and whatever else is told apart: a stack is a list of names.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use crate::endpoints::response::writers::gzip;
use apimachinery::protobuf::{write_bytes, write_int, write_nested};
use clock::FrameName;

/// What is nobody's.
pub(super) const ELSEWHERE: &str = "(elsewhere in this process)";
/// Of how many different stacks is told; what there is of any other is [`OTHERS`]'.
const MAX_STACKS: usize = 4096;
/// What stacks are together that are too many.
const OTHERS: &str = "(too many different stacks)";
/// Nothing is left to chance: each is counted.
const PERIOD: i64 = 1;

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
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// What numbers are, and in which unit.
pub(super) type ValueType = (&'static str, &'static str);

/// What the numbers of a profile are.
#[derive(Debug, PartialEq)]
pub(super) struct ProfileShape {
    /// Those that each stack has. By the last one they are ordered, and pprof shows it when nothing else is
    /// said.
    pub(super) values: &'static [ValueType],
    /// Of what there is one between two looks, where somebody looks at times.
    pub(super) period: ValueType,
    /// Which one is shown, if it is not the last.
    pub(super) shown: Option<&'static str>,
}

/// How much there is of something, by stack.
#[derive(Debug)]
pub(super) struct PprofProfile {
    pub(super) shape: &'static ProfileShape,
    /// When it was taken, or begun, in nanoseconds since 1970.
    pub(super) at: i64,
    /// For how long somebody looked; none where it is of a moment.
    pub(super) elapsed: Duration,
    /// By stack, the outermost first: as many numbers as its shape says. Bound: [`MAX_STACKS`] and one.
    samples: BTreeMap<Vec<FrameName>, Vec<i64>>,
}

/// What there is of one stack.
pub(super) struct StackSample<'a> {
    /// The outermost first.
    pub(super) stack: &'a [FrameName],
    pub(super) values: &'a [i64],
}

impl PprofProfile {
    pub(super) fn new(shape: &'static ProfileShape, at: i64) -> PprofProfile {
        PprofProfile { shape, at, elapsed: Duration::ZERO, samples: BTreeMap::new() }
    }

    /// So much more of a stack.
    pub(super) fn add(&mut self, stack: Vec<FrameName>, values: &[i64]) {
        debug_assert_eq!(values.len(), self.shape.values.len());
        let is_too_many = self.samples.len() >= MAX_STACKS && !self.samples.contains_key(&stack);
        let stack = if is_too_many { vec![FrameName::Static(OTHERS)] } else { stack };
        let known = self.samples.entry(stack).or_insert_with(|| vec![0; values.len()]);
        known.iter_mut().zip(values).for_each(|(known, more)| *known = known.saturating_add(*more));
    }

    /// How many stacks there are.
    pub(super) fn stacks(&self) -> usize {
        self.samples.len()
    }

    /// The sum of one of the numbers.
    pub(super) fn total(&self, value: usize) -> i64 {
        self.samples.values().fold(0, |sum, values| sum.saturating_add(values[value]))
    }

    /// By the last number, the most first.
    pub(super) fn samples(&self) -> Vec<StackSample<'_>> {
        let mut samples: Vec<StackSample<'_>> =
            self.samples.iter().map(|(stack, values)| StackSample { stack, values }).collect();
        samples.sort_by_key(|sample| std::cmp::Reverse(sample.values.last().copied()));
        samples
    }

    /// By how much there is more than there was, or less; what is as it was is left out (`profile.Merge`).
    pub(super) fn since(mut self, before: &PprofProfile) -> PprofProfile {
        for (stack, values) in &before.samples {
            let known = self.samples.entry(stack.clone()).or_insert_with(|| vec![0; values.len()]);
            known.iter_mut().zip(values).for_each(|(known, less)| *known = known.saturating_sub(*less));
        }
        self.samples.retain(|_, values| values.iter().any(|value| *value != 0));
        self.elapsed = Duration::from_nanos(u64::try_from(self.at - before.at).unwrap_or(0));
        self
    }

    /// As `go tool pprof` takes it.
    pub(super) fn encoded(&self) -> Bytes {
        let mut strings = StringTable::new();
        // A function has one place in the program here, and the number of its name.
        let mut functions: Vec<i64> = Vec::new();
        let mut out = Vec::new();
        for kind in self.shape.values {
            value_type(&mut out, field::SAMPLE_TYPE, *kind, &mut strings);
        }
        for StackSample { stack, values } in self.samples() {
            // The innermost is first.
            let places: Vec<i64> = stack.iter().rev().map(|name| strings.place(name.as_str())).collect();
            write_nested(&mut out, field::SAMPLE, |out| {
                places.iter().for_each(|place| write_int(out, 1, *place));
                values.iter().for_each(|value| write_int(out, 2, *value));
            });
            functions.extend(places);
        }
        functions.sort_unstable();
        functions.dedup();
        functions.into_iter().for_each(|number| function(&mut out, number));
        value_type(&mut out, field::PERIOD_TYPE, self.shape.period, &mut strings);
        write_int(&mut out, field::PERIOD, PERIOD);
        write_int(&mut out, field::TIME_NANOS, self.at);
        if !self.elapsed.is_zero() {
            write_int(&mut out, field::DURATION_NANOS, nanoseconds(self.elapsed));
        }
        if let Some(shown) = self.shape.shown {
            write_int(&mut out, field::DEFAULT_SAMPLE_TYPE, strings.place(shown));
        }
        strings.all.iter().for_each(|text| write_bytes(&mut out, field::STRING_TABLE, text.as_bytes()));
        gzip(&out)
    }
}

/// As profiles count time.
pub(super) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
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

/// `ValueType`
fn value_type(out: &mut Vec<u8>, number: u32, (kind, unit): ValueType, strings: &mut StringTable<'_>) {
    let (kind, unit) = (strings.place(kind), strings.place(unit));
    write_nested(out, number, |out| {
        write_int(out, 1, kind);
        write_int(out, 2, unit);
    });
}

/// `Function`, and the `Location` that is within it.
fn function(out: &mut Vec<u8>, number: i64) {
    write_nested(out, field::LOCATION, |out| {
        write_int(out, 1, number);
        write_nested(out, 4, |line| write_int(line, 1, number));
    });
    write_nested(out, field::FUNCTION, |out| {
        write_int(out, 1, number);
        write_int(out, 2, number);
        write_int(out, 3, number);
    });
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use apimachinery::protobuf::pieces;

    use super::*;

    const SHAPE: ProfileShape = ProfileShape {
        values: &[("samples", "count"), ("cpu", "nanoseconds")],
        period: ("cpu", "nanoseconds"),
        shown: Some("samples"),
    };

    fn stack(names: &[&'static str]) -> Vec<FrameName> {
        names.iter().map(|name| FrameName::Static(name)).collect()
    }

    fn profile() -> PprofProfile {
        let mut profile = PprofProfile::new(&SHAPE, 7);
        profile.add(stack(&["a", "b"]), &[2, 25_000_000]);
        profile.add(stack(&["a", "b", "a"]), &[1, 10_000_000]);
        profile.add(stack(&["a", "b"]), &[1, 5_000_000]);
        profile.add(stack(&[ELSEWHERE]), &[0, 60_000_000]);
        profile
    }

    /// The messages and texts of a profile, by their fields.
    fn decoded(profile: &PprofProfile) -> Vec<u8> {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&*profile.encoded()).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_profile_has_its_texts_once_and_its_samples_from_within() {
        let bytes = decoded(&profile());
        let pieces = pieces(&bytes).unwrap();
        let of = |number| pieces.iter().filter(move |(one, _)| *one == number).map(|(_, bytes)| *bytes);
        let texts: Vec<&str> =
            of(field::STRING_TABLE).map(|text| std::str::from_utf8(text).unwrap()).collect();
        assert_eq!(texts, ["", "samples", "count", "cpu", "nanoseconds", ELSEWHERE, "b", "a"]);
        assert_eq!(of(field::SAMPLE_TYPE).collect::<Vec<_>>(), [[8, 1, 16, 2], [8, 3, 16, 4]]);
        let third = of(field::SAMPLE).nth(2).unwrap();
        // location_id 7, 6, 7; value 1, 10000000
        assert_eq!(third, [8, 7, 8, 6, 8, 7, 16, 1, 16, 0x80, 0xad, 0xe2, 4]);
        // A number stands there also when it is 0.
        assert_eq!(of(field::SAMPLE).next().unwrap()[..4], [8, 5, 16, 0]);
        assert_eq!(of(field::SAMPLE).count(), 3);
        assert_eq!((of(field::LOCATION).count(), of(field::FUNCTION).count()), (3, 3));
        assert_eq!(of(field::FUNCTION).next().unwrap(), [8, 5, 16, 5, 24, 5]);
        // default_sample_type is the place of "samples"; there is no duration.
        let numbers = [12 << 3, 1, 9 << 3, 7, 14 << 3, 1];
        assert!(bytes.windows(6).any(|six| six == numbers), "{bytes:?}");
    }

    #[test]
    fn what_has_become_more_or_less_is_told_and_nothing_else() {
        let mut later = PprofProfile::new(&SHAPE, 1_000_000_007);
        later.add(stack(&["a", "b"]), &[3, 30_000_000]);
        later.add(stack(&["new"]), &[1, 1]);
        later.add(stack(&[ELSEWHERE]), &[0, 50_000_000]);
        let delta = later.since(&profile());
        let told: Vec<(&str, &[i64])> =
            delta.samples().iter().map(|one| (one.stack[0].as_str(), one.values)).collect();
        assert_eq!(told, [("new", &[1, 1][..]), (ELSEWHERE, &[0, -10_000_000]), ("a", &[-1, -10_000_000])]);
        assert_eq!((delta.at, delta.elapsed), (1_000_000_007, Duration::from_secs(1)));
        let bytes = decoded(&delta);
        let pieces = pieces(&bytes).unwrap();
        let less = pieces.iter().filter(|(number, _)| *number == field::SAMPLE).nth(2).unwrap().1;
        // value -1
        assert_eq!(less[less.len() - 22..][..11], [16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }

    #[test]
    fn stacks_that_are_too_many_are_told_together() {
        let mut profile = PprofProfile::new(&SHAPE, 0);
        let numbered = |number: usize| vec![FrameName::Shared(number.to_string().into())];
        (0..MAX_STACKS + 10).for_each(|number| profile.add(numbered(number), &[1, 1]));
        profile.add(numbered(0), &[1, i64::MAX]);
        assert_eq!((profile.stacks(), profile.total(0)), (MAX_STACKS + 1, MAX_STACKS as i64 + 11));
        let most = &profile.samples()[..2];
        assert_eq!((most[0].stack[0].as_str(), most[0].values[1]), ("0", i64::MAX));
        assert_eq!((most[1].stack[0].as_str(), most[1].values), (OTHERS, &[10, 10][..]));
    }
}
