//! Breaks text into lines for a terminal.

/// Lines of at most `width` characters, broken between words, and within a word that is longer than a line;
/// all but the first are two shorter. Nothing but blanks is lost.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let room = if lines.len() == 1 { width } else { width - 2 };
        let needed = word.chars().count() + usize::from(length > 0);
        if length > 0 && length + needed > room {
            lines.push(String::new());
            length = 0;
        }
        if length > 0 {
            push(&mut lines, &mut length, ' ', width);
        }
        word.chars().for_each(|letter| push(&mut lines, &mut length, letter, width));
    }
    lines
}

/// Puts a letter at the end of the last line, or into a new one when that is full.
fn push(lines: &mut Vec<String>, length: &mut usize, letter: char, width: usize) {
    let room = if lines.len() == 1 { width } else { width - 2 };
    if *length == room {
        lines.push(String::new());
        *length = 0;
    }
    lines.last_mut().expect("starts with one").push(letter);
    *length += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_broken_and_not_lost() {
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "cc", "c"]);
        assert_eq!(wrap("abcdefghij k", 6), ["abcdef", "ghij", "k"]);
        assert_eq!(wrap("a b", usize::MAX), ["a b"]);
    }
}
