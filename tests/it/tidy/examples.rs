//! Examples in docs are compiled and run, wherever one is written.

use std::fs;

use super::modules::crate_of;
use super::source::{Source, root};

/// The line in which an example begins or ends.
fn fence(text: &str) -> Option<usize> {
    let is_fence = |line: &str| {
        let doc = line.trim_start();
        let doc = doc.strip_prefix("///").or_else(|| doc.strip_prefix("//!"));
        doc.is_some_and(|doc| doc.trim_start().starts_with("```"))
    };
    text.lines().position(is_fence).map(|line| line + 1)
}

#[test]
fn crates_in_whose_docs_nobody_looks_for_examples_have_none() {
    assert_eq!(fence("fn a() {}\n    /// ```\n    /// a();\n    /// ```\n"), Some(2));
    assert_eq!(fence("//! A word, `code`.\nlet text = \"```\";\n"), None);
    let mut unseen = 0;
    for source in Source::all() {
        let Some(room) = crate_of(&source.path) else { continue };
        let manifest =
            fs::read_to_string(root().join("src").join(room).join("Cargo.toml")).unwrap_or_default();
        if manifest.lines().any(|line| line.trim() == "doctest = false") {
            unseen += 1;
            let found = fence(&source.text);
            assert_eq!(
                found, None,
                "{}: an example; take `doctest = false` out of src/{room}/Cargo.toml",
                source.path
            );
        }
    }
    assert!(unseen > 0, "no crate says so: this test is for nothing");
}
