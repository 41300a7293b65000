//! Kinds by the names that users call them.

use serde_json::Value;

use super::client::ApiClient;
use super::known::{BUILTIN, BuiltinRow, KnownResource};
use super::stop::KubectlStop;
use crate::interpreter::player::Player;

/// The kind that somebody calls so.
///
/// # Errors
/// That there is none.
pub(crate) fn find(
    player: &mut Player<'_>,
    client: &ApiClient,
    name: &str,
) -> Result<KnownResource, KubectlStop> {
    let lower = name.to_ascii_lowercase();
    let (word, group) = lower.split_once('.').unwrap_or((&lower, ""));
    let is_it = |row: &&BuiltinRow| {
        let (own_group, _, plural, kind, short, _) = **row;
        let is_short = word == short && !short.is_empty();
        let is_named = is_short || word == plural || word == kind.to_ascii_lowercase();
        is_named && (group.is_empty() || group == own_group)
    };
    if let Some(row) = BUILTIN.iter().find(is_it) {
        return Ok(KnownResource::builtin(row));
    }
    let fits = |group_name: &str, resource: &Value| {
        let own = |name: &str| resource[name].as_str().unwrap_or_default().to_ascii_lowercase() == word;
        let mut shorts = resource["shortNames"].as_array().into_iter().flatten();
        let is_named =
            own("name") || own("singularName") || own("kind") || shorts.any(|short| *short == *word);
        is_named && (group.is_empty() || group == group_name)
    };
    let missing = || KubectlStop::Failed(format!("error: the server doesn't have a resource type {name:?}"));
    served(player, client, group, &fits)?.ok_or_else(missing)
}

/// The kind that an object is of.
///
/// # Errors
/// That there is none.
pub(crate) fn of_object(
    player: &mut Player<'_>,
    client: &ApiClient,
    object: &Value,
) -> Result<KnownResource, KubectlStop> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let is_it = |row: &&BuiltinRow| (row.0, row.1, row.3) == (group, version, kind.as_str());
    if let Some(row) = BUILTIN.iter().find(is_it) {
        return Ok(KnownResource::builtin(row));
    }
    let fits = |_: &str, resource: &Value| resource["kind"] == *kind;
    let missing = || {
        let why = format!("no matches for kind {kind:?} in version {api_version:?}");
        KubectlStop::Failed(format!(
            "error: resource mapping not found: {why}\nensure CRDs are installed first"
        ))
    };
    let found = of_version(player, client, group, version, &fits)?;
    found.ok_or_else(missing)
}

type FitsResource<'a> = &'a dyn Fn(&str, &Value) -> bool;

/// Looks at what is served: at one group where that is named.
fn served(
    player: &mut Player<'_>,
    client: &ApiClient,
    group: &str,
    fits: FitsResource<'_>,
) -> Result<Option<KnownResource>, KubectlStop> {
    let groups = client.get(player, "/apis")?.well()?;
    for found in groups["groups"].as_array().into_iter().flatten() {
        let name = found["name"].as_str().unwrap_or_default();
        let version = found["preferredVersion"]["version"].as_str().unwrap_or_default();
        if !group.is_empty() && group != name {
            continue;
        }
        if let Some(resource) = of_version(player, client, name, version, fits)? {
            return Ok(Some(resource));
        }
    }
    Ok(None)
}

fn of_version(
    player: &mut Player<'_>,
    client: &ApiClient,
    group: &str,
    version: &str,
    fits: FitsResource<'_>,
) -> Result<Option<KnownResource>, KubectlStop> {
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let list = client.get(player, &path)?;
    let mut resources = list.body["resources"].as_array().into_iter().flatten();
    let is_whole = |resource: &&Value| !resource["name"].as_str().unwrap_or("/").contains('/');
    let found = resources.find(|resource| is_whole(resource) && fits(group, resource));
    let text = |resource: &Value, name: &str| resource[name].as_str().unwrap_or_default().to_owned();
    Ok(found.map(|resource| KnownResource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: text(resource, "name"),
        singular: text(resource, "kind").to_ascii_lowercase(),
        is_namespaced: resource["namespaced"] == true,
    }))
}
