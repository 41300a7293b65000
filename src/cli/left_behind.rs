//! What a run that failed leaves behind for whoever looks into it.

use std::path::Path;

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::Failure;
use crate::cluster::Cluster;
use crate::kinds::PODS;
use apimachinery::options::ListOptions;
use apimachinery::yaml;
use apis::core::event::EVENTS;
use files::write_private;

/// Files by name.
#[derive(Default)]
pub(crate) struct LeftBehind(Vec<(String, String)>);

impl LeftBehind {
    /// Asks the cluster, which still runs. What it does not tell any more is left out; whoever stops waiting
    /// has what was told until then. It ends the faults, which are not for us.
    pub(crate) async fn gather(&mut self, cluster: &Cluster) {
        cluster.faults().clear();
        let Self(files) = self;
        files.push(("trace.json".to_owned(), cluster.flow().all()));
        files.push(("events.txt".to_owned(), events(cluster).await));
        files.push(("objects.yaml".to_owned(), objects(cluster).await));
        logs(cluster, files).await;
    }

    /// Writes them.
    pub(crate) fn write(self, folder: &Path) -> Result<(), Failure> {
        for (name, text) in self.0 {
            let path = folder.join(name);
            let failed = |error| Failure::new(format!("cannot write {}", path.display()), error);
            write_private(&path, text.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }
}

/// All that is stored, but for secrets, a document each.
async fn objects(cluster: &Cluster) -> String {
    let client = cluster.kit();
    let mut text = String::new();
    for kind in cluster.scheme().all() {
        let is_told = !matches!(&*kind.plural, "secrets" | "events");
        if !is_told || !kind.verbs.iter().any(|verb| &**verb == "list") {
            continue;
        }
        let Ok(list) = client.list(&kind, "", &ListOptions::default()).await else { continue };
        for object in list.items.iter() {
            text.push_str("---\n");
            text.push_str(&yaml::to_string(&object.to_value()));
        }
    }
    text
}

/// As `kubectl get events` shows them, oldest first.
async fn events(cluster: &Cluster) -> String {
    let Ok(list) = cluster.kit().list(&EVENTS, "", &ListOptions::default()).await else {
        return String::new();
    };
    let mut lines: Vec<String> = list.items.iter().map(|event| line(&event.to_value())).collect();
    lines.sort();
    lines.concat()
}

fn line(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let times = [&event["lastTimestamp"], &event["eventTime"], &event["metadata"]["creationTimestamp"]];
    let time = times.into_iter().find_map(Value::as_str).unwrap_or_default();
    let about = &event["involvedObject"];
    let name = format!("{} {}/{}", text(&about["kind"]), text(&about["namespace"]), text(&about["name"]));
    format!(
        "{time} {} {name} {}: {}\n",
        text(&event["type"]),
        text(&event["reason"]),
        text(&event["message"])
    )
}

/// A path that answers with words.
async fn read(cluster: &Cluster, path: &str) -> Option<String> {
    let request = http::Request::get(path).body(Body::empty()).ok()?;
    let answer = cluster.service().oneshot(request).await.unwrap_or_else(|never| match never {});
    let said = answer.status().is_success().then(|| answer.into_body().collect())?;
    Some(String::from_utf8_lossy(&said.await.ok()?.to_bytes()).into_owned())
}

/// What all containers said.
async fn logs(cluster: &Cluster, files: &mut Vec<(String, String)>) {
    let client = cluster.kit();
    let Ok(list) = client.list(&PODS, "", &ListOptions::default()).await else { return };
    for pod in list.items.iter() {
        let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
        let value = pod.to_value();
        for container in value["spec"]["containers"].as_array().into_iter().flatten() {
            let container = container["name"].as_str().unwrap_or_default();
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/log?container={container}");
            if let Some(said) = read(cluster, &path).await {
                files.push((format!("logs/{namespace}/{name}/{container}.log"), said));
            }
        }
    }
}
