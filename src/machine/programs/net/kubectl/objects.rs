//! Which objects a command line means.

use serde_json::Value;

use super::client::ApiClient;
use super::known::KnownResource;
use super::options::KubectlOptions;
use super::resources;
use super::stop::KubectlStop;
use crate::interpreter::player::Player;

/// Which object of which kind; all of them where none is named.
pub(crate) struct NamedObject {
    pub(crate) resource: KnownResource,
    pub(crate) name: Option<String>,
}

/// What stands behind the command ([`named_by`]).
pub(crate) fn named(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
) -> Result<Vec<NamedObject>, KubectlStop> {
    named_by(player, client, options.words.get(1..).unwrap_or_default())
}

/// `TYPE`, `TYPE NAME...`, `TYPE/NAME...`, several types with commas between.
pub(crate) fn named_by(
    player: &mut Player<'_>,
    client: &ApiClient,
    words: &[String],
) -> Result<Vec<NamedObject>, KubectlStop> {
    let Some(first) = words.first() else {
        return Err(KubectlStop::Failed("error: You must specify the type of resource to act on.".into()));
    };
    let mut found = vec![];
    if first.contains('/') {
        for word in words {
            let (kind, name) = word.split_once('/').unwrap_or((word, ""));
            let resource = resources::find(player, client, kind)?;
            found.push(NamedObject { resource, name: Some(name.to_owned()) });
        }
        return Ok(found);
    }
    for kind in first.split(',') {
        let resource = resources::find(player, client, kind)?;
        if words.len() == 1 {
            found.push(NamedObject { resource, name: None });
            continue;
        }
        let names = words[1..].iter();
        found.extend(names.map(|name| NamedObject { resource: resource.clone(), name: Some(name.clone()) }));
    }
    Ok(found)
}

pub(crate) type DeletedObject = (KnownResource, String, Option<String>);

/// All that a selector means, or that is there.
pub(crate) fn each(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
    one: NamedObject,
) -> Result<Vec<DeletedObject>, KubectlStop> {
    if let Some(name) = one.name {
        return Ok(vec![(one.resource, name, None)]);
    }
    let path = client.path(&one.resource, None, options);
    let list = client.get(player, &path)?.well()?;
    let items = list["items"].as_array().into_iter().flatten();
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Ok(items.map(|item| (one.resource.clone(), name(item), None)).collect())
}
