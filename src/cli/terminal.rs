//! The terminal that the output goes to, if it goes to one.

use std::io::IsTerminal;

use flow::wrap::wrap;

/// In a terminal that is narrower, lines are broken by the terminal.
const MIN_COLUMNS: usize = 24;

/// How many columns standard output has; nothing where it is a file, a pipe, or a terminal that does not say.
pub(crate) fn columns() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    size(&out).filter(|columns| *columns > 0)
}

/// A text for people, in lines that fit the terminal; whole where it goes elsewhere.
pub(crate) fn fitted(text: &str) -> String {
    columns().map_or_else(|| text.to_owned(), |columns| wrap(text, columns.max(MIN_COLUMNS)).join("\n  "))
}

/// How many columns and rows the screen has, if it says.
pub(crate) fn size_of_screen() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some((size.ws_col, size.ws_row)).filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

#[cfg(unix)]
fn size(out: &std::io::Stdout) -> Option<usize> {
    rustix::termios::tcgetwinsize(out).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn size(_: &std::io::Stdout) -> Option<usize> {
    None
}
