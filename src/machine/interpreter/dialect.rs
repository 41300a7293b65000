//! What shells say of themselves and of mistakes: BusyBox', Debian's and bash have words of their own.

use crate::images;

/// Whose words a shell has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// BusyBox', which `sh` is where nothing else is known.
    #[default]
    Ash,
    /// Debian's and Ubuntu's `sh`.
    Dash,
    /// `bash`, which is `sh` of the Fedoras, too.
    Bash,
}

impl Dialect {
    /// Of a shell in an image.
    pub(crate) fn of(shell: &str, image: &str) -> Dialect {
        match (shell, images::base_name(image)) {
            ("bash", _) => Dialect::Bash,
            (_, "debian" | "ubuntu") => Dialect::Dash,
            (_, "fedora" | "centos" | "amazonlinux" | "bash" | "rockylinux" | "almalinux") => Dialect::Bash,
            _ => Dialect::Ash,
        }
    }

    /// What `set -x` says of a command: bash tells each variable for itself, Debian's quotes nothing.
    pub(crate) fn traced(self, assignments: &[(&str, String)], words: &[String]) -> String {
        let between = if self == Dialect::Bash { "\n+ " } else { " " };
        let set = |(name, value): &(&str, String)| format!("{name}={}", self.quoted(value));
        let mut told: Vec<String> = assignments.iter().map(set).collect();
        if !words.is_empty() {
            told.push(words.iter().map(|word| self.quoted(word)).collect::<Vec<_>>().join(" "));
        }
        if told.is_empty() { String::new() } else { format!("+ {}\n", told.join(between)) }
    }

    /// A word that reads as itself (BusyBox' `maybe_single_quote`).
    fn quoted(self, word: &str) -> String {
        let is_plain = |c: char| match self {
            Dialect::Dash => true,
            Dialect::Ash => matches!(c, '+'..='/' | '0'..='9' | ':' | '@'..='Z' | ']'..='_' | 'a'..='z'),
            Dialect::Bash => c.is_alphanumeric() || "+-./:@_=,%^".contains(c),
        };
        let is_named = self != Dialect::Dash && word.is_empty();
        if !is_named && word.chars().all(is_plain) {
            return word.to_owned();
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// What `set` has switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ShellOptions {
    /// Exits at the first failure (`-e`).
    pub(crate) stops_at_failure: bool,
    /// A variable that is not there is an error (`-u`).
    pub(crate) unset_fails: bool,
    /// Each command is said before it is run (`-x`).
    pub(crate) tells: bool,
    /// Patterns are no names of files (`-f`).
    pub(crate) is_plain: bool,
    /// A pipe fails with any of its commands (`-o pipefail`).
    pub(crate) pipes_fail: bool,
}

impl ShellOptions {
    /// Switches one by its letter or its name. Whether there is such a one; many change nothing here.
    pub(crate) fn switch(&mut self, name: &str, is_on: bool) -> bool {
        match name {
            "e" | "errexit" => self.stops_at_failure = is_on,
            "u" | "nounset" => self.unset_fails = is_on,
            "x" | "xtrace" => self.tells = is_on,
            "f" | "noglob" => self.is_plain = is_on,
            "pipefail" => self.pipes_fail = is_on,
            "a" | "b" | "h" | "m" | "n" | "v" | "C" | "E" | "T" | "B" | "H" | "allexport" | "notify"
            | "monitor" | "noclobber" | "verbose" | "errtrace" | "functrace" | "posix" | "vi" | "emacs"
            | "ignoreeof" => {}
            _ => return false,
        }
        true
    }

    /// `$-`
    pub(crate) fn letters(self) -> String {
        let all =
            [(self.stops_at_failure, 'e'), (self.is_plain, 'f'), (self.unset_fails, 'u'), (self.tells, 'x')];
        all.into_iter().filter(|(is_on, _)| *is_on).map(|(_, letter)| letter).collect()
    }
}
