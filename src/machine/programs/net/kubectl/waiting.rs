//! `kubectl wait`.

use std::time::Duration;

use serde_json::Value;

use super::client::{ApiAnswer, ApiClient};
use super::json_path::by_path;
use super::objects::{each, named};
use super::options::KubectlOptions;
use super::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::{AfterCommand, Player};

/// How long it waits unless it is told otherwise.
const USUAL: Duration = Duration::from_secs(30);
/// How often it looks.
const PERIOD: Duration = Duration::from_secs(1);
/// `delete` waits as long as it takes.
pub(super) const FOREVER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What is waited for.
enum Awaited {
    Gone,
    Condition(String, String),
    Path(String, Option<String>),
}

impl Awaited {
    fn parse(text: &str) -> Option<Awaited> {
        if let Some(path) = text.strip_prefix("jsonpath=") {
            let (path, value) = match path.rsplit_once("}=") {
                Some((path, value)) => (format!("{path}}}"), Some(value.to_owned())),
                None => (path.to_owned(), None),
            };
            return Some(Awaited::Path(path, value));
        }
        if text.eq_ignore_ascii_case("delete") {
            return Some(Awaited::Gone);
        }
        let condition = text.strip_prefix("condition=")?;
        let (name, status) = condition.split_once('=').unwrap_or((condition, "true"));
        Some(Awaited::Condition(name.to_owned(), status.to_owned()))
    }

    fn is_met(&self, object: &Value) -> Result<bool, KubectlStop> {
        Ok(match self {
            Awaited::Gone => false,
            Awaited::Condition(name, status) => {
                let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
                let has = |condition: &Value, member: &str, wanted: &str| {
                    condition[member].as_str().is_some_and(|text| text.eq_ignore_ascii_case(wanted))
                };
                conditions.any(|condition| has(condition, "type", name) && has(condition, "status", status))
            }
            Awaited::Path(path, value) => {
                let found = by_path(object, path)?;
                value.as_ref().map_or(!found.is_empty(), |value| *value == found)
            }
        })
    }
}

pub(super) fn wait(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let text = options.condition.as_deref().unwrap_or_default();
    let unknown = || KubectlStop::Failed(format!("error: unrecognized condition: {text:?}"));
    let awaited = Awaited::parse(text).ok_or_else(unknown)?;
    let timeout = options.timeout.unwrap_or(USUAL);
    let mut all = vec![];
    for one in named(player, client, options)? {
        all.extend(each(player, client, options, one)?);
    }
    if all.is_empty() && !matches!(awaited, Awaited::Gone) {
        return Err(KubectlStop::Failed("error: no matching resources found".into()));
    }
    for (resource, name, _) in all {
        let path = client.object_path(&resource, &name, None, options);
        let label = format!("{}/{name}", resource.qualified());
        match &awaited {
            Awaited::Gone => until_gone(player, client, &path, timeout).map_err(|stop| late(stop, &label))?,
            awaited => {
                until_met(player, client, &path, awaited, timeout).map_err(|stop| late(stop, &label))?
            }
        }
        player.say(&format!("{label} condition met\n"));
    }
    Ok(())
}

fn late(stop: KubectlStop, label: &str) -> KubectlStop {
    match stop {
        KubectlStop::Failed(why) if why.is_empty() => {
            KubectlStop::Failed(format!("error: timed out waiting for the condition on {label}"))
        }
        stop => stop,
    }
}

/// Until an object is not there any more.
///
/// # Errors
/// Nothing is said where it takes too long.
pub(super) fn until_gone(
    player: &mut Player<'_>,
    client: &ApiClient,
    path: &str,
    timeout: Duration,
) -> KubectlRun {
    let begun = player.elapsed;
    loop {
        match client.get(player, path)? {
            ApiAnswer { code: 404, .. } => return Ok(()),
            answer => answer.well()?,
        };
        pause(player, begun, timeout)?;
    }
}

fn until_met(
    player: &mut Player<'_>,
    client: &ApiClient,
    path: &str,
    awaited: &Awaited,
    timeout: Duration,
) -> KubectlRun {
    let begun = player.elapsed;
    loop {
        if awaited.is_met(&client.get(player, path)?.well()?)? {
            return Ok(());
        }
        pause(player, begun, timeout)?;
    }
}

/// # Errors
/// That it has waited for long enough, and nothing is said of it.
pub(super) fn pause(player: &mut Player<'_>, begun: Duration, timeout: Duration) -> KubectlRun {
    if player.elapsed.saturating_sub(begun) >= timeout {
        return Err(KubectlStop::Failed(String::new()));
    }
    match player.pause(PERIOD) {
        AfterCommand::Go => Ok(()),
        flow => Err(KubectlStop::Flow(flow)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_and_paths_are_met() {
        let pod =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        let met = |text: &str| Awaited::parse(text).unwrap().is_met(&pod).ok();
        assert_eq!((met("condition=Ready"), met("condition=ready=False")), (Some(true), Some(false)));
        assert_eq!(met("jsonpath={.status.phase}=Running"), Some(true));
        assert_eq!(
            (met("jsonpath={.status.phase}=Failed"), met("jsonpath={.none}")),
            (Some(false), Some(false))
        );
        assert!(Awaited::parse("ready").is_none());
    }
}
