//! How long a tree is as JSON, without writing it: what the bounds on growing objects count.

use std::io;

use serde_json::Value;

/// The bytes of its compact JSON.
pub fn json_bytes(value: &Value) -> usize {
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("counting never fails, and a tree is JSON");
    counter.0
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tree_is_as_long_as_its_text() {
        let tree = json!({"a": ["\n\u{1}", 1.5, null, true], "\u{e9}": {"b": -7}});
        assert_eq!(json_bytes(&tree), tree.to_string().len());
    }
}
