//! Tables: their heads, which are written by hand and stay, their rows, and what differs between two of them.

use std::collections::BTreeSet;
use std::fmt;

/// How many lines of a difference are shown; the rest are counted, and `git diff` has them.
const MOST_LINES_SHOWN: usize = 40;

/// A table of tabs below a head of comments.
pub(crate) struct Table {
    head: String,
    rows: BTreeSet<Vec<String>>,
}

impl Table {
    /// A table with the head of the one before, and no rows.
    pub(crate) fn with_head_of(before: &str) -> Table {
        let head: String =
            before.lines().take_while(|line| line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
        Table { head, rows: BTreeSet::new() }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, cells: &[&str]) {
        self.rows.insert(cells.iter().map(|cell| (*cell).to_owned()).collect());
    }

    /// Takes over the rows of the table before whose first cell is one that `is_kept` says yes to.
    pub(crate) fn keep(&mut self, before: &str, is_kept: impl Fn(&str) -> bool) {
        for line in before.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let cells: Vec<&str> = line.split('\t').collect();
            if is_kept(cells[0]) {
                self.add(&cells);
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head)?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{}", row.join("\t")))
    }
}

/// Which lines came and went.
pub(crate) struct Difference {
    added: Vec<String>,
    removed: Vec<String>,
}

impl Difference {
    /// Compares lines; their order does not matter.
    pub(crate) fn between(before: &str, after: &str) -> Difference {
        let old: BTreeSet<&str> = before.lines().collect();
        let new: BTreeSet<&str> = after.lines().collect();
        let only = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| {
            one.difference(other).map(|line| (*line).to_owned()).collect()
        };
        Difference { added: only(&new, &old), removed: only(&old, &new) }
    }

    /// Whether nothing differs.
    pub(crate) fn is_none(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return writeln!(f, "as it was");
        }
        writeln!(f, "{} lines came, {} went", self.added.len(), self.removed.len())?;
        let signed = |sign: char, lines: &[String]| {
            lines.iter().map(|line| format!("{sign} {line}")).collect::<Vec<_>>()
        };
        let mut lines = [signed('-', &self.removed), signed('+', &self.added)].concat();
        let left_out = lines.len().saturating_sub(MOST_LINES_SHOWN);
        lines.truncate(MOST_LINES_SHOWN);
        lines.iter().try_for_each(|line| writeln!(f, "  {}", cut(line)))?;
        match left_out {
            0 => Ok(()),
            count => writeln!(f, "  and {count} more lines: see git diff"),
        }
    }
}

/// Descriptions are long; what changed in them is for `git diff`.
fn cut(line: &str) -> String {
    match line.char_indices().nth(160) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}
