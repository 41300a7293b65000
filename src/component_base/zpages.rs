//! `/statusz` and `/flagz` of components (`component-base/zpages`): for people, in no form that anybody may
//! rely on.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::time::Duration;

use clap::{Args, Command};

/// What both pages say first.
const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
     guarantees and is for debugging purposes only.";

/// How `/statusz` writes a time (`time.UnixDate`).
pub const UNIX_DATE: &str = "%a %b %e %H:%M:%S UTC %Y";

/// `/statusz`: since when a component runs, `started` as `time.UnixDate` writes it, which version it is of,
/// and of an apiserver where else to look.
pub fn statusz(component: &str, started: &str, up: Duration, version: &str, paths: &[&str]) -> String {
    let (seconds, version) = (up.as_secs(), version.trim_start_matches('v'));
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let mut page = format!("\n{component} statusz\n{WARNING}\n\nStarted: {started}\n");
    // Writing into a text cannot fail.
    let _ = writeln!(page, "Up: {hours} hr {minutes:02} min {:02} sec", seconds % 60);
    let _ = writeln!(page, "Binary version: {version}\nEmulation version: {version}");
    if !paths.is_empty() {
        let _ = writeln!(page, "Paths: {}", paths.join(" "));
    }
    page
}

/// `/flagz`: the flags of a component and their values.
pub fn flagz(component: &str, flags: &BTreeMap<String, String>) -> String {
    let mut page = format!("\n{component} flags\n{WARNING}\n\n");
    for (flag, value) in flags {
        let _ = writeln!(page, "{flag}={value}");
    }
    page
}

/// The flags that options are made of, and what they are: a field is as its `Debug` shows it.
pub fn flags_of<T: Args + Debug>(options: &T) -> BTreeMap<String, String> {
    let command = T::augment_args(Command::new("shown").no_binary_name(true));
    let shown = format!("{options:#?}");
    let mut flags = BTreeMap::new();
    for argument in command.get_arguments() {
        let Some(flag) = argument.get_long() else { continue };
        if let Some(value) = field(&shown, argument.get_id().as_str()) {
            flags.insert(flag.to_owned(), value);
        }
    }
    flags
}

/// The value of a field in what `Debug` shows with line breaks, in one line; fields of fields count, too.
fn field(shown: &str, name: &str) -> Option<String> {
    let mut lines = shown.lines();
    let first = lines
        .by_ref()
        .find(|line| line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(": ")))?;
    let indent = first.len() - first.trim_start().len();
    let mut value = first.trim_start()[name.len() + 2..].to_owned();
    if value.ends_with(['{', '[', '(']) {
        for line in lines {
            value.push_str(line.trim());
            if line.len() - line.trim_start().len() == indent {
                break;
            }
            value.push(' ');
        }
    }
    let value = value.trim_end_matches(',');
    let some = value.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')'));
    let value = some.map_or(value, |inner| inner.trim().trim_end_matches(','));
    // What a file was read into is not shown: it may hold secrets.
    let is_structure = value.contains('{') || value.contains('(');
    if let Some(duration) = in_go(value) {
        return Some(duration);
    }
    Some(match value {
        "None" => String::new(),
        _ if is_structure => "...".to_owned(),
        // Lists as pflag shows them.
        value => value.replace(", ]", "]").replace("\", \"", ",").replace('"', ""),
    })
}

/// A duration as Go writes it (`5m0s`); none of anything else. Texts, which may look like one, are in quotes.
fn in_go(value: &str) -> Option<String> {
    let is_duration = value.starts_with(|first: char| first.is_ascii_digit()) && value.ends_with('s');
    let duration = golang::duration::parse(value).filter(|_| is_duration)?;
    Some(golang::duration::format(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Args, Clone, Debug)]
    struct Inner {
        #[arg(long, default_value = "a,b", value_delimiter = ',')]
        names: Vec<String>,
    }

    #[derive(Args, Clone, Debug)]
    struct Outer {
        #[arg(long, default_value_t = 7)]
        how_many: u32,
        #[arg(long)]
        file: Option<String>,
        #[command(flatten)]
        inner: Inner,
    }

    #[test]
    fn flags_are_shown_with_their_values() {
        let mut options: Outer = crate::flags::defaults();
        options.how_many = 8;
        let flags = flags_of(&options);
        let shown: Vec<String> = flags.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        assert_eq!(shown, ["file=", "how-many=8", "names=[a,b]"]);
        options.file = Some("/f".into());
        assert_eq!(flags_of(&options)["file"], "/f");
        assert!(flagz("kube-scheduler", &flags).ends_with("\n\nfile=\nhow-many=8\nnames=[a,b]\n"));
    }

    #[derive(Args, Clone, Debug)]
    struct Waits {
        #[arg(long, value_parser = golang::duration::parse_flag, default_value = "0s")]
        audit_log_batch_max_wait: Duration,
        #[arg(long, value_parser = golang::duration::parse_flag, default_value = "1.5s")]
        short: Duration,
        #[arg(long, value_parser = golang::duration::parse_flag, default_value = "5m")]
        long: Option<Duration>,
        #[arg(long, default_value = "90s")]
        text: String,
    }

    #[test]
    fn durations_are_shown_as_go_writes_them() {
        let flags = flags_of(&crate::flags::defaults::<Waits>());
        let shown: Vec<String> = flags.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        assert_eq!(shown, ["audit-log-batch-max-wait=0s", "long=5m0s", "short=1.5s", "text=90s"]);
    }

    #[test]
    fn a_status_says_since_when() {
        let page = statusz(
            "kube-apiserver",
            "Thu Jan  1 00:00:00 UTC 1970",
            Duration::from_secs(3725),
            "1.36.2",
            &["/api"],
        );
        assert!(page.starts_with("\nkube-apiserver statusz\nWarning: This endpoint"), "{page}");
        assert!(page.ends_with(
            "Up: 1 hr 02 min 05 sec\nBinary version: 1.36.2\nEmulation version: 1.36.2\nPaths: /api\n"
        ));
    }
}
