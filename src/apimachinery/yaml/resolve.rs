//! What a YAML 1.1 reader takes a text without quotes for (`resolve.go`).

use chrono::NaiveDate;

use super::aliases::BadYaml;

/// What begins the tags of YAML itself.
const OWN_TAGS: &str = "tag:yaml.org,2002:";

/// The tags that make a difference, in full, and the one that only says that there are no quotes.
const KNOWN_TAGS: [&str; 8] = [
    "!",
    "tag:yaml.org,2002:binary",
    "tag:yaml.org,2002:bool",
    "tag:yaml.org,2002:float",
    "tag:yaml.org,2002:int",
    "tag:yaml.org,2002:merge",
    "tag:yaml.org,2002:null",
    "tag:yaml.org,2002:timestamp",
];
/// Stands for every other tag: what has one is a text, a list or a mapping, as it is written.
const OTHER_TAG: &str = "tag:yaml.org,2002:str";

/// The tag as nodes keep it, which costs nothing however long and frequent it is.
pub(super) fn known_tag(tag: &str) -> &'static str {
    KNOWN_TAGS.into_iter().find(|known| *known == tag).unwrap_or(OTHER_TAG)
}

/// What a scalar is. What it is not, is a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum YamlScalar {
    Null,
    Bool(bool),
    Int(i64),
    /// One that is too large for the other.
    Uint(u64),
    /// A number, infinite, or none.
    Float(f64),
    /// Kept as the text that it is.
    Timestamp,
    Text,
}

impl YamlScalar {
    /// The tag that says so.
    fn tag(self) -> &'static str {
        match self {
            YamlScalar::Null => "null",
            YamlScalar::Bool(_) => "bool",
            YamlScalar::Int(_) | YamlScalar::Uint(_) => "int",
            YamlScalar::Float(_) => "float",
            YamlScalar::Timestamp => "timestamp",
            YamlScalar::Text => "str",
        }
    }
}

/// What a text is that has this tag, if any, and no quotes if it has none.
///
/// # Errors
/// A text that is not what its tag says.
pub(super) fn resolve(tag: &str, text: &str) -> Result<YamlScalar, BadYaml> {
    let wanted = match tag.strip_prefix(OWN_TAGS) {
        _ if tag.is_empty() => return Ok(plain(text, true)),
        Some(own @ ("bool" | "int" | "float" | "null" | "timestamp")) => own,
        _ => return Ok(YamlScalar::Text),
    };
    match plain(text, wanted == "timestamp") {
        YamlScalar::Int(number) if wanted == "float" => Ok(YamlScalar::Float(number as f64)),
        found if found.tag() == wanted => Ok(found),
        found => Err(format!("yaml: cannot decode !!{} `{text}` as a !!{wanted}", found.tag()).into()),
    }
}

/// Whether the tag says base64.
pub(super) fn is_binary(tag: &str) -> bool {
    tag.strip_prefix(OWN_TAGS) == Some("binary")
}

/// Whether a mapping's key with this tag may be the one that merges.
pub(super) fn is_merge(tag: &str) -> bool {
    tag.strip_prefix(OWN_TAGS) == Some("merge")
}

/// Whether it stays a string. Numbers of base 60, such as times of the day, are quoted for other readers.
pub(super) fn is_string(text: &str) -> bool {
    plain(text, true) == YamlScalar::Text && !is_base_60(text)
}

fn plain(text: &str, may_be_time: bool) -> YamlScalar {
    let found = match text.chars().next() {
        None => Some(YamlScalar::Null),
        Some('y' | 'Y' | 'n' | 'N' | 't' | 'T' | 'f' | 'F' | 'o' | 'O' | '~') => word(text),
        Some('.') => word(text).or_else(|| {
            let digits = Some(text).filter(|text| separates_digits(text))?.replace('_', "");
            float(&digits)
        }),
        Some('0'..='9' | '+' | '-') => word(text).or_else(|| number(text, may_be_time)),
        _ => None,
    };
    found.unwrap_or(YamlScalar::Text)
}

/// Booleans, nulls, and floats that are no number.
fn word(text: &str) -> Option<YamlScalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            YamlScalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            YamlScalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => YamlScalar::Null,
        ".nan" | ".NaN" | ".NAN" => YamlScalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => YamlScalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => YamlScalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

/// What begins with a digit or sign. Underscores count for nothing.
fn number(text: &str, may_be_time: bool) -> Option<YamlScalar> {
    if may_be_time && timestamp(text).is_some() {
        return Some(YamlScalar::Timestamp);
    }
    let digits = text.replace('_', "");
    // Go reads what is behind the prefix as a number of its own, sign and all.
    let signed_binary = || i64::from_str_radix(digits.strip_prefix("0b")?, 2).ok().map(YamlScalar::Int);
    whole(&digits).or_else(|| float(&digits)).or_else(signed_binary)
}

/// Whether underscores stand between digits only, as Go wants them in what begins with a point.
fn separates_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let is_between = |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    (0..bytes.len()).all(|at| bytes[at] != b'_' || is_between(at))
}

/// `strconv.ParseInt` of any base up to 64 bits, signed or not.
fn whole(digits: &str) -> Option<YamlScalar> {
    let (unsigned, sign) = match digits.strip_prefix(['+', '-']) {
        Some(unsigned) => (unsigned, &digits[..1]),
        None => (digits, ""),
    };
    let prefix = unsigned.get(..2).map(str::to_ascii_lowercase);
    let (radix, figures) = match prefix.as_deref() {
        Some("0x") => (16, &unsigned[2..]),
        Some("0b") => (2, &unsigned[2..]),
        Some("0o") => (8, &unsigned[2..]),
        Some(other) if other.starts_with('0') => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if figures.is_empty() || !figures.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let number = u64::from_str_radix(figures, radix).ok()?;
    let signed = if sign == "-" { 0_i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() };
    match signed {
        Some(signed) => Some(YamlScalar::Int(signed)),
        None => sign.is_empty().then_some(YamlScalar::Uint(number)),
    }
}

/// A decimal number, with a point or an exponent, that a float can hold.
fn float(digits: &str) -> Option<YamlScalar> {
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, part)) => all_digits(whole) && all_digits(part) && mantissa.len() > 1,
        None => all_digits(mantissa) && !mantissa.is_empty(),
    };
    let is_exponent = exponent.is_none_or(|exponent| all_digits(exponent) && !exponent.is_empty());
    if !is_mantissa || !is_exponent {
        return None;
    }
    digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(YamlScalar::Float)
}

/// `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((first, rest)) = unsigned.split_once(':') else { return false };
    let (rest, part) = rest.split_once('.').unwrap_or((rest, ""));
    let is_loose = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let is_sixtieth = |text: &str| match text.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
        _ => false,
    };
    first.starts_with(|c: char| c.is_ascii_digit())
        && is_loose(first)
        && rest.split(':').all(is_sixtieth)
        && is_loose(part)
}

/// A date, alone or with a time of the day: Go's `time.Parse` of the four forms that the reader knows.
fn timestamp(text: &str) -> Option<()> {
    let year = text.get(..4).filter(|year| year.bytes().all(|byte| byte.is_ascii_digit()))?;
    let mut rest = text[4..].strip_prefix('-')?;
    let month = figures(&mut rest, 1..=12)?;
    rest = rest.strip_prefix('-')?;
    let day = figures(&mut rest, 1..=31)?;
    NaiveDate::from_ymd_opt(year.parse().ok()?, month, day)?;
    if rest.is_empty() {
        return Some(());
    }
    let has_zone = rest.starts_with(['T', 't']);
    rest = if has_zone {
        &rest[1..]
    } else {
        Some(rest.trim_start_matches(' ')).filter(|trimmed| trimmed.len() < rest.len())?
    };
    figures(&mut rest, 0..=23)?;
    rest = rest.strip_prefix(':')?;
    figures(&mut rest, 0..=59)?;
    rest = rest.strip_prefix(':')?;
    figures(&mut rest, 0..=59)?;
    if let Some(part) = rest.strip_prefix(['.', ',']).filter(|part| starts_with_digit(part)) {
        rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let ends_well = if has_zone { rest == "Z" || is_offset(rest) } else { rest.is_empty() };
    ends_well.then_some(())
}

/// One figure or two.
fn figures(rest: &mut &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let count = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let number = rest[..count].parse().ok()?;
    *rest = &rest[count..];
    range.contains(&number).then_some(number)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// `+01:30`; Go bounds the hours by 24 and the minutes by 60, both included.
fn is_offset(text: &str) -> bool {
    let [b'+' | b'-', h, hh, b':', m, mm] = text.as_bytes() else { return false };
    let number = |ten: &u8, one: &u8| {
        (ten.is_ascii_digit() && one.is_ascii_digit()).then(|| (ten - b'0') * 10 + (one - b'0'))
    };
    number(h, hh).is_some_and(|hours| hours <= 24) && number(m, mm).is_some_and(|minutes| minutes <= 60)
}
