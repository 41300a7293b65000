//! `kubectl exec`: a command in a container of a pod, through the apiserver.

use serde_json::Value;

use super::client::ApiClient;
use super::exec_streams;
use super::objects::named_by;
use super::options::KubectlOptions;
use super::stop::{KubectlRun, KubectlStop};
use crate::interpreter::player::Player;

/// The container that is meant where none is named.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// How it ended, where a command has said so itself.
const NON_ZERO: &str = "NonZeroExitCode";

fn failed(why: impl Into<String>) -> KubectlStop {
    KubectlStop::Failed(why.into())
}

/// `exec (POD | TYPE/NAME) [-c CONTAINER] [-i] -- COMMAND...`
pub(super) fn exec(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let name = match options.words.get(1..).unwrap_or_default() {
        [_, _, ..] => {
            let instead = "Use exec [POD] -- [COMMAND] instead";
            let why = format!("error: exec [POD] [COMMAND] is not supported anymore. {instead}");
            return Err(failed(format!("{why}\nSee 'kubectl exec -h' for help and examples")));
        }
        [name] => name,
        [] => return Err(failed("error: pod, type/name or --filename must be specified")),
    };
    if options.command.is_empty() {
        return Err(failed("error: you must specify at least one command for the container"));
    }
    let pod = pod(player, client, options, name)?;
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if matches!(phase, "Succeeded" | "Failed") {
        let why = "cannot exec into a container in a completed pod; current phase is";
        return Err(failed(format!("error: {why} {phase}")));
    }
    let container = container(player, &pod, options)?;
    if options.wants_terminal && options.passes_input && !options.is_quiet {
        // What a terminal does is not passed on here.
        player.complain("Unable to use a TTY - input is not a terminal or the right kind of file\n");
    }
    let typed = if options.passes_input { Some(player.input_bytes()) } else { None };
    run(player, client, (&pod, &container), options, typed.as_deref())
}

fn run(
    player: &mut Player<'_>,
    client: &ApiClient,
    (pod, container): (&Value, &str),
    options: &KubectlOptions,
    typed: Option<&[u8]>,
) -> KubectlRun {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let mut query = vec![("container", container), ("stdout", "true"), ("stderr", "true")];
    query.extend(options.command.iter().map(|word| ("command", word.as_str())));
    query.extend(typed.map(|_| ("stdin", "true")));
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/exec");
    let said = typed.map(exec_streams::input).unwrap_or_default();
    let heard = client.streams(player, &path, &query, said)?;
    let heard = exec_streams::heard(&heard);
    player.say_bytes(&heard.out);
    player.complain_bytes(&heard.errors);
    let Some(status) = heard.status else {
        return Err(failed("error: the streams of the command broke off, or it said more than is read here"));
    };
    ended(player, &status)
}

/// With its own code, or with what kept it from running.
fn ended(player: &mut Player<'_>, status: &Value) -> KubectlRun {
    if status["status"] == "Success" {
        return Ok(());
    }
    if status["reason"] == NON_ZERO {
        let code = status["details"]["causes"][0]["message"].as_str().and_then(|code| code.parse().ok());
        let code = code.unwrap_or(1);
        player.complain(&format!("command terminated with exit code {code}\n"));
        player.status = code;
        return Ok(());
    }
    let message = status["message"].as_str().unwrap_or_default();
    Err(failed(format!("error: {message}")))
}

/// The one of that name, or the first of those that somebody has.
fn pod(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
    name: &str,
) -> Result<Value, KubectlStop> {
    let words = match name.split_once('/') {
        Some(_) => vec![name.to_owned()],
        None => vec!["pods".to_owned(), name.to_owned()],
    };
    let found = named_by(player, client, &words)?.pop();
    let Some(one) = found else { return Err(failed("error: no pod is named")) };
    let path = client.object_path(&one.resource, one.name.as_deref().unwrap_or_default(), None, options);
    let object = client.get(player, &path)?.well()?;
    if one.resource.plural == "pods" {
        return Ok(object);
    }
    let selector = match one.resource.plural.as_str() {
        "services" | "replicationcontrollers" => &object["spec"]["selector"],
        _ => &object["spec"]["selector"]["matchLabels"],
    };
    let terms = selector.as_object().into_iter().flatten();
    let terms: Vec<String> =
        terms.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    if terms.is_empty() {
        let kind = object["kind"].as_str().unwrap_or_default();
        return Err(failed(format!("error: cannot attach to {kind}: selector is not known here")));
    }
    let selected = KubectlOptions { selector: Some(terms.join(",")), ..KubectlOptions::default() };
    let pods = super::resources::find(player, client, "pods")?;
    let path = client.path(&pods, None, &selected);
    let list = client.get(player, &path)?.well()?;
    let best = list["items"].as_array().into_iter().flatten().max_by_key(|pod| is_active(pod));
    best.cloned().ok_or_else(|| failed("error: timed out waiting for the condition"))
}

/// Whoever runs and is ready goes first (`podutils.ActivePods`).
fn is_active(pod: &Value) -> (bool, bool) {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    (pod["status"]["phase"] == "Running", is_ready)
}

/// The one that is named, that an annotation names, or the first.
fn container(player: &mut Player<'_>, pod: &Value, options: &KubectlOptions) -> Result<String, KubectlStop> {
    let names = |field: &str| {
        let all = pod["spec"][field].as_array().into_iter().flatten();
        all.filter_map(|container| container["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let (own, ephemeral, init) = (names("containers"), names("ephemeralContainers"), names("initContainers"));
    let told = own.iter().cloned();
    let told = told.chain(ephemeral.iter().map(|name| format!("{name} (ephem)")));
    let told = told.chain(init.iter().map(|name| format!("{name} (init)"))).collect::<Vec<_>>().join(", ");
    let wanted = options.container.as_deref().or(pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str());
    if let Some(wanted) = wanted {
        if own.iter().chain(&ephemeral).chain(&init).any(|name| name == wanted) {
            return Ok(wanted.to_owned());
        }
        let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
        return Err(failed(format!("error: container {wanted} is not valid for pod {pod} out of: {told}")));
    }
    let first = own.first().cloned().ok_or_else(|| failed("error: the pod does not have any containers"))?;
    if !options.is_quiet && own.len() + ephemeral.len() + init.len() > 1 {
        player.complain(&format!("Defaulted container {first:?} out of: {told}\n"));
    }
    Ok(first)
}
