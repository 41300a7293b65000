//! `Fingerprint`: which parts of a tree changed, without a copy of it.
//!
//! A walk over the tree hashes what lies at each path of two names; two walks differ where something changed.
//! For people who want to be told, not for decisions.

use std::hash::{Hash, Hasher};

use serde_json::Value;

/// What a tree looked like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Path and content, in the order of the tree.
    parts: Vec<(u64, u64)>,
}

impl Fingerprint {
    /// Walks `tree`.
    pub fn of(tree: &Value) -> Fingerprint {
        let mut parts = Vec::with_capacity(32);
        for_each_part(tree, |outer, inner, value| parts.push((path_hash(outer, inner), hash(value))));
        Fingerprint { parts }
    }

    /// The paths at which `tree` is not what it was, as `spec.tolerations`.
    pub fn changes(&self, tree: &Value) -> Vec<String> {
        let mut at = 0;
        let mut changes = Vec::new();
        for_each_part(tree, |outer, inner, value| {
            let path = path_hash(outer, inner);
            // Both walks are in the same order: what was left out in between is gone.
            let found = self.parts[at..].iter().position(|(known, _)| *known == path);
            let is_same = found.is_some_and(|skipped| self.parts[at + skipped].1 == hash(value));
            at += found.map_or(0, |skipped| skipped + 1);
            if !is_same {
                changes.push(if inner.is_empty() { outer.to_owned() } else { format!("{outer}.{inner}") });
            }
        });
        changes
    }
}

fn for_each_part<'a>(tree: &'a Value, mut visit: impl FnMut(&'a str, &'a str, &'a Value)) {
    for (outer, value) in tree.as_object().into_iter().flatten() {
        match value {
            Value::Object(members) => {
                for (inner, value) in members.iter().filter(|(name, _)| *name != "managedFields") {
                    visit(outer, inner, value);
                }
            }
            other => visit(outer, "", other),
        }
    }
}

/// Quick and not safe against people who want two trees to look alike.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let mixed = self.0.rotate_left(5) ^ u64::from_le_bytes(word);
            self.0 = mixed.wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn path_hash(outer: &str, inner: &str) -> u64 {
    hash(&(outer, inner))
}

fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = Quick::default();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_changed_is_named() {
        let mut pod = json!({"metadata": {"name": "a", "labels": {}}, "spec": {"volumes": [], "old": 1}});
        let before = Fingerprint::of(&pod);
        assert_eq!(before.changes(&pod), [""; 0]);
        pod["spec"]["volumes"] = json!([{"name": "token"}]);
        pod["spec"]["priority"] = json!(0);
        pod["spec"].as_object_mut().unwrap().remove("old");
        pod["status"] = json!("x");
        assert_eq!(before.changes(&pod), ["spec.priority", "spec.volumes", "status"]);
    }
}
