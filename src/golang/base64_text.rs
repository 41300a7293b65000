//! Bytes as `encoding/base64` writes them into texts (`StdEncoding`).

/// Whether a text is whole groups of base64, none included, with padding at its end alone.
pub fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_whole_and_padded_at_the_end() {
        for (text, is_it) in
            [("", true), ("YQ==", true), ("YWI=", true), ("+/9a", true), ("YQ", false), ("Y===", false)]
        {
            assert_eq!(is_base64(text), is_it, "{text}");
        }
        assert!(!is_base64("!!!!") && !is_base64("Y=Q="));
    }
}
