//! The page that `kubectl describe` writes: lines with tabs, whose columns are made even (`text/tabwriter`).

/// Between a column and the next.
const GAP: usize = 2;

/// Lines that are written one after the other.
#[derive(Debug, Default)]
pub(super) struct TabbedPage {
    /// What is even already.
    done: String,
    /// What is not yet.
    text: String,
}

impl TabbedPage {
    /// A line, so many levels deep; there may be several in it.
    pub(super) fn line(&mut self, level: usize, text: impl AsRef<str>) {
        self.begin(level, text);
        self.text.push('\n');
    }

    /// The beginning of a line, or what goes on with one at level 0.
    pub(super) fn begin(&mut self, level: usize, text: impl AsRef<str>) {
        self.text.push_str(&"  ".repeat(level));
        self.text.push_str(text.as_ref());
    }

    /// `Title:`, and what stands behind it.
    pub(super) fn field(&mut self, level: usize, title: &str, value: impl AsRef<str>) {
        self.line(level, format!("{title}:\t{}", value.as_ref()));
    }

    /// Lines that come from here on have columns of their own.
    pub(super) fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.done.push_str(&even(&text));
    }

    /// All of it.
    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.done
    }
}

/// Puts the cells of lines that stand below each other at the same places.
fn even(text: &str) -> String {
    let lines: Vec<Vec<&str>> = text.split('\n').map(|line| line.split('\t').collect()).collect();
    let mut widths = vec![];
    let mut out = String::new();
    put_lines(&lines, &mut widths, &mut out);
    // Behind the last line break comes nothing.
    out.truncate(out.len().saturating_sub(1));
    out
}

/// A column goes as far as lines have it one after the other; what is to its left is as wide as it was.
fn put_lines(lines: &[Vec<&str>], widths: &mut Vec<usize>, out: &mut String) {
    let column = widths.len();
    let has_it = |line: &Vec<&str>| column + 1 < line.len();
    let mut rest = lines;
    while let Some(first) = rest.first() {
        if !has_it(first) {
            put_line(first, widths, out);
            rest = &rest[1..];
            continue;
        }
        let count = rest.iter().take_while(|line| has_it(line)).count();
        let (block, after) = rest.split_at(count);
        let width = block.iter().map(|line| line[column].chars().count()).max().unwrap_or(0) + GAP;
        widths.push(width);
        put_lines(block, widths, out);
        widths.pop();
        rest = after;
    }
}

fn put_line(line: &[&str], widths: &[usize], out: &mut String) {
    for (at, cell) in line.iter().enumerate() {
        out.push_str(cell);
        if let Some(width) = widths.get(at).filter(|_| at + 1 < line.len()) {
            out.push_str(&" ".repeat(width.saturating_sub(cell.chars().count())));
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_end_where_a_line_has_none() {
        let mut page = TabbedPage::default();
        page.field(0, "Name", "web");
        page.field(0, "Namespace", "default");
        page.line(0, "Containers:");
        page.field(1, "Port", "80/TCP\tx");
        page.field(1, "A longer one", "y\tz");
        page.field(0, "Empty", "");
        page.flush();
        page.field(0, "N", "1");
        let wanted = "Name:       web\nNamespace:  default\nContainers:\n  Port:          80/TCP  x\n  A longer one:  y       z\n\
                      Empty:           \nN:  1\n";
        assert_eq!(page.finish(), wanted);
    }
}
