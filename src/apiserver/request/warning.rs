//! How a warning travels (`net.NewWarningHeader`, RFC 7234).

use http::HeaderValue;

/// `299 - "text"` (`net.NewWarningHeader`). What has control characters is not said.
pub(crate) fn warning_header(text: &str) -> Option<HeaderValue> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let header = format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    HeaderValue::from_bytes(header.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted() {
        let header = warning_header("unknown field \"spec.foo\"").unwrap();
        assert_eq!(header, r#"299 - "unknown field \"spec.foo\"""#);
        assert!(warning_header("two\nlines").is_none());
    }
}
