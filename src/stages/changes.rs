//! What a stage writes: bodies of patches, and what becomes of finalizers (kwok's `next.go`,
//! `finalizers.go`).

use serde_json::{Map, Value, json};

use super::error::StageError;
use super::manifest::{Finalizer, StageFinalizers};
use super::stage::StageChange;
use super::template::TemplateHost;
use apimachinery::options::PatchType;
use apimachinery::yaml;

impl StageChange {
    /// What is sent for an object.
    ///
    /// # Errors
    /// What is wrong with the template, or with what comes of it.
    pub fn body(&self, tree: &Value, host: &dyn TemplateHost) -> Result<Value, StageError> {
        let text = self.template.render(tree, host).map_err(|why| format!("template: {why}"))?;
        let documents =
            yaml::documents(&text).map_err(|why| format!("template: its text is no YAML: {why}"))?;
        let body = documents.into_iter().next().unwrap_or_default();
        match (self.root.as_str(), self.patch_type) {
            ("", _) => Ok(body),
            (root, Some(PatchType::Json)) => Ok(below(root, body)),
            (root, _) => Ok(Value::Object(Map::from_iter([(root.to_owned(), body)]))),
        }
    }
}

/// The operations of a JSON patch, each further down.
fn below(root: &str, mut operations: Value) -> Value {
    for operation in operations.as_array_mut().into_iter().flatten() {
        let path = operation["path"].as_str().unwrap_or_default();
        operation["path"] = format!("/{root}{path}").into();
    }
    operations
}

/// The JSON patch of the finalizers; nothing where none is needed.
pub(crate) fn finalizers(present: &[String], wanted: &StageFinalizers) -> Vec<Value> {
    let removed = |name: &&String| wanted.remove.iter().any(|finalizer| finalizer.value == **name);
    let gone = present.iter().filter(removed).count();
    let empties = wanted.empty || (!wanted.remove.is_empty() && gone == present.len());
    if empties {
        let remove = (!present.is_empty()).then(|| json!({"op": "remove", "path": "/metadata/finalizers"}));
        return remove.into_iter().chain(additions(&[], &wanted.add)).collect();
    }
    let places = present.iter().enumerate().rev().filter(|(_, name)| removed(name));
    let removals =
        places.map(|(at, _)| json!({"op": "remove", "path": format!("/metadata/finalizers/{at}")}));
    removals.chain(additions(present, &wanted.add)).collect()
}

fn additions(present: &[String], add: &[Finalizer]) -> Vec<Value> {
    let names = || add.iter().map(|finalizer| finalizer.value.clone());
    if add.is_empty() {
        Vec::new()
    } else if present.is_empty() {
        vec![json!({"op": "add", "path": "/metadata/finalizers", "value": names().collect::<Vec<_>>()})]
    } else {
        let new = names().filter(|name| !present.contains(name));
        new.map(|name| json!({"op": "add", "path": "/metadata/finalizers/-", "value": name})).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_come_and_go() {
        let remove = |path: &str| json!({"op": "remove", "path": format!("/metadata/finalizers{path}")});
        let all = |names: &[&str]| json!({"op": "add", "path": "/metadata/finalizers", "value": names});
        let one = |name: &str| json!({"op": "add", "path": "/metadata/finalizers/-", "value": name});
        let cases = [
            (vec![], json!({"add": [{"value": "a"}]}), vec![all(&["a"])]),
            (vec!["a"], json!({"add": [{"value": "a"}, {"value": "b"}]}), vec![one("b")]),
            (
                vec!["a", "b", "c"],
                json!({"remove": [{"value": "c"}, {"value": "a"}]}),
                vec![remove("/2"), remove("/0")],
            ),
            (
                vec!["a"],
                json!({"remove": [{"value": "a"}], "add": [{"value": "b"}]}),
                vec![remove(""), all(&["b"])],
            ),
            (vec!["a"], json!({"empty": true}), vec![remove("")]),
            (vec![], json!({"empty": true}), vec![]),
            (vec!["a"], json!({"remove": [{"value": "b"}]}), vec![]),
        ];
        for (present, wanted, expected) in cases {
            let present: Vec<String> = present.into_iter().map(str::to_owned).collect();
            let read: StageFinalizers = serde_json::from_value(wanted.clone()).unwrap();
            assert_eq!(finalizers(&present, &read), expected, "{present:?} {wanted}");
        }
    }
}
