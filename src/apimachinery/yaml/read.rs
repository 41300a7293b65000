//! Reading YAML that is no body of a request: files and answers. The only door to serde_yaml's readers, which
//! tell where in a file a field is wrong, and which know no bound on what aliases stand for: what is too much
//! is refused before they read it.

use serde::de::{DeserializeOwned, Error};
use serde_json::Value;

use super::reader::all_to_json;

/// Why YAML could not be read.
pub type YamlError = serde_yaml::Error;

/// One document.
///
/// # Errors
/// What is no YAML, or no `T`, and where; aliases that stand for too much.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    from_slice(text.as_bytes())
}

/// One document.
///
/// # Errors
/// As [`from_str`].
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, YamlError> {
    check_aliases(text)?;
    serde_yaml::from_slice(text)
}

/// All documents, as a request's body would be read.
///
/// # Errors
/// What is no YAML, and where; aliases that stand for too much.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    all_to_json(text.as_bytes()).map_err(YamlError::custom)
}

/// Whether the aliases of all documents stand for no more than is allowed.
fn check_aliases(text: &[u8]) -> Result<(), YamlError> {
    if !text.contains(&b'*') {
        return Ok(());
    }
    all_to_json(text).map(drop).map_err(YamlError::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_may_not_name_a_long_text_again_and_again() {
        let bomb = format!("x: &x {}\nitems:\n{}", "a".repeat(100_000), "- *x\n".repeat(10_000));
        let two = format!("kind: Pod\n---\n{bomb}");
        for refused in [from_str::<Value>(&bomb).err(), documents(&bomb).err(), documents(&two).err()] {
            assert!(refused.unwrap().to_string().contains("document contains excessive aliasing"));
        }
        let few = "labels: &l {app: a}\nselector: *l\n---\nb: 1\n";
        assert_eq!(documents(few).unwrap()[0]["selector"], serde_json::json!({"app": "a"}));
    }
}
