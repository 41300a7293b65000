//! `kubectl apply -f`, and the objects of files.

use serde::Deserialize;
use serde_json::Value;

use super::client::{ApiAnswer, ApiClient};
use super::options::KubectlOptions;
use super::resources;
use super::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::Player;

/// What was applied last, as kubectl remembers it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// So many objects one command takes.
const MAX_OBJECTS: usize = 200;

/// The objects of all files; `-` is what it reads.
pub(super) fn objects(player: &mut Player<'_>, options: &KubectlOptions) -> Result<Vec<Value>, KubectlStop> {
    let mut objects = vec![];
    for path in &options.files {
        let text = match path.as_str() {
            "-" => player.input(),
            path => {
                let missing = || KubectlStop::Failed(format!("error: the path {path:?} does not exist"));
                player.file(path).map(|file| file.text()).ok_or_else(missing)?
            }
        };
        player.handle(text.len());
        for object in documents(&text, path)? {
            match object["items"].as_array().filter(|_| object["kind"] == "List") {
                Some(items) => objects.extend(items.iter().cloned()),
                None if object.is_null() => {}
                None => objects.push(object),
            }
        }
    }
    if objects.is_empty() {
        return Err(KubectlStop::Failed("error: no objects passed to apply".into()));
    }
    if objects.len() > MAX_OBJECTS {
        return Err(KubectlStop::Failed(format!(
            "error: {} objects, at most {MAX_OBJECTS} are taken",
            objects.len()
        )));
    }
    Ok(objects)
}

/// The documents of a YAML of that name.
///
/// # Errors
/// What is wrong with it.
pub(super) fn documents(text: &str, path: &str) -> Result<Vec<Value>, KubectlStop> {
    if has_aliases(text) {
        let why = format!("error: error parsing {path}: aliases of YAML are not read here");
        return Err(KubectlStop::Failed(why));
    }
    let wrong = |error| KubectlStop::Failed(format!("error: error parsing {path}: {error}"));
    let documents = serde_yaml::Deserializer::from_str(text);
    documents.map(|document| Value::deserialize(document).map_err(wrong)).collect()
}

/// One that stands for another may make a text of any length out of a short one.
fn has_aliases(text: &str) -> bool {
    let is_alias = |word: &str| {
        let name = word.trim_start_matches(['[', '{', ',']).strip_prefix('*');
        name.is_some_and(|name| name.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_'))
    };
    text.split_whitespace().any(is_alias)
}

/// What is not there is made; what is there is changed to what is said, but for what was never said.
pub(super) fn apply(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    for object in objects(player, options)? {
        let resource = resources::of_object(player, client, &object)?;
        let Some(name) = object["metadata"]["name"].as_str().map(str::to_owned) else {
            return Err(KubectlStop::Failed("error: resource name may not be empty".into()));
        };
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let path = client.object_path(&resource, &name, namespace.as_deref(), options);
        let mut wanted = object.clone();
        wanted["metadata"]["annotations"][LAST_APPLIED] = (object.to_string() + "\n").into();
        let said = match client.get(player, &path)? {
            ApiAnswer { code: 404, .. } => {
                let collection = path.rsplit_once('/').map_or("", |(collection, _)| collection).to_owned();
                client.send(player, "POST", &collection, Some(wanted))?.well()?;
                "created"
            }
            found => {
                let found = found.well()?;
                let mut patch = wanted;
                if let Some(last) = last_applied(&found) {
                    remove_what_is_gone(&mut patch, &last, &object);
                }
                let merge = "application/merge-patch+json";
                let kind = if resource.group.contains('.') {
                    merge
                } else {
                    "application/strategic-merge-patch+json"
                };
                let patched = client.patch(player, &path, patch, kind)?.well()?;
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                if version(&patched) == version(&found) { "unchanged" } else { "configured" }
            }
        };
        player.say(&format!("{}/{name} {said}\n", resource.qualified()));
    }
    Ok(())
}

fn last_applied(object: &Value) -> Option<Value> {
    serde_json::from_str(object["metadata"]["annotations"][LAST_APPLIED].as_str()?).ok()
}

/// What was said last time and is not said now is taken away.
fn remove_what_is_gone(patch: &mut Value, last: &Value, wanted: &Value) {
    let (Some(last), Some(wanted)) = (last.as_object(), wanted.as_object()) else { return };
    for (name, value) in last {
        match wanted.get(name) {
            None => patch[name] = Value::Null,
            Some(wanted) if wanted.is_object() && patch[name].is_object() => {
                remove_what_is_gone(&mut patch[name], value, wanted);
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn aliases_are_told_from_stars() {
        assert!(has_aliases("a: &x [1]\nb: [*x, *x]") && has_aliases("<<: *base"));
        assert!(!has_aliases("schedule: '* * * * *'\nhost: \"*.example.com\"\nverbs: [\"*\"]"));
    }

    #[test]
    fn what_is_said_no_more_is_taken_away() {
        let last = json!({"data": {"a": "1", "b": "2"}, "immutable": false});
        let wanted = json!({"data": {"b": "3"}});
        let mut patch = wanted.clone();
        remove_what_is_gone(&mut patch, &last, &wanted);
        assert_eq!(patch, json!({"data": {"a": null, "b": "3"}, "immutable": null}));
    }
}
