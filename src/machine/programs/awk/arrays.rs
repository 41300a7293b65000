//! What a program of `awk` keeps: arrays, and what its functions have of their own.

use std::collections::BTreeMap;

use super::syntax;
use crate::bounds::{MAX_MEMORY_BYTES, MAX_VARIABLES};

/// What a parameter stands for: a text, and the array of that name.
pub(super) struct AwkLocal {
    pub(super) text: String,
    pub(super) array: String,
}

/// All arrays by their names, and how much is in them.
#[derive(Default)]
pub(super) struct AwkArrays {
    by_name: BTreeMap<String, BTreeMap<String, String>>,
    bytes: usize,
    count: usize,
}

impl AwkArrays {
    pub(super) fn get(&self, array: &str) -> Option<&BTreeMap<String, String>> {
        self.by_name.get(array)
    }

    /// Whether everything still fits ([`MAX_MEMORY_BYTES`], [`MAX_VARIABLES`]).
    pub(super) fn put(&mut self, array: &str, key: String, value: String) -> bool {
        self.bytes += key.len() + value.len();
        self.count += 1;
        let elements = self.by_name.entry(array.to_owned()).or_default();
        let length = key.len();
        if let Some(older) = elements.insert(key, value) {
            self.bytes -= length + older.len();
            self.count -= 1;
        }
        self.bytes <= MAX_MEMORY_BYTES && self.count <= MAX_VARIABLES
    }

    pub(super) fn remove(&mut self, array: &str, key: &str) {
        let removed = self.by_name.get_mut(array).and_then(|elements| elements.remove(key));
        if let Some(value) = removed {
            self.bytes -= key.len() + value.len();
            self.count -= 1;
        }
    }

    pub(super) fn clear(&mut self, array: &str) {
        let elements = self.by_name.remove(array).unwrap_or_default();
        self.bytes -= elements.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        self.count -= elements.len();
    }
}

/// A text in parts, as `FS` says.
pub(super) fn parted(text: &str, separator: &str) -> Vec<String> {
    match separator {
        " " | "" => text.split_whitespace().map(str::to_owned).collect(),
        _ if text.is_empty() => Vec::new(),
        "\\t" => text.split('\t').map(str::to_owned).collect(),
        one if one.chars().count() == 1 => text.split(one).map(str::to_owned).collect(),
        pattern => match regex::RegexBuilder::new(pattern).size_limit(syntax::MAX_PATTERN_BYTES).build() {
            Ok(pattern) => pattern.split(text).map(str::to_owned).collect(),
            Err(_) => text.split(pattern).map(str::to_owned).collect(),
        },
    }
}
