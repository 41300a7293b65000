//! `kubectl create KIND NAME`: simple objects out of flags.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::apply;
use super::client::{ApiAnswer, ApiClient};
use super::known::KnownResource;
use super::objects::NamedObject;
use super::options::KubectlOptions;
use super::printing;
use super::resources;
use super::stop::{KubectlRun, KubectlStop};
use crate::byte_text;
use crate::interpreter::player::Player;

fn failed(why: impl Into<String>) -> KubectlStop {
    KubectlStop::Failed(why.into())
}

/// `create -f FILE`, `create configmap NAME --from-literal=KEY=VALUE` and the like.
pub(super) fn create(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let is_of_flags = options.files.is_empty();
    let objects =
        if is_of_flags { vec![of_flags(player, client, options)?] } else { apply::objects(player, options)? };
    for object in objects {
        let resource = resources::of_object(player, client, &object)?;
        let namespace = object["metadata"]["namespace"].as_str();
        let path = resource.path(client.namespace_of(&resource, namespace));
        if options.is_dry {
            tell(player, resource, object, options)?;
            continue;
        }
        let answer = client.send(player, "POST", &path, Some(object))?;
        if let Some(why) = refused(&answer, &resource).filter(|_| is_of_flags) {
            return Err(failed(why));
        }
        tell(player, resource, answer.well()?, options)?;
    }
    Ok(())
}

/// How kubectl says why an object of flags is not made.
fn refused(answer: &ApiAnswer, resource: &KnownResource) -> Option<String> {
    let message = answer.body["message"].as_str().filter(|_| answer.code >= 400)?;
    match resource.singular.as_str() {
        "namespace" => None,
        "secret" => Some(format!("error: failed to create secret {message}")),
        kind => Some(format!("error: failed to create {kind}: {message}")),
    }
}

fn tell(
    player: &mut Player<'_>,
    resource: KnownResource,
    made: Value,
    options: &KubectlOptions,
) -> KubectlRun {
    let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if options.output.is_empty() {
        let dry = if options.is_dry { " (dry run)" } else { "" };
        player.say(&format!("{}/{name} created{dry}\n", resource.qualified()));
        return Ok(());
    }
    let one = NamedObject { resource, name: Some(name) };
    printing::objects(player, vec![(&one, made)], true, options)
}

fn of_flags(
    player: &mut Player<'_>,
    client: &ApiClient,
    options: &KubectlOptions,
) -> Result<Value, KubectlStop> {
    let words: Vec<&str> = options.words.iter().skip(1).map(String::as_str).collect();
    let (api_version, kind, name, rest) = match words.as_slice() {
        ["configmap" | "cm", name] => ("v1", "ConfigMap", name, json!({"data": texts(player, options)?})),
        ["secret", "generic", name] => {
            ("v1", "Secret", name, secret(encoded(&texts(player, options)?), options))
        }
        ["secret", "tls", name] => ("v1", "Secret", name, tls_secret(player, options)?),
        ["namespace" | "ns", name] => ("v1", "Namespace", name, json!({})),
        ["serviceaccount" | "sa", name] => ("v1", "ServiceAccount", name, json!({})),
        ["deployment" | "deploy", name] => ("apps/v1", "Deployment", name, deployment(name, options)?),
        ["job", name] => ("batch/v1", "Job", name, job(player, client, name, options)?),
        [] => return Err(failed("error: must specify one of -f and -k")),
        [_] | ["secret", _] => return Err(failed("error: exactly one NAME is required, got 0")),
        [kind, ..] => {
            let known = "this one knows configmap, secret, namespace, serviceaccount, deployment and job";
            return Err(failed(format!("error: unknown command \"create {kind}\": {known}")));
        }
    };
    let mut object = rest;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object["metadata"]["name"] = (*name).into();
    if let Some(namespace) = options.namespace.as_ref().filter(|_| kind != "Namespace") {
        object["metadata"]["namespace"] = namespace.as_str().into();
    }
    Ok(object)
}

/// `--from-literal=KEY=VALUE`, `--from-file=[KEY=]PATH`, `--from-env-file=PATH`
fn texts(player: &Player<'_>, options: &KubectlOptions) -> Result<BTreeMap<String, String>, KubectlStop> {
    let mut texts = BTreeMap::new();
    for literal in &options.literals {
        let why = || failed(format!("error: invalid literal source {literal}, expected key=value"));
        let (key, value) = literal.split_once('=').ok_or_else(why)?;
        texts.insert(key.to_owned(), value.trim_matches(['\'', '"']).to_owned());
    }
    for source in &options.from_files {
        let (key, path) = match source.split_once('=') {
            Some((key, path)) => (key, path),
            None => (source.rsplit('/').next().unwrap_or(source), source.as_str()),
        };
        texts.insert(key.to_owned(), text_of(player, path)?);
    }
    for path in &options.env_files {
        let text = text_of(player, path)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pairs = lines.map(|line| line.split_once('=').unwrap_or((line, "")));
        texts.extend(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    Ok(texts)
}

fn text_of(player: &Player<'_>, path: &str) -> Result<String, KubectlStop> {
    let file = player.file(path).filter(|file| !file.is_folder);
    file.map(|file| file.text())
        .ok_or_else(|| failed(format!("error: error reading {path}: no such file or directory")))
}

fn encoded(texts: &BTreeMap<String, String>) -> Value {
    let data =
        texts.iter().map(|(key, text)| (key.clone(), STANDARD.encode(byte_text::bytes_of(text)).into()));
    Value::Object(data.collect())
}

fn secret(data: Value, options: &KubectlOptions) -> Value {
    match &options.patch_type {
        Some(kind) => json!({"data": data, "type": kind}),
        None => json!({"data": data}),
    }
}

fn tls_secret(player: &Player<'_>, options: &KubectlOptions) -> Result<Value, KubectlStop> {
    let (Some(certificate), Some(key)) = (&options.certificate, &options.key) else {
        return Err(failed("error: key and cert must be specified"));
    };
    let files = [("tls.crt", certificate), ("tls.key", key)];
    let texts = files.iter().map(|(name, path)| Ok(((*name).to_owned(), text_of(player, path)?)));
    let texts: BTreeMap<String, String> = texts.collect::<Result<_, KubectlStop>>()?;
    Ok(json!({"data": encoded(&texts), "type": "kubernetes.io/tls"}))
}

/// The containers of `--image`, each called as its image.
fn containers(options: &KubectlOptions) -> Result<Vec<Value>, KubectlStop> {
    if options.images.is_empty() {
        return Err(failed("error: required flag(s) \"image\" not set"));
    }
    let container = |image: &String| {
        let base = image.rsplit('/').next().unwrap_or(image);
        let name =
            base.split(['@', ':']).next().unwrap_or(base).to_ascii_lowercase().replace(['_', '.'], "-");
        let mut container = json!({"image": image, "name": name, "resources": {}});
        if !options.command.is_empty() {
            container["command"] = json!(options.command);
        }
        if let Some(port) = options.port {
            container["ports"] = json!([{"containerPort": port}]);
        }
        container
    };
    Ok(options.images.iter().map(container).collect())
}

fn deployment(name: &str, options: &KubectlOptions) -> Result<Value, KubectlStop> {
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers(options)?}});
    let spec = json!({"replicas": options.replicas.unwrap_or(1), "selector": {"matchLabels": labels},
        "strategy": {}, "template": template});
    Ok(json!({"metadata": {"labels": labels}, "spec": spec, "status": {}}))
}

/// `create job NAME --image=IMAGE -- COMMAND`, `create job NAME --from=cronjob/NAME`
fn job(
    player: &mut Player<'_>,
    client: &ApiClient,
    name: &str,
    options: &KubectlOptions,
) -> Result<Value, KubectlStop> {
    let Some(from) = &options.from else {
        let mut containers = containers(options)?;
        containers.truncate(1);
        containers[0]["name"] = name.into();
        let pod = json!({"containers": containers, "restartPolicy": "Never"});
        return Ok(
            json!({"metadata": {}, "spec": {"template": {"metadata": {}, "spec": pod}}, "status": {}}),
        );
    };
    let unknown = || failed(format!("error: from must be an existing cronjob: {from}"));
    let cron_job = from.split_once('/').filter(|(kind, _)| matches!(*kind, "cronjob" | "cronjobs" | "cj"));
    let (kind, of) = cron_job.ok_or_else(unknown)?;
    let resource = resources::find(player, client, kind)?;
    let path = client.object_path(&resource, of, None, options);
    let found = client.get(player, &path)?.well()?;
    let template = &found["spec"]["jobTemplate"];
    let mut metadata = template["metadata"].clone();
    metadata["annotations"]["cronjob.kubernetes.io/instantiate"] = "manual".into();
    metadata["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "controller": true,
        "name": found["metadata"]["name"], "uid": found["metadata"]["uid"]}]);
    Ok(json!({"metadata": metadata, "spec": template["spec"]}))
}
