//! The terminal that the output goes to, if it goes to one.

use std::io::IsTerminal;

use flow::wrap::wrap;

/// In a terminal that is narrower, lines are broken by the terminal.
const MIN_COLUMNS: usize = 24;
/// Lines that are longer nobody reads with ease.
const READABLE_COLUMNS: usize = 100;

/// How many columns standard output has; nothing where it is a file, a pipe, or a terminal that does not say.
pub(crate) fn columns() -> Option<usize> {
    let size = size().filter(|_| std::io::stdout().is_terminal());
    size.map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// A text for people, in lines that fit the terminal; whole where it goes elsewhere.
pub(crate) fn fitted(text: &str) -> String {
    columns().map_or_else(|| text.to_owned(), |columns| wrap(text, columns.max(MIN_COLUMNS)).join("\n  "))
}

/// Paragraphs for people, in lines that fit the terminal wherever the lines of their source end; as they are
/// where they go elsewhere.
pub(crate) fn paragraphs(text: &str) -> String {
    columns().map_or_else(|| text.to_owned(), |columns| filled(text, columns))
}

fn filled(text: &str, columns: usize) -> String {
    let columns = columns.clamp(MIN_COLUMNS, READABLE_COLUMNS);
    let fill = |part: &str| {
        let words: Vec<&str> = part.split_whitespace().collect();
        wrap(&words.join(" "), columns).join("\n")
    };
    text.trim_end().split("\n\n").map(fill).collect::<Vec<_>>().join("\n\n")
}

/// How many columns and rows the screen has, if it says.
pub(crate) fn size_of_screen() -> Option<(u16, u16)> {
    size().filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

/// As the terminal says it; 0 is of one that does not know.
fn size() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_filled_and_stay_apart() {
        let text = "One line that was\nbroken somewhere else.\n\nThe next one.\n";
        let lines = "One line that was broken\nsomewhere else.\n\nThe next one.";
        assert_eq!(filled(text, 24), lines);
        assert_eq!(filled(text, 7), lines, "no narrower");
        assert_eq!(filled(text, 500), "One line that was broken somewhere else.\n\nThe next one.");
        assert!(filled(&"word ".repeat(100), 500).lines().all(|line| line.len() <= READABLE_COLUMNS));
    }
}
