//! Colour, where somebody looks at it: in a terminal, unless `NO_COLOR` is set (<https://no-color.org>).

use std::ffi::OsStr;
use std::io::IsTerminal;

/// What a colour means.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Not there yet.
    Waiting,
    /// What is wrong, in red.
    Bad,
    /// Beside the point.
    Quiet,
    /// What the rest is about.
    Strong,
}

/// How the standard output is written.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    is_coloured: bool,
}

impl Style {
    /// Of the standard output.
    pub(crate) fn of_stdout() -> Style {
        let variable = |name: &str| std::env::var_os(name);
        let is_coloured = std::io::stdout().is_terminal()
            && wants_colour(variable("NO_COLOR").as_deref(), variable("TERM").as_deref());
        Style { is_coloured }
    }

    /// Whether colours are written.
    pub(crate) fn is_coloured(self) -> bool {
        self.is_coloured
    }

    /// The text in its tone; as it is where there is no colour.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.is_coloured {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => 32,
            Tone::Waiting => 33,
            Tone::Bad => 31,
            Tone::Quiet => 2,
            Tone::Strong => 1,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Whether what is written to the standard error may be coloured.
pub(crate) fn colours_stderr() -> bool {
    let variable = |name: &str| std::env::var_os(name);
    std::io::stderr().is_terminal()
        && wants_colour(variable("NO_COLOR").as_deref(), variable("TERM").as_deref())
}

/// `NO_COLOR` counts when it is not empty; a dumb terminal has no colours.
fn wants_colour(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty) && term != Some(OsStr::new("dumb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_want_colour_gets_none() {
        let wants = |no_color: Option<&str>, term: Option<&str>| {
            wants_colour(no_color.map(OsStr::new), term.map(OsStr::new))
        };
        assert!(wants(None, Some("xterm")) && wants(Some(""), None));
        assert!(!wants(Some("1"), Some("xterm")) && !wants(None, Some("dumb")));
    }

    #[test]
    fn without_colour_a_text_stays_as_it_is() {
        assert_eq!(Style { is_coloured: false }.paint(Tone::Bad, "x"), "x");
        assert_eq!(Style { is_coloured: true }.paint(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
