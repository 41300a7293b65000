//! The signals of Linux, by name and by number (`signal(7)`, as `kill -l` of bash calls them).

use std::ops::RangeInclusive;

/// In their order, from 1 on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
const OTHER_NAMES: [(&str, &str); 3] = [("CLD", "CHLD"), ("IOT", "ABRT"), ("POLL", "IO")];
/// Those that mean what programs agree on, as far as a C library leaves them: from `RTMIN` to `RTMAX`.
const REAL_TIME: RangeInclusive<i32> = 34..=64;
/// So far they are counted from `RTMIN`; those behind are counted from `RTMAX`.
const COUNTED_FROM_MIN: i32 = 15;
/// What ends or stops a process, which does not hear of it.
const UNHEARD: [&str; 2] = ["KILL", "STOP"];

/// The number of `SIGTERM`, of `term`, of `SIGRTMIN+3` and of `15`; nothing for what is no signal.
pub(crate) fn number_of(word: &str) -> Option<i32> {
    let upper = word.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    let bare = OTHER_NAMES.iter().find(|(other, _)| *other == bare).map_or(bare, |(_, name)| name);
    let number = real_time(bare).or_else(|| {
        let at = NAMES.iter().position(|name| *name == bare);
        at.and_then(|at| i32::try_from(at + 1).ok()).or_else(|| bare.parse().ok())
    });
    number.filter(|number| (1..=*REAL_TIME.end()).contains(number))
}

/// Of `RTMIN`, `RTMIN+3` or `RTMAX-3`.
fn real_time(name: &str) -> Option<i32> {
    let by = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i32>().ok() };
    let from = |end: &str, number: &i32| number.checked_add(by(name.strip_prefix(end)?)?);
    let number = from("RTMIN", REAL_TIME.start()).or_else(|| from("RTMAX", REAL_TIME.end()));
    number.filter(|number| REAL_TIME.contains(number))
}

/// What it is called, without `SIG`; those that a C library keeps for itself have no name but their number.
pub(crate) fn name_of(number: i32) -> String {
    let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    if let Some(name) = at.and_then(|at| NAMES.get(at)) {
        return (*name).to_owned();
    }
    let (min, max) = REAL_TIME.into_inner();
    match (number - min, max - number) {
        (0, _) => "RTMIN".to_owned(),
        (_, 0) => "RTMAX".to_owned(),
        (above @ 1..=COUNTED_FROM_MIN, _) => format!("RTMIN+{above}"),
        (16.., below @ 1..) => format!("RTMAX-{below}"),
        _ => number.to_string(),
    }
}

/// All that have a name of their own, on one line.
pub(crate) fn listed() -> String {
    format!("{}\n", NAMES.join(" "))
}

/// Whether a process may say what it does about a signal.
pub(crate) fn is_heard(number: i32) -> bool {
    !UNHEARD.contains(&name_of(number).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_has_a_number_and_is_called_by_it() {
        for (words, number, name) in [
            ("SIGTERM term 15 015", 15, "TERM"),
            ("CLD SIGCHLD", 17, "CHLD"),
            ("sigpoll 29", 29, "IO"),
            ("SYS", 31, "SYS"),
            ("33", 33, "33"),
            ("SIGRTMIN", 34, "RTMIN"),
            ("RTMIN+15", 49, "RTMIN+15"),
            ("SIGRTMIN+16 RTMAX-14", 50, "RTMAX-14"),
            ("RTMAX", 64, "RTMAX"),
        ] {
            assert!(words.split(' ').all(|word| number_of(word) == Some(number)), "{words}");
            assert_eq!(name_of(number), name);
        }
        for word in ["", "0", "65", "-1", "RTMIN-1", "RTMAX+1", "EXIT", "SIG"] {
            assert_eq!(number_of(word), None, "{word}");
        }
        for number in 1..=64 {
            assert_eq!(number_of(&name_of(number)), Some(number));
        }
    }
}
