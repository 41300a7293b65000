//! As much of a text as the causal record keeps of it.

use golang::first_bytes::first_bytes;
use std::sync::Arc;

/// What is kept of a refusal's or a webhook's words. Behind it stands how many there were.
pub const MAX_TOLD_BYTES: usize = 4096;

/// As much of a text as is kept.
pub fn bounded(text: &str) -> Arc<str> {
    if text.len() <= MAX_TOLD_BYTES {
        return text.into();
    }
    format!("{} ... ({} bytes in all)", first_bytes(text, MAX_TOLD_BYTES), text.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_kept_up_to_a_bound() {
        assert_eq!(&*bounded("no"), "no");
        let text = bounded(&"ä".repeat(4000));
        assert!(text.ends_with("... (8000 bytes in all)") && text.len() < MAX_TOLD_BYTES + 40);
    }
}
