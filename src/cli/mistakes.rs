//! What is said of a flag whose value cannot be used: which flag or variable it is, and what it may be.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write;
use std::process::exit;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

/// Says what is wrong and ends, as clap does.
pub(crate) fn refuse(command: &Command, error: &clap::Error) -> ! {
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    match line(command, error, &given) {
        Some(line) => {
            let text = format!("error: {line}\n\nFor more information, try '--help'.\n");
            let _ = std::io::stderr().write_all(text.as_bytes());
            exit(2)
        }
        None => error.exit(),
    }
}

/// The line about a value; none when the error is about something else.
fn line(command: &Command, error: &clap::Error, given: &[OsString]) -> Option<String> {
    if !matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) {
        return None;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (shown, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let flag = shown.split([' ', '[', '=']).next().filter(|flag| flag.starts_with("--"))?;
    let arg = find(command, flag.trim_start_matches('-'))?;
    // A flag without any value: clap's words are good.
    if value.is_empty() && is_given(arg, given) && error.source().is_none() {
        return None;
    }
    let what = match arg.get_env().filter(|_| !is_given(arg, given)) {
        Some(variable) => format!("{}={value} (for {flag})", variable.to_string_lossy()),
        None => format!("{flag} {value}"),
    };
    Some(format!("{what}: {}", why(error)?))
}

/// Among the flags of all subcommands.
fn find<'a>(command: &'a Command, long: &str) -> Option<&'a Arg> {
    let own = command.get_arguments().find(|arg| arg.get_long() == Some(long));
    own.or_else(|| command.get_subcommands().find_map(|subcommand| find(subcommand, long)))
}

/// Whether it stands on the command line; else it is from the environment.
fn is_given(arg: &Arg, given: &[OsString]) -> bool {
    let long = format!("--{}", arg.get_long().unwrap_or_default());
    let short = arg.get_short().map(|short| format!("-{short}"));
    given.iter().map(|one| one.to_string_lossy()).any(|one| {
        let is_short = short.as_ref().is_some_and(|short| !one.starts_with("--") && one.starts_with(short));
        is_short || one == long || one.starts_with(&format!("{long}="))
    })
}

fn why(error: &clap::Error) -> Option<String> {
    if let Some(ContextValue::Strings(values)) = error.get(ContextKind::ValidValue) {
        return match values.as_slice() {
            [] => None,
            [only] => Some(format!("must be {only}")),
            [others @ .., last] => Some(format!("must be {} or {last}", others.join(", "))),
        };
    }
    let said = error.source()?.to_string();
    Some(match said.as_str() {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "must be a whole number".into()
        }
        "number too large to fit in target type" => "must be a smaller whole number".into(),
        "number too small to fit in target type" => "must be a larger whole number".into(),
        "invalid float literal" | "cannot parse float from empty string" => "must be a number, as 0.5".into(),
        duration if duration.starts_with("time: invalid duration") => {
            format!("{duration}; must be a duration, as 30s, 5m or 1h30m")
        }
        _ => said,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Arguments, help};

    /// What is said of a command line. The environment is the process's, and so not told apart here.
    fn said(line_of: &[&str]) -> Option<String> {
        let mut command = help::shape(Arguments::command());
        let error = command.try_get_matches_from_mut(line_of).unwrap_err();
        let given: Vec<OsString> = line_of.iter().map(OsString::from).collect();
        line(&command, &error, &given)
    }

    #[test]
    fn a_value_is_told_with_its_flag_and_what_it_may_be() {
        for (flag, expected) in [
            ("--nodes=abc", "--nodes abc: must be a whole number from 0 to 3000"),
            ("--nodes=3001", "--nodes 3001: must be a whole number from 0 to 3000"),
            ("--seed=abc", "--seed abc: must be a whole number from 0 to 18446744073709551615"),
            ("--max-requests-inflight=x", "--max-requests-inflight x: must be a whole number"),
            (
                "--audit-webhook-batch-throttle-qps=x",
                "--audit-webhook-batch-throttle-qps x: must be a number, as 0.5",
            ),
            ("--audit-log-mode=x", "--audit-log-mode x: must be batch, blocking or blocking-strict"),
            ("--audit-log-compress=x", "--audit-log-compress x: must be true or false"),
            (
                "--audit-log-batch-max-wait=x",
                "--audit-log-batch-max-wait x: time: invalid duration \"x\"; must be a duration, as 30s, 5m or 1h30m",
            ),
        ] {
            assert_eq!(said(&["kubarium", "up", flag]).as_deref(), Some(expected));
        }
        let negative = said(&["kubarium", "up", "--nodes", "-1"]);
        assert_eq!(negative.as_deref(), Some("--nodes -1: must be a whole number from 0 to 3000"));
        assert_eq!(said(&["kubarium", "up", "--node"]), None, "clap's own words and its tip");
    }
}
