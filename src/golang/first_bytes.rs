//! As much of a text as a bound lets through.

/// The beginning of a text that is at most `most` bytes long, in whole characters: where Go cuts a slice of
/// bytes, a text of Rust must end with a character.
pub fn first_bytes(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_a_whole_character() {
        assert_eq!(first_bytes("short", 9), "short");
        assert_eq!(first_bytes("short", 5), "short");
        assert_eq!(first_bytes("short", 2), "sh");
        assert_eq!(first_bytes("aéé", 2), "a");
        assert_eq!(first_bytes("aéé", 3), "aé");
        assert_eq!(first_bytes("é", 1), "");
        assert_eq!(first_bytes("", 0), "");
    }
}
