//! `kubectl rollout history` and `rollout undo`: what a template was before.

use serde_json::{Value, json};

use super::client::ApiClient;
use super::known::KnownResource;
use super::objects::named_by;
use super::options::KubectlOptions;
use super::resources;
use super::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::Player;

const REVISION: &str = "deployment.kubernetes.io/revision";
const CAUSE: &str = "kubernetes.io/change-cause";
const HASH: &str = "pod-template-hash";

/// What a template was once.
struct RolledRevision {
    number: i64,
    cause: String,
    /// Of a Deployment its template; else what is merged into the object.
    data: Value,
}

/// An object that is rolled out, and where it is.
struct RolledObject {
    resource: KnownResource,
    name: String,
    path: String,
    object: Value,
}

/// `rollout history TYPE NAME`
pub(super) fn history(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let rolled = rolled(player, client, options)?;
    let mut lines = String::from("REVISION  CHANGE-CAUSE\n");
    for revision in revisions(player, client, &rolled)? {
        lines.push_str(&format!("{:<8}  {}\n", revision.number, revision.cause));
    }
    player.say(&format!("{}/{} \n{lines}\n", rolled.resource.qualified(), rolled.name));
    Ok(())
}

/// `rollout undo TYPE NAME [--to-revision=NUMBER]`
pub(super) fn undo(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let rolled = rolled(player, client, options)?;
    let mut known = revisions(player, client, &rolled)?;
    let number = options.revision.filter(|number| *number != 0);
    let target = match number {
        Some(number) => {
            let missing = || failed(format!("error: unable to find specified revision {number} in history"));
            known.into_iter().find(|revision| revision.number == number).ok_or_else(missing)?
        }
        None => {
            known.pop();
            let name = &rolled.name;
            let missing = || {
                failed(format!("error: no rollout history found for {} {name:?}", rolled.resource.singular))
            };
            known.pop().ok_or_else(missing)?
        }
    };
    let label = format!("{}/{}", rolled.resource.qualified(), rolled.name);
    let is_deployment = rolled.resource.plural == "deployments";
    if is_deployment && rolled.object["spec"]["template"] == target.data {
        let why = format!("skipped rollback (current template already matches revision {})", target.number);
        player.say(&format!("{label} {why}\n"));
        return Ok(());
    }
    let (patch, kind) = if is_deployment {
        (
            json!([{"op": "replace", "path": "/spec/template", "value": target.data}]),
            "application/json-patch+json",
        )
    } else {
        (target.data, "application/strategic-merge-patch+json")
    };
    client.patch(player, &rolled.path, patch, kind)?.well()?;
    player.say(&format!("{label} rolled back\n"));
    Ok(())
}

fn failed(why: String) -> KubectlStop {
    KubectlStop::Failed(why)
}

fn rolled(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
) -> Result<RolledObject, KubectlStop> {
    let words = options.words.get(2..).unwrap_or_default();
    let one = named_by(player, client, words)?.pop();
    let missing = || failed("error: required resource not specified".into());
    let (resource, name) = one.and_then(|one| Some((one.resource, one.name?))).ok_or_else(missing)?;
    if !matches!(resource.plural.as_str(), "deployments" | "statefulsets" | "daemonsets") {
        let why = format!("error: no rollbacker has been implemented for {}", resource.singular);
        return Err(failed(why));
    }
    let path = client.object_path(&resource, &name, None, options);
    let object = client.get(player, &path)?.well()?;
    Ok(RolledObject { resource, name, path, object })
}

/// All that are kept, the newest last.
fn revisions(
    player: &mut Player<'_>,
    client: &ApiClient,
    rolled: &RolledObject,
) -> Result<Vec<RolledRevision>, KubectlStop> {
    let is_deployment = rolled.resource.plural == "deployments";
    let kind = if is_deployment { "replicasets.apps" } else { "controllerrevisions.apps" };
    let resource = resources::find(player, client, kind)?;
    let namespace = rolled.object["metadata"]["namespace"].as_str();
    let list = client.get(player, &resource.path(namespace))?.well()?;
    let uid = &rolled.object["metadata"]["uid"];
    let is_own = |item: &&Value| {
        let mut owners = item["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.any(|owner| owner["uid"] == *uid)
    };
    let items = list["items"].as_array().into_iter().flatten().filter(is_own);
    let mut revisions: Vec<RolledRevision> = items.map(|item| revision(item, is_deployment)).collect();
    revisions.sort_by_key(|revision| revision.number);
    Ok(revisions)
}

fn revision(item: &Value, is_deployment: bool) -> RolledRevision {
    let annotations = &item["metadata"]["annotations"];
    let cause = annotations[CAUSE].as_str().unwrap_or("<none>").to_owned();
    if !is_deployment {
        let number = item["revision"].as_i64().unwrap_or(0);
        return RolledRevision { number, cause, data: item["data"].clone() };
    }
    let number = annotations[REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut template = item["spec"]["template"].clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    RolledRevision { number, cause, data: template }
}
