//! The terminal that the output goes to, if it goes to one.

use std::io::IsTerminal;

/// How many columns standard output has; nothing where it is a file, a pipe, or a terminal that does not say.
pub fn columns() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    size(&out).filter(|columns| *columns > 0)
}

#[cfg(unix)]
fn size(out: &std::io::Stdout) -> Option<usize> {
    rustix::termios::tcgetwinsize(out).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn size(_: &std::io::Stdout) -> Option<usize> {
    None
}
