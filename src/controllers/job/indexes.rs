//! The indexes of an Indexed Job as ordered intervals, and their text: `1,3-5,7`.

use std::fmt;

/// Ordered, apart from each other by more than one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// Reads a text; what is no interval is left out, and so is what is not below `completions`.
    pub(super) fn parse(text: &str, completions: i64) -> Intervals {
        let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
        let interval = |part: &str| match part.split_once('-') {
            None => number(part).map(|index| (index, index)),
            Some((first, last)) => Some((number(first)?, number(last)?)),
        };
        let known = text.split(',').filter_map(interval);
        let within = known.filter(|(first, last)| *first < completions && first <= last);
        Intervals::default().merged(within.map(|(first, last)| (first, last.min(completions - 1))))
    }

    /// With more indexes, in any order.
    pub(super) fn with(&self, indexes: impl IntoIterator<Item = i64>) -> Intervals {
        self.merged(indexes.into_iter().map(|index| (index, index)))
    }

    /// With all that another one has.
    pub(super) fn with_all(&self, other: &Intervals) -> Intervals {
        self.merged(other.0.iter().copied())
    }

    /// How many indexes there are.
    pub(super) fn total(&self) -> i64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether an index is one of them.
    pub(super) fn has(&self, index: i64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// How many are in both.
    pub(super) fn common_with(&self, other: &Intervals) -> i64 {
        let overlap = |(a, b): &(i64, i64)| -> i64 {
            other.0.iter().map(|(c, d)| (b.min(d) - a.max(c) + 1).max(0)).sum()
        };
        self.0.iter().map(overlap).sum()
    }

    /// The first `count` numbers below `completions` that are not among them.
    pub(super) fn first_missing(&self, count: usize, completions: i64) -> Vec<i64> {
        let mut missing = Vec::new();
        let mut candidate = 0;
        for (first, last) in self.0.iter().copied().chain([(completions, completions)]) {
            let free = candidate..first.min(completions);
            missing.extend(free.take(count - missing.len()));
            candidate = candidate.max(last + 1);
        }
        missing
    }

    fn merged(&self, more: impl Iterator<Item = (i64, i64)>) -> Intervals {
        let mut all: Vec<(i64, i64)> = self.0.iter().copied().chain(more).collect();
        all.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match merged.last_mut() {
                Some((_, before)) if first <= *before + 1 => *before = last.max(*before),
                _ => merged.push((first, last)),
            }
        }
        Intervals(merged)
    }
}

impl fmt::Display for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        let cases = [
            ("", 10, "", 0),
            ("5", 10, "5", 1),
            ("0,1", 10, "0,1", 2),
            ("0-1,3", 10, "0,1,3", 3),
            ("1,3-5,6,9", 10, "1,3-6,9", 6),
            ("1-20", 10, "1-9", 9),
            ("12,13", 10, "", 0),
            ("a,2,-,4-b", 10, "2", 1),
            ("3-1", 10, "", 0),
        ];
        for (text, completions, written, total) in cases {
            let intervals = Intervals::parse(text, completions);
            assert_eq!((intervals.to_string().as_str(), intervals.total()), (written, total), "{text}");
        }
    }

    #[test]
    fn indexes_are_added_and_missed() {
        let some = Intervals::parse("1,3-5", 10);
        assert_eq!(some.with([2, 9]).to_string(), "1-5,9");
        assert_eq!(some.with_all(&Intervals::parse("0,6-7", 10)).to_string(), "0,1,3-7");
        let held: Vec<i64> = (0..10).filter(|index| some.has(*index)).collect();
        assert_eq!(held, [1, 3, 4, 5]);
        assert_eq!(some.first_missing(3, 10), [0, 2, 6]);
        assert_eq!(some.first_missing(10, 7), [0, 2, 6]);
        assert_eq!(some.first_missing(0, 7), [0; 0]);
        assert_eq!(Intervals::default().first_missing(2, 3), [0, 1]);
        assert_eq!(some.common_with(&Intervals::parse("0-3,5-9", 10)), 3);
    }
}
