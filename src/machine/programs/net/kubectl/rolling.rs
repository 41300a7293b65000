//! `kubectl rollout status`: until all pods are new ones.

use std::time::Duration;

use serde_json::Value;

use super::client::ApiClient;
use super::objects::named_by;
use super::options::KubectlOptions;
use super::stop::{KubectlRun, KubectlStop};
use super::waiting;
use crate::interpreter::player::Player;

/// `rollout status TYPE NAME [--watch=false] [--timeout=DURATION]`
pub(super) fn status(player: &mut Player<'_>, client: &ApiClient, options: &KubectlOptions) -> KubectlRun {
    let words = options.words.get(2..).unwrap_or_default();
    let Some(one) = named_by(player, client, words)?.pop() else { return Ok(()) };
    let name = one.name.ok_or_else(|| {
        KubectlStop::Failed("error: resource(s) were provided, but no name was specified".into())
    })?;
    let path = client.object_path(&one.resource, &name, None, options);
    let timeout = options.timeout.filter(|timeout| *timeout > Duration::ZERO).unwrap_or(waiting::FOREVER);
    let begun = player.elapsed;
    let mut last = String::new();
    loop {
        let object = client.get(player, &path)?.well()?;
        let (told, is_done) = progress(&one.resource.singular, &name, &object)?;
        if told != last {
            player.say(&format!("{told}\n"));
        }
        if is_done || !options.watches {
            return Ok(());
        }
        last = told;
        let late = |stop| match stop {
            KubectlStop::Failed(_) => {
                KubectlStop::Failed("error: timed out waiting for the condition".to_owned())
            }
            stop => stop,
        };
        waiting::pause(player, begun, timeout).map_err(late)?;
    }
}

/// How far it is, in kubectl's words, and whether that is all.
fn progress(kind: &str, name: &str, object: &Value) -> Result<(String, bool), KubectlStop> {
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let is_observed = number("/metadata/generation") <= number("/status/observedGeneration");
    let shown = match kind {
        "daemonset" => "daemon set",
        kind => kind,
    };
    if !is_observed {
        return Ok((format!("Waiting for {shown} spec update to be observed..."), false));
    }
    let waits = format!("Waiting for {shown} {name:?} rollout to finish:");
    let waiting = |what: String| Ok((format!("{waits} {what}..."), false));
    match kind {
        "deployment" => {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let is_late =
                |one: &Value| one["type"] == "Progressing" && one["reason"] == "ProgressDeadlineExceeded";
            if conditions.clone().any(is_late) {
                let why = format!("error: deployment {name:?} exceeded its progress deadline");
                return Err(KubectlStop::Failed(why));
            }
            let updated = number("/status/updatedReplicas");
            let available = number("/status/availableReplicas");
            let old = number("/status/replicas") - updated;
            if updated < wanted {
                return waiting(format!("{updated} out of {wanted} new replicas have been updated"));
            }
            if old > 0 {
                return waiting(format!("{old} old replicas are pending termination"));
            }
            if available < updated {
                return waiting(format!("{available} of {updated} updated replicas are available"));
            }
        }
        "daemonset" => {
            let desired = number("/status/desiredNumberScheduled");
            let updated = number("/status/updatedNumberScheduled");
            let available = number("/status/numberAvailable");
            if updated < desired {
                return waiting(format!("{updated} out of {desired} new pods have been updated"));
            }
            if available < desired {
                return waiting(format!("{available} of {desired} updated pods are available"));
            }
        }
        "statefulset" => return Ok(progress_of_stateful_set(object, wanted)),
        kind => {
            let why = format!("error: no status viewer has been implemented for {kind}");
            return Err(KubectlStop::Failed(why));
        }
    }
    Ok((format!("{shown} {name:?} successfully rolled out"), true))
}

fn progress_of_stateful_set(object: &Value, wanted: i64) -> (String, bool) {
    let status = &object["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let missing = wanted - number("readyReplicas");
    if missing > 0 {
        return (format!("Waiting for {missing} pods to be ready..."), false);
    }
    if status["updateRevision"] != status["currentRevision"] {
        let (pods, revision) = (number("updatedReplicas"), text("updateRevision"));
        let told = "waiting for statefulset rolling update to complete";
        return (format!("{told} {pods} pods at revision {revision}..."), false);
    }
    let (pods, revision) = (number("currentReplicas"), text("currentRevision"));
    (format!("statefulset rolling update complete {pods} pods at revision {revision}..."), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn progress_is_told_as_kubectl_does() {
        let told = |kind: &str, spec: Value, status: Value| {
            let object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
            progress(kind, "web", &object).ok()
        };
        let three = || json!({"replicas": 3});
        for (status, wanted, is_done) in [
            (json!({"observedGeneration": 1}), "Waiting for deployment spec update to be observed...", false),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1}),
                "Waiting for deployment \"web\" rollout to finish: 1 out of 3 new replicas have been updated...",
                false,
            ),
            (
                json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3}),
                "Waiting for deployment \"web\" rollout to finish: 1 old replicas are pending termination...",
                false,
            ),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}),
                "deployment \"web\" successfully rolled out",
                true,
            ),
        ] {
            assert_eq!(told("deployment", three(), status), Some((wanted.to_owned(), is_done)));
        }
        let status = json!({"observedGeneration": 2, "readyReplicas": 1});
        let wanted = "Waiting for 2 pods to be ready...".to_owned();
        assert_eq!(told("statefulset", three(), status), Some((wanted, false)));
        assert!(told("pod", json!({}), json!({"observedGeneration": 2})).is_none());
    }
}
