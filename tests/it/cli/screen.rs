//! What stands on the screen of a terminal that was written to: as much of one as a full-screen program needs.

use std::collections::BTreeMap;

/// A screen without borders: what is written where stands there.
#[derive(Default)]
pub(super) struct Screen {
    cells: BTreeMap<(usize, usize), char>,
    row: usize,
    column: usize,
}

impl Screen {
    /// After all of it was written.
    pub(super) fn after(written: &str) -> Screen {
        let mut screen = Screen::default();
        let mut rest = written;
        while let Some(letter) = rest.chars().next() {
            rest = match rest.strip_prefix("\u{1b}[") {
                Some(sequence) => screen.obey(sequence),
                None => {
                    screen.put(letter);
                    &rest[letter.len_utf8()..]
                }
            };
        }
        screen
    }

    /// Its rows, as a text.
    pub(super) fn text(&self) -> String {
        let rows = self.cells.keys().next_back().map_or(0, |(row, _)| row + 1);
        (0..rows).map(|row| self.row(row) + "\n").collect()
    }

    /// One row.
    pub(super) fn row(&self, row: usize) -> String {
        let cells = self.cells.range((row, 0)..(row + 1, 0));
        let width = cells.clone().next_back().map_or(0, |((_, column), _)| column + 1);
        let mut text = vec![' '; width];
        cells.for_each(|((_, column), letter)| text[*column] = *letter);
        text.into_iter().collect::<String>().trim_end().to_owned()
    }

    /// A sequence that begins behind its introducer, and what stands behind it.
    fn obey<'a>(&mut self, sequence: &'a str) -> &'a str {
        let Some(end) = sequence.find(|letter: char| letter.is_ascii_alphabetic()) else { return "" };
        let (arguments, rest) = (&sequence[..end], &sequence[end + 1..]);
        let number = |text: &str| text.parse::<usize>().map_or(0, |number| number.saturating_sub(1));
        match sequence.as_bytes()[end] {
            b'H' => {
                let (row, column) = arguments.split_once(';').unwrap_or((arguments, ""));
                (self.row, self.column) = (number(row), number(column));
            }
            b'J' if arguments == "2" => self.cells.clear(),
            b'J' => drop(self.cells.split_off(&(self.row, self.column))),
            // Colours, and whether the cursor is seen.
            b'm' | b'h' | b'l' => {}
            other => panic!("{arguments}{} is not known here", char::from(other)),
        }
        rest
    }

    fn put(&mut self, letter: char) {
        match letter {
            '\r' => self.column = 0,
            '\n' => self.row += 1,
            _ => {
                self.cells.insert((self.row, self.column), letter);
                self.column += 1;
            }
        }
    }
}

#[test]
fn what_was_written_stands_where_the_cursor_was() {
    let screen = Screen::after("\u{1b}[?25l\u{1b}[2;3Hab\u{1b}[1mc\u{1b}[1;1Hx\r\ny\u{1b}[2;4HB");
    assert_eq!(screen.text(), "x\ny aBc\n");
    assert_eq!(Screen::after("abc\u{1b}[2Jd").text(), "   d\n");
    assert_eq!(Screen::after("abc\r\nd\u{1b}[1;2H\u{1b}[J").text(), "a\n");
}
