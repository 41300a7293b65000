//! The schedule of a CronJob: five fields, or a descriptor (`github.com/robfig/cron`'s standard parser).

/// When a CronJob is due: a set of values for each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// At the minutes whose parts are all in their sets.
    Fields(Box<Fields>),
    /// `@every 1h30m`, in seconds.
    Every(u64),
}

/// The values of the five fields, as bits: bit n is set when n is one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// 0 to 59.
    pub minutes: u64,
    /// 0 to 23.
    pub hours: u64,
    /// 1 to 31.
    pub days_of_month: u64,
    /// 1 to 12.
    pub months: u64,
    /// 0 (Sunday) to 6.
    pub days_of_week: u64,
    /// Whether the day of the month was given as `*`: then the day of the week alone decides.
    pub any_day_of_month: bool,
    /// Whether the day of the week was given as `*`: then the day of the month alone decides.
    pub any_day_of_week: bool,
}

struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { least: 0, most: 59, names: &[] };
const HOURS: Bounds = Bounds { least: 0, most: 23, names: &[] };
const DAYS_OF_MONTH: Bounds = Bounds { least: 1, most: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAYS_OF_WEEK: Bounds =
    Bounds { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Reads a schedule; the error is upstream's.
pub fn parse(text: &str) -> Result<Schedule, String> {
    if text.is_empty() {
        return Err("empty spec string".into());
    }
    let text = without_time_zone(text);
    if text.starts_with('@') {
        return descriptor(text);
    }
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = parts.as_slice() else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    };
    let is_any = |part: &str| part.split(',').any(|range| range.starts_with(['*', '?']));
    Ok(Schedule::Fields(Box::new(Fields {
        minutes: field(minutes, &MINUTES)?,
        hours: field(hours, &HOURS)?,
        days_of_month: field(days, &DAYS_OF_MONTH)?,
        months: field(months, &MONTHS)?,
        days_of_week: field(weekdays, &DAYS_OF_WEEK)?,
        any_day_of_month: is_any(days),
        any_day_of_week: is_any(weekdays),
    })))
}

/// `TZ=` and `CRON_TZ=` are refused elsewhere, with better words.
fn without_time_zone(text: &str) -> &str {
    match text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        true => text.split_once(' ').map_or("", |(_, rest)| rest.trim()),
        false => text,
    }
}

fn descriptor(text: &str) -> Result<Schedule, String> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => match text.strip_prefix("@every ") {
            Some(duration) => return every(text, duration),
            None => return Err(format!("unrecognized descriptor: {text}")),
        },
    };
    parse(fields)
}

/// Go's durations in hours, minutes and seconds; at least a second.
fn every(text: &str, duration: &str) -> Result<Schedule, String> {
    let wrong = || format!("failed to parse duration {text}: time: invalid duration {duration:?}");
    let (mut rest, mut seconds) = (duration, 0u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = match rest.as_bytes().get(digits) {
            Some(b'h') => 3600,
            Some(b'm') => 60,
            Some(b's') => 1,
            _ => return Err(wrong()),
        };
        seconds = number.checked_mul(unit).and_then(|part| seconds.checked_add(part)).ok_or_else(wrong)?;
        rest = &rest[digits + 1..];
    }
    if duration.is_empty() { Err(wrong()) } else { Ok(Schedule::Every(seconds.max(1))) }
}

fn field(text: &str, bounds: &Bounds) -> Result<u64, String> {
    text.split(',').filter(|part| !part.is_empty()).try_fold(0, |bits, part| Ok(bits | range(part, bounds)?))
}

/// `*`, `5`, `1-5`, each with a `/step`.
fn range(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let (ends, step) = text.split_once('/').map_or((text, None), |(ends, step)| (ends, Some(step)));
    let (first, last) = ends.split_once('-').map_or((ends, None), |(first, last)| (first, Some(last)));
    if last.is_some_and(|last| last.contains('-')) {
        return Err(format!("too many hyphens: {text}"));
    }
    if step.is_some_and(|step| step.contains('/')) {
        return Err(format!("too many slashes: {text}"));
    }
    let (first, mut last) = match (first, last) {
        ("*" | "?", _) => (bounds.least, bounds.most),
        (first, None) => (value(first, bounds)?, value(first, bounds)?),
        (first, Some(last)) => (value(first, bounds)?, value(last, bounds)?),
    };
    let step = step.map_or(Ok(1), number)?;
    if text.contains('/') && !ends.contains(['-', '*', '?']) {
        last = bounds.most;
    }
    match () {
        () if first < bounds.least => {
            Err(format!("beginning of range ({first}) below minimum ({}): {text}", bounds.least))
        }
        () if last > bounds.most => {
            Err(format!("end of range ({last}) above maximum ({}): {text}", bounds.most))
        }
        () if first > last => {
            Err(format!("beginning of range ({first}) beyond end of range ({last}): {text}"))
        }
        () if step == 0 => Err(format!("step of range should be a positive number: {text}")),
        () => Ok((first..=last)
            .step_by(usize::try_from(step).unwrap_or(usize::MAX))
            .fold(0, |bits, n| bits | 1 << n)),
    }
}

fn value(text: &str, bounds: &Bounds) -> Result<u64, String> {
    match bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(at) => Ok(bounds.least + at as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(text: &str) -> Vec<u64> {
        match parse(&format!("{text} * * * *")) {
            Ok(Schedule::Fields(fields)) => {
                (0..60).filter(|minute| fields.minutes >> minute & 1 == 1).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn fields_are_sets() {
        assert_eq!(minutes("5"), [5]);
        assert_eq!(minutes("1-3,10"), [1, 2, 3, 10]);
        assert_eq!(minutes("*/20"), [0, 20, 40]);
        assert_eq!(minutes("50/5"), [50, 55]);
        assert_eq!(minutes("*").len(), 60);
        assert_eq!(parse("@daily"), parse("0 0 * * *"));
        assert_eq!(parse("0 0 * JAN Sun"), parse("0 0 * 1 0"));
        assert_eq!(parse("@every 1h30m"), Ok(Schedule::Every(5400)));
    }

    #[test]
    fn what_is_no_schedule_is_said_in_upstreams_words() {
        for (text, words) in [
            ("", "empty spec string"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(parse(text).unwrap_err(), words, "{text}");
        }
    }
}
