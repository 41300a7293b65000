//! What a YAML 1.1 reader takes a text without quotes for (`resolve.go`).

use chrono::NaiveDate;

/// Whether it stays a string. Numbers of base 60, such as times of the day, are quoted for other readers.
pub(super) fn is_string(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    match first {
        'y' | 'Y' | 'n' | 'N' | 't' | 'T' | 'f' | 'F' | 'o' | 'O' | '~' => !is_word(text),
        '.' => !(is_word(text) || separates_digits(text) && is_float(&text.replace('_', ""))),
        '0'..='9' | '+' | '-' => {
            let digits = text.replace('_', "");
            let is_number = is_whole(&digits) || is_float(&digits) || is_base_60(text);
            !(is_number || is_word(text) || timestamp(text).is_some())
        }
        _ => true,
    }
}

/// Booleans, nulls, and floats that are no number.
const WORDS: &str = "y Y yes Yes YES true True TRUE on On ON n N no No NO false False FALSE off Off OFF \
    ~ null Null NULL .nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF";

fn is_word(text: &str) -> bool {
    WORDS.split_ascii_whitespace().any(|word| word == text)
}

/// Whether underscores stand between digits only, as Go wants them in what begins with a point.
fn separates_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let is_between = |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    (0..bytes.len()).all(|at| bytes[at] != b'_' || is_between(at))
}

/// `strconv.ParseInt` of any base up to 64 bits, signed or not.
fn is_whole(digits: &str) -> bool {
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
        return false;
    }
    match (u64::from_str_radix(figures, radix), sign) {
        (Ok(number), "-") => number <= 1 << 63,
        (Ok(number), "+") => number < 1 << 63,
        (number, _) => number.is_ok(),
    }
}

/// A decimal number, with a point or an exponent, that a float can hold.
fn is_float(digits: &str) -> bool {
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
    is_mantissa && is_exponent && digits.parse::<f64>().is_ok_and(f64::is_finite)
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
    rest = match has_zone {
        true => &rest[1..],
        false => Some(rest.trim_start_matches(' ')).filter(|trimmed| trimmed.len() < rest.len())?,
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
