//! What somebody is about to apply, read for the page: a browser knows no YAML.

use apimachinery::yaml;

/// A longer text is refused: no request of its objects could be so long, either.
pub(crate) const MAX_MANIFESTS_BYTES: usize = 3 * 1024 * 1024;

/// The documents of a text as one JSON list, empty ones as `null`.
///
/// # Errors
/// What is no YAML, and in which line.
pub(crate) fn as_json(text: &[u8]) -> Result<String, UnreadManifests> {
    let text = std::str::from_utf8(text).map_err(UnreadManifests::NoText)?;
    let documents = yaml::documents(text).map_err(|error| UnreadManifests::NoYaml(error.to_string()))?;
    Ok(serde_json::to_string(&documents).expect("a tree is JSON"))
}

/// What somebody is about to apply cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnreadManifests {
    /// It is not UTF-8.
    #[error("this is no text: {0}")]
    NoText(std::str::Utf8Error),
    /// What the reader of YAML says.
    #[error("this is no YAML: {0}")]
    NoYaml(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_in_their_order_and_of_what_is_no_yaml_where_it_ends() {
        let text = b"kind: List\nitems: [{kind: Pod}]\n---\na: \"1\"\n";
        assert_eq!(as_json(text).unwrap(), r#"[{"items":[{"kind":"Pod"}],"kind":"List"},{"a":"1"}]"#);
        assert_eq!(as_json(b"").unwrap(), "[]");
        let refused = as_json(b"a: 1\nfoo: [\n").unwrap_err().to_string();
        assert!(refused.starts_with("this is no YAML: yaml: line "), "{refused}");
        assert!(as_json(b"\xff").unwrap_err().to_string().starts_with("this is no text: "));
    }
}
