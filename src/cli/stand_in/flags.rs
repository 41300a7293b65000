//! Command lines as Go's programs read them: pflag's of `kube-apiserver`, the standard library's of `etcd`.
//!
//! What upstream's program knows and this one has no use for is accepted and said in one line; what changes
//! who may come in or where data is, and is not there, is refused; what upstream's does not know either is
//! refused in its words.

use clap::Command;

golang::text_error! {
    /// A word of a command line that cannot be done; in the words of upstream's programs.
    pub(crate) struct RefusedFlag;
}

/// A flag that upstream's program has, beside those that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnservedFlag {
    /// Alone or with `=true`; it changes nothing here.
    Switch,
    /// With a value; it changes nothing here.
    Value,
    /// Refused, since it would be taken for what it is not.
    Refused,
}

/// The flags of a program: those that clap reads, and those that are only known.
pub(crate) struct Flags<'a> {
    /// Those that are served.
    pub served: &'a Command,
    /// The others, a line each: the name, then `switch`, `value` or `refused` and why.
    pub known: &'a str,
    /// Whether `-name` is `--name`, as in programs that use Go's own package.
    pub is_plain_go: bool,
}

/// A command line, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Normal {
    /// The served ones, each as `--name=value`, or `--name` when it has none.
    pub words: Vec<String>,
    /// Those that change nothing.
    pub ignored: Vec<String>,
    /// `--help` or `-h` is there.
    pub asks_for_help: bool,
    /// `--version` is there.
    pub asks_for_version: bool,
}

enum FoundFlag {
    Served { wants_value: bool },
    Known(UnservedFlag, String),
}

impl Flags<'_> {
    /// Reads a command line.
    ///
    /// # Errors
    /// A word that upstream's program refuses too, in its words, or one that cannot be done here.
    pub(crate) fn read(&self, words: impl IntoIterator<Item = String>) -> Result<Normal, RefusedFlag> {
        let mut normal = Normal::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let Some((name, value)) = self.split(&word)? else { continue };
            match name.as_str() {
                "help" | "h" => normal.asks_for_help = true,
                "version" => normal.asks_for_version = true,
                _ => self.take(&name, value, &mut words, &mut normal)?,
            }
        }
        join_gates(&mut normal.words);
        Ok(normal)
    }

    fn take(
        &self,
        name: &str,
        value: Option<String>,
        rest: &mut impl Iterator<Item = String>,
        normal: &mut Normal,
    ) -> Result<(), String> {
        let found = self.find(name).ok_or_else(|| self.unknown(name))?;
        let wants_value = match &found {
            FoundFlag::Served { wants_value } => *wants_value,
            FoundFlag::Known(known, _) => *known == UnservedFlag::Value,
        };
        let value = match value {
            None if wants_value => Some(rest.next().ok_or_else(|| self.needs_argument(name))?),
            value => value,
        };
        let shown = value.map_or(format!("--{name}"), |value| format!("--{name}={value}"));
        match found {
            FoundFlag::Served { .. } => normal.words.push(shown),
            FoundFlag::Known(UnservedFlag::Refused, why) => return Err(format!("--{name}: {why}")),
            FoundFlag::Known(..) => normal.ignored.push(shown),
        }
        Ok(())
    }

    /// The name and the value of a word. None for what ends the flags, if nothing comes after it.
    fn split(&self, word: &str) -> Result<Option<(String, Option<String>)>, String> {
        let flag = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(""), _) => return Ok(None),
            (Some(flag), _) => flag.to_owned(),
            (None, Some(flag)) if self.is_plain_go => flag.to_owned(),
            // `-v2`, `-v=2` and `-v 2` are one.
            (None, Some(short)) => match short.strip_prefix('v') {
                Some("") => "v".into(),
                Some(level) => format!("v={}", level.trim_start_matches('=')),
                None if short == "h" => "help".into(),
                None => {
                    let first = short.chars().next().unwrap_or('-');
                    return Err(format!("unknown shorthand flag: {first:?} in -{short}"));
                }
            },
            (None, None) => return Err(format!("does not take any arguments, got {word:?}")),
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag.as_str(), None),
        };
        // `WordSepNormalizeFunc`
        let name = if self.is_plain_go { name.to_owned() } else { name.replace('_', "-") };
        Ok(Some((name, value)))
    }

    fn find(&self, name: &str) -> Option<FoundFlag> {
        let served = self.served.get_arguments().find(|arg| arg.get_long() == Some(name));
        if let Some(arg) = served {
            let is_switch = arg.is_require_equals_set() || !arg.get_action().takes_values();
            return Some(FoundFlag::Served { wants_value: !is_switch });
        }
        let (_, rest) =
            self.known.lines().filter_map(|line| line.split_once(' ')).find(|row| row.0 == name)?;
        Some(match rest.split_once(' ') {
            Some(("refused", why)) => FoundFlag::Known(UnservedFlag::Refused, why.to_owned()),
            _ if rest == "switch" => FoundFlag::Known(UnservedFlag::Switch, String::new()),
            _ => FoundFlag::Known(UnservedFlag::Value, String::new()),
        })
    }

    fn unknown(&self, name: &str) -> String {
        if self.is_plain_go {
            return format!("flag provided but not defined: -{name}");
        }
        format!("unknown flag: --{name}")
    }

    fn needs_argument(&self, name: &str) -> String {
        let dashes = if self.is_plain_go { "-" } else { "--" };
        format!("flag needs an argument: {dashes}{name}")
    }
}

/// A map that is given several times is one map.
fn join_gates(words: &mut Vec<String>) {
    const GATES: &str = "--feature-gates=";
    let gates: Vec<String> =
        words.iter().filter_map(|word| word.strip_prefix(GATES)).map(str::to_owned).collect();
    if gates.len() > 1 {
        words.retain(|word| !word.starts_with(GATES));
        words.push(format!("{GATES}{}", gates.join(",")));
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    const KNOWN: &str = "profiling switch\nv value\netcd-cafile refused there is no TLS to it";

    fn command() -> Command {
        let switch = Arg::new("anonymous-auth")
            .long("anonymous-auth")
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true);
        let value = |name: &'static str| Arg::new(name).long(name);
        Command::new("x").args([switch, value("secure-port"), value("feature-gates")])
    }

    fn read(words: &[&str], is_plain_go: bool) -> Result<Normal, RefusedFlag> {
        let served = command();
        let flags = Flags { served: &served, known: KNOWN, is_plain_go };
        flags.read(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn each_form_of_a_flag_is_one() {
        for words in [&["--secure-port=1"][..], &["--secure-port", "1"], &["--secure_port=1"]] {
            assert_eq!(read(words, false).unwrap().words, ["--secure-port=1"], "{words:?}");
        }
        for words in [&["-v2"][..], &["-v=2"], &["-v", "2"], &["--v=2"], &["--v", "2"]] {
            assert_eq!(read(words, false).unwrap().ignored, ["--v=2"], "{words:?}");
        }
        let normal = read(&["--profiling", "--anonymous-auth", "--secure-port", "-1", "--"], false).unwrap();
        assert_eq!((normal.words, normal.ignored), {
            let words = vec!["--anonymous-auth".to_owned(), "--secure-port=-1".into()];
            (words, vec!["--profiling".to_owned()])
        });
        assert_eq!(read(&["-secure-port", "1"], true).unwrap().words, ["--secure-port=1"]);
        assert!(
            read(&["--help"], false).unwrap().asks_for_help && read(&["-h"], true).unwrap().asks_for_help
        );
        assert!(read(&["--version"], false).unwrap().asks_for_version);
    }

    #[test]
    fn gates_of_several_words_are_joined() {
        let words = ["--feature-gates=A=true", "--secure-port=1", "--feature-gates", "B=false"];
        let normal = read(&words, false).unwrap();
        assert_eq!(normal.words, ["--secure-port=1", "--feature-gates=A=true,B=false"]);
    }

    #[test]
    fn what_upstream_refuses_is_refused_in_its_words() {
        for (word, expected) in [
            ("--nonsense=1", "unknown flag: --nonsense"),
            ("-x", "unknown shorthand flag: 'x' in -x"),
            ("word", "does not take any arguments, got \"word\""),
            ("--secure-port", "flag needs an argument: --secure-port"),
            ("--etcd-cafile=a", "--etcd-cafile: there is no TLS to it"),
        ] {
            assert_eq!(read(&[word], false).unwrap_err(), expected);
        }
        assert_eq!(read(&["-x"], true).unwrap_err(), "flag provided but not defined: -x");
        assert_eq!(read(&["-secure-port"], true).unwrap_err(), "flag needs an argument: -secure-port");
    }
}
