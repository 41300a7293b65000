//! What somebody is about to apply, read for the page: a browser knows no YAML.

use apimachinery::yaml;

/// A longer text is refused: no request of its objects could be so long, either.
pub(crate) const MAX_MANIFESTS_BYTES: usize = 3 * 1024 * 1024;

/// The documents of a text as one JSON list, empty ones as `null`.
///
/// # Errors
/// What is no YAML, and in which line.
pub(crate) fn as_json(text: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(text).map_err(|error| format!("this is no text: {error}"))?;
    let documents = yaml::documents(text).map_err(|error| format!("this is no YAML: {error}"))?;
    serde_json::to_string(&documents).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_in_their_order_and_of_what_is_no_yaml_where_it_ends() {
        let text = b"kind: List\nitems: [{kind: Pod}]\n---\na: \"1\"\n";
        assert_eq!(as_json(text).unwrap(), r#"[{"items":[{"kind":"Pod"}],"kind":"List"},{"a":"1"}]"#);
        assert_eq!(as_json(b"").unwrap(), "[]");
        let refused = as_json(b"a: 1\nfoo: [\n").unwrap_err();
        assert!(refused.starts_with("this is no YAML: yaml: line "), "{refused}");
        assert!(as_json(b"\xff").unwrap_err().starts_with("this is no text: "));
    }
}
