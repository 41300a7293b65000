//! `kubectl` in a container: it asks the apiserver at `KUBERNETES_SERVICE_HOST` with the token of the pod's
//! account. `get`, `describe`, `apply`, `create`, `delete`, `patch`, `label`, `annotate`, `scale`, `rollout`,
//! `logs`, `exec`, `wait`, `auth` and `version`, of the kinds that every cluster has, and of any other as
//! `NAME.VERSION.GROUP` or after a look at what is served.

mod stop;

mod options;

mod known;

mod client;
mod resources;

mod objects;

mod json_path;
mod json_path_steps;

mod apply;
mod changing;
mod printing;
mod waiting;

mod describe;
mod exec;
mod exec_streams;

mod access;
mod creating;
mod revisions;
mod rolling;

use serde_json::Value;

use self::client::{ApiAnswer, ApiClient};
use self::objects::{each, named};
use self::options::KubectlOptions;
use self::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::{AfterCommand, Player};

/// What it knows.
const COMMANDS: &[&str] = &[
    "get", "describe", "apply", "create", "delete", "patch", "label", "annotate", "scale", "rollout", "logs",
    "exec", "wait", "auth", "version",
];

/// Says what it does with these words.
pub(super) fn run(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let ran = KubectlOptions::parse(words).and_then(|options| run_command(player, &options));
    match ran {
        Ok(()) => Ok(()),
        Err(KubectlStop::Flow(flow)) => Err(flow),
        Err(KubectlStop::Failed(why)) => {
            player.fail(&format!("{why}\n"));
            Ok(())
        }
    }
}

fn run_command(player: &mut Player<'_>, options: &KubectlOptions) -> KubectlRun {
    let command = options.words.first().map_or("", String::as_str);
    if command == "version" && options.is_client_only {
        player.say(&client_version());
        return Ok(());
    }
    if !COMMANDS.contains(&command) {
        let known = format!("this one knows {}", COMMANDS.join(", "));
        let why = format!("error: unknown command {command:?} for \"kubectl\": {known}");
        return Err(KubectlStop::Failed(why));
    }
    let client = ApiClient::in_cluster(player, options)?;
    match command {
        "get" => get(player, &client, options),
        "apply" => apply::apply(player, &client, options),
        "create" => creating::create(player, &client, options),
        "delete" => delete(player, &client, options),
        "wait" => waiting::wait(player, &client, options),
        "patch" => changing::patch(player, &client, options),
        "label" | "annotate" => changing::mark(player, &client, options),
        "scale" => changing::scale(player, &client, options),
        "logs" => changing::logs(player, &client, options),
        "exec" => exec::exec(player, &client, options),
        "describe" => describe::describe(player, &client, options),
        "auth" => access::auth(player, &client, options),
        "rollout" => rollout(player, &client, options),
        _ => version(player, &client),
    }
}

fn rollout(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    match options.words.get(1).map_or("", String::as_str) {
        "restart" => changing::restart(player, client, options),
        "status" => rolling::status(player, client, options),
        "history" => revisions::history(player, client, options),
        "undo" => revisions::undo(player, client, options),
        other => {
            let known = "this one knows restart, status, history and undo";
            let why = format!("error: unknown command \"rollout {other}\": {known}");
            Err(KubectlStop::Failed(why))
        }
    }
}

fn client_version() -> String {
    "Client Version: v1.36.2\nKustomize Version: v5.7.1\n".to_owned()
}

fn version(player: &mut Player<'_>, client: &ApiClient) -> KubectlRun {
    let answer = client.get(player, "/version")?.well()?;
    let server = answer["gitVersion"].as_str().unwrap_or_default();
    player.say(&format!("{}Server Version: {server}\n", client_version()));
    Ok(())
}

fn get(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let wanted = named(player, client, options)?;
    let is_table = matches!(options.output.as_str(), "" | "wide");
    let mut items = vec![];
    for one in &wanted {
        let mut path = client.path(&one.resource, one.name.as_deref(), options);
        if is_table && options.sort_by.is_some() {
            // The path is one of the whole object.
            path.push_str(if path.contains('?') { "&" } else { "?" });
            path.push_str("includeObject=Object");
        }
        let answer = if is_table { client.get_table(player, &path)? } else { client.get(player, &path)? };
        let mut answer = match answer {
            ApiAnswer { code: 404, .. } if options.ignores_missing => continue,
            answer => answer.well()?,
        };
        if is_table {
            printing::table(player, &mut answer, options, (&one.resource, wanted.len() > 1))?;
        } else {
            items.push((one, answer));
        }
    }
    if is_table {
        return Ok(());
    }
    let is_single = wanted.len() == 1 && wanted[0].name.is_some();
    printing::objects(player, items, is_single, options)
}

fn delete(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let mut wanted = vec![];
    if options.files.is_empty() {
        for one in named(player, client, options)? {
            if one.name.is_none() && !options.is_all && options.selector.is_none() {
                let why = "error: resource(s) were provided, but no name was specified";
                return Err(KubectlStop::Failed(why.into()));
            }
            wanted.extend(each(player, client, options, one)?);
        }
    } else {
        for object in apply::objects(player, options)? {
            let resource = resources::of_object(player, client, &object)?;
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            wanted.push((resource, name, object["metadata"]["namespace"].as_str().map(str::to_owned)));
        }
    }
    for (resource, name, namespace) in wanted {
        let path = client.object_path(&resource, &name, namespace.as_deref(), options);
        match client.send(player, "DELETE", &path, options.grace.map(grace_period))? {
            ApiAnswer { code: 404, .. } if options.ignores_missing => continue,
            answer => answer.well()?,
        };
        let from = match client.namespace_of(&resource, namespace.as_deref()) {
            Some(namespace) => format!(" from {namespace} namespace"),
            None => String::new(),
        };
        let how = if options.grace == Some(0) { "force deleted" } else { "deleted" };
        player.say(&format!("{} {name:?} {how}{from}\n", resource.qualified()));
        if options.waits {
            waiting::until_gone(player, client, &path, options.timeout.unwrap_or(waiting::FOREVER))?;
        }
    }
    Ok(())
}

fn grace_period(seconds: i64) -> Value {
    serde_json::json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": seconds})
}
