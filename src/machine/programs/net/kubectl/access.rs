//! `kubectl auth can-i` and `auth whoami`.

use serde_json::{Value, json};

use super::client::ApiClient;
use super::options::KubectlOptions;
use super::resources;
use super::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::Player;

const GROUP: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

pub(super) fn auth(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let words: Vec<&str> = options.words.iter().skip(1).map(String::as_str).collect();
    match words.as_slice() {
        ["whoami"] => who_am_i(player, client),
        ["can-i", verb, path] if path.starts_with('/') => {
            may(player, client, json!({"nonResourceAttributes": {"verb": verb, "path": path}}))
        }
        ["can-i", verb, what @ ..] if !what.is_empty() => {
            let spec = attributes(player, client, options, (verb, what))?;
            may(player, client, spec)
        }
        ["can-i", ..] => {
            let why = "error: you must specify two arguments: verb resource or verb resource/resourceName.";
            Err(KubectlStop::Failed(why.into()))
        }
        other => {
            let other = other.first().unwrap_or(&"");
            let why = format!("error: unknown command \"auth {other}\": this one knows can-i and whoami");
            Err(KubectlStop::Failed(why))
        }
    }
}

/// `VERB TYPE`, `VERB TYPE NAME`, `VERB TYPE/NAME`
fn attributes(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
    (verb, what): (&str, &[&str]),
) -> Result<Value, KubectlStop> {
    let (kind, name) = match what {
        [one] => one.split_once('/').unwrap_or((one, "")),
        [kind, name, ..] => (*kind, *name),
        [] => ("", ""),
    };
    let (group, resource, is_namespaced) = match kind {
        "*" => ("*".to_owned(), "*".to_owned(), true),
        kind => {
            let found = resources::find(player, client, kind)?;
            (found.group, found.plural, found.is_namespaced)
        }
    };
    let namespace = client.own_namespace().filter(|_| is_namespaced && !options.is_everywhere);
    Ok(json!({"resourceAttributes": {"verb": verb, "group": group, "resource": resource, "name": name,
        "subresource": options.subresource, "namespace": namespace}}))
}

fn may(player: &mut Player<'_>, client: &ApiClient, spec: Value) -> KubectlRun {
    let review =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec});
    let answer = client.send(player, "POST", GROUP, Some(review))?.well()?;
    if answer["status"]["allowed"] == true {
        player.say("yes\n");
        return Ok(());
    }
    let reason = answer["status"]["reason"].as_str().filter(|reason| !reason.is_empty());
    player.say(&reason.map_or("no\n".to_owned(), |reason| format!("no - {reason}\n")));
    player.status = 1;
    Ok(())
}

fn who_am_i(player: &mut Player<'_>, client: &ApiClient) -> KubectlRun {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = client.send(player, "POST", WHO, Some(review))?.well()?;
    let user = &answer["status"]["userInfo"];
    let list = |value: &Value| {
        let texts: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("[{}]", texts.join(" "))
    };
    let text = |name: &str| user[name].as_str().unwrap_or_default().to_owned();
    let mut rows =
        vec![("ATTRIBUTE".to_owned(), "VALUE".to_owned()), ("Username".to_owned(), text("username"))];
    if !text("uid").is_empty() {
        rows.push(("UID".to_owned(), text("uid")));
    }
    rows.push(("Groups".to_owned(), list(&user["groups"])));
    let extra = user["extra"].as_object().into_iter().flatten();
    rows.extend(extra.map(|(key, value)| (format!("Extra: {key}"), list(value))));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 3;
    let lines: String = rows.iter().map(|(name, value)| format!("{name:<width$}{value}\n")).collect();
    player.say(&lines);
    Ok(())
}
