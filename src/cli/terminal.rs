//! The terminal that the output goes to, if it goes to one.

use std::io::IsTerminal;

/// How many columns standard output has; nothing where it is a file, a pipe, or a terminal that does not say.
pub(crate) fn columns() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    size(&out).filter(|columns| *columns > 0)
}

/// How many columns and rows the screen has, if it says.
pub(crate) fn size_of_screen() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    let known = (usize::from(size.ws_col), usize::from(size.ws_row));
    Some(known).filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

#[cfg(unix)]
fn size(out: &std::io::Stdout) -> Option<usize> {
    rustix::termios::tcgetwinsize(out).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn size(_: &std::io::Stdout) -> Option<usize> {
    None
}
