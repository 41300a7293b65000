//! `kubectl patch`, `label`, `annotate`, `scale` and `rollout restart`: what changes a part of objects.

use serde_json::{Map, Value, json};

use super::apply;
use super::client::ApiClient;
use super::objects::{each, named_by};
use super::options::KubectlOptions;
use super::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::Player;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON: &str = "application/json-patch+json";
/// What a restart changes in the template.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";

fn failed(why: impl Into<String>) -> KubectlStop {
    KubectlStop::Failed(why.into())
}

/// Patches each object that is meant, and says what was done with it.
fn patch_each(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
    words: &[String],
    (subresource, kind, done): (&str, &str, &str),
    patch: &dyn Fn(&Value) -> Result<Option<Value>, KubectlStop>,
) -> KubectlRun {
    let mut all = vec![];
    for one in named_by(player, client, words)? {
        let is_meant = one.name.is_some() || options.is_all || options.selector.is_some();
        if !is_meant {
            return Err(failed("error: resource(s) were provided, but no name was specified"));
        }
        all.extend(each(player, client, options, one)?);
    }
    for (resource, name, namespace) in all {
        let path = client.object_path(&resource, &name, namespace.as_deref(), options);
        let label = format!("{}/{name}", resource.qualified());
        let old = client.get(player, &path)?.well()?;
        let Some(patch) = patch(&old)? else {
            player.say(&format!("{label} not {done}\n"));
            continue;
        };
        let new = client.patch(player, &format!("{path}{subresource}"), patch, kind)?.well()?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let is_same = done == "patched" && version(&old) == version(&new);
        player.say(&format!("{label} {done}{}\n", if is_same { " (no change)" } else { "" }));
    }
    Ok(())
}

/// `patch TYPE NAME -p PATCH [--type=strategic|merge|json]`
pub(super) fn patch(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let text = match (&options.patch, &options.patch_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => {
            let file = player.file(path).map(|file| file.text());
            file.ok_or_else(|| failed(format!("error: open {path}: no such file or directory")))?
        }
        (None, None) => return Err(failed("error: must specify --patch or --patch-file")),
    };
    let unreadable = || failed(format!("error: unable to parse {text:?}"));
    let patch = apply::documents(&text, "the patch")?.pop().ok_or_else(unreadable)?;
    let kind = match options.patch_type.as_deref() {
        None | Some("strategic") => STRATEGIC,
        Some("merge") => MERGE,
        Some("json") => JSON,
        Some(other) => {
            let known = "--type must be one of [json merge strategic]";
            return Err(failed(format!("error: {known}, not {other:?}")));
        }
    };
    let subresource = options.subresource.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
    let words = options.words.get(1..).unwrap_or_default();
    patch_each(player, client, options, words, (&subresource, kind, "patched"), &|_| Ok(Some(patch.clone())))
}

/// `label` and `annotate`: `KEY=VALUE` sets, `KEY-` removes.
pub(super) fn mark(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let is_label = options.words.first().is_some_and(|word| word == "label");
    let (field, done) = if is_label { ("labels", "labeled") } else { ("annotations", "annotated") };
    let is_change = |word: &&String| word.contains('=') || word.ends_with('-');
    let (changes, words): (Vec<&String>, Vec<&String>) = options.words.iter().skip(1).partition(is_change);
    if changes.is_empty() {
        return Err(failed(format!(
            "error: at least one {} update is required",
            field.trim_end_matches('s')
        )));
    }
    let words: Vec<String> = words.into_iter().cloned().collect();
    let patch = |old: &Value| {
        let own = &old["metadata"][field];
        let mut changed = Map::new();
        for change in &changes {
            let (key, value) = match change.split_once('=') {
                Some((key, value)) => (key, json!(value)),
                None => (change.trim_end_matches('-'), Value::Null),
            };
            if own[key] == value {
                continue;
            }
            let kept = own[key].as_str().filter(|_| !options.overwrites && !value.is_null());
            if let Some(kept) = kept {
                let why = format!("error: '{key}' already has a value ({kept}), and --overwrite is false");
                return Err(failed(why));
            }
            changed.insert(key.to_owned(), value);
        }
        Ok((!changed.is_empty()).then(|| json!({"metadata": {field: changed}})))
    };
    let removes = changes.iter().all(|change| !change.contains('='));
    let done = if removes && is_label { "unlabeled" } else { done };
    patch_each(player, client, options, &words, ("", MERGE, done), &patch)
}

/// `scale TYPE NAME --replicas=COUNT`
pub(super) fn scale(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let count = options.replicas.ok_or_else(|| failed("error: required flag(s) \"replicas\" not set"))?;
    let words = options.words.get(1..).unwrap_or_default();
    let patch = |_: &Value| Ok(Some(json!({"spec": {"replicas": count}})));
    patch_each(player, client, options, words, ("/scale", MERGE, "scaled"), &patch)
}

/// `rollout restart TYPE NAME`
pub(super) fn restart(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let now = player.now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let words = options.words.get(2..).unwrap_or_default();
    let patch = |_: &Value| {
        let annotations = json!({"metadata": {"annotations": {RESTARTED: now}}});
        Ok(Some(json!({"spec": {"template": annotations}})))
    };
    patch_each(player, client, options, words, ("", STRATEGIC, "restarted"), &patch)
}

/// `logs POD [-c CONTAINER] [--tail=LINES]`: what there is by now.
pub(super) fn logs(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let words = options.words.get(1..).unwrap_or_default();
    let name = match words {
        [name] => name.strip_prefix("pod/").or(name.strip_prefix("pods/")).unwrap_or(name).to_owned(),
        _ => {
            return Err(failed(
                "error: expected 'logs POD', and the name of one pod is all that is known here",
            ));
        }
    };
    let one = named_by(player, client, &["pods".to_owned(), name.clone()])?.pop();
    let Some(one) = one else { return Ok(()) };
    let mut path = format!("{}/log", client.object_path(&one.resource, &name, None, options));
    let given = [("container", &options.container), ("tailLines", &options.tail)];
    let given = given.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
    let query: Vec<String> = given.chain(options.is_previous.then(|| "previous=true".to_owned())).collect();
    if !query.is_empty() {
        path.push_str(&format!("?{}", query.join("&")));
    }
    let text = client.text(player, &path)?;
    player.say(&text);
    Ok(())
}
