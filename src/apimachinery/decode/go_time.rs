//! Reading RFC 3339 times with the words of Go's `time.Parse` where one is wrong.

use chrono::{DateTime, Utc};

use golang::go_text::quote;

golang::text_error! {
    /// A text that is no time; in the words of Go's `time.Parse`.
    pub(super) struct BadTime;
}

/// The layouts of upstream's time types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `metav1.Time`; a fraction is allowed and lost.
    Rfc3339,
    /// `metav1.MicroTime`; six digits of fraction are required.
    Rfc3339Micro,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Rfc3339 => "2006-01-02T15:04:05Z07:00",
            Self::Rfc3339Micro => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// What Go's errors call a number, and its bounds; None for punctuation.
type DigitBounds = Option<(&'static str, u32, u32)>;

/// The parts in order.
const PARTS: [(&str, DigitBounds); 11] = [
    ("2006", Some(("year", 0, 9999))),
    ("-", None),
    ("01", Some(("month", 1, 12))),
    ("-", None),
    ("02", Some(("day", 1, 31))),
    ("T", None),
    ("15", Some(("hour", 0, 23))),
    (":", None),
    ("04", Some(("minute", 0, 59))),
    (":", None),
    ("05", Some(("second", 0, 59))),
];

pub(super) fn parse(text: &str, layout: Layout) -> Result<DateTime<Utc>, BadTime> {
    check(text, layout)?;
    DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).map_err(|_| out_of_range(text, "day"))
}

fn check(text: &str, layout: Layout) -> Result<(), BadTime> {
    let mut rest = text;
    for (part, bounds) in PARTS {
        let number = rest.get(..part.len()).filter(|given| match bounds {
            Some(_) => given.bytes().all(|byte| byte.is_ascii_digit()),
            None => *given == part,
        });
        let Some(given) = number else { return Err(cannot_parse(text, layout, rest, part)) };
        if let Some((name, least, most)) = bounds
            && !given.parse().is_ok_and(|number: u32| (least..=most).contains(&number))
        {
            return Err(out_of_range(text, name));
        }
        rest = &rest[part.len()..];
    }
    rest = fraction(text, layout, rest)?;
    zone(text, layout, rest)
}

fn fraction<'t>(text: &str, layout: Layout, rest: &'t str) -> Result<&'t str, BadTime> {
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    match (layout, digits) {
        (Layout::Rfc3339Micro, 6) => Ok(&rest[7..]),
        (Layout::Rfc3339Micro, _) => Err(cannot_parse(text, layout, rest, ".000000")),
        (Layout::Rfc3339, 0) => Ok(rest),
        (Layout::Rfc3339, digits) => Ok(&rest[1 + digits..]),
    }
}

fn zone(text: &str, layout: Layout, rest: &str) -> Result<(), BadTime> {
    let after = match rest.as_bytes() {
        [b'Z', ..] => &rest[1..],
        [b'+' | b'-', hour @ ..] if hour.len() >= 5 && is_offset(&hour[..5]) => &rest[6..],
        _ => return Err(cannot_parse(text, layout, rest, "Z07:00")),
    };
    match after {
        "" => Ok(()),
        extra => Err(format!("parsing time {}: extra text: {}", quote(text), quote(extra)).into()),
    }
}

fn is_offset(bytes: &[u8]) -> bool {
    matches!(bytes, [a, b, b':', c, d] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()))
}

fn cannot_parse(text: &str, layout: Layout, rest: &str, part: &str) -> BadTime {
    let (text, rest) = (quote(text), quote(rest));
    format!("parsing time {text} as \"{}\": cannot parse {rest} as \"{part}\"", layout.text()).into()
}

fn out_of_range(text: &str, part: &str) -> BadTime {
    format!("parsing time {}: {part} out of range", quote(text)).into()
}
