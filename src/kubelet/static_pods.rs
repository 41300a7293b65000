//! Static pods: those that a kubelet has of its own, from a folder (`--pod-manifest-path`) or its node's
//! config, and the mirror pods by which the apiserver knows of them (`pkg/kubelet/config/file.go`,
//! `pod/mirror_client.go`). Whoever deletes a mirror pod finds it again.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::kubelet::Kubelet;
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apimachinery::yaml;
use apis::core::node::NODES;
use apis::core::pod::PODS;
use apis::tree::{annotation, object_mut, text};

/// How often it is looked what is in the folder (`fileCheckFrequency`).
const FILE_CHECK: Duration = Duration::from_secs(20);
/// Until it is tried again what could not be done.
const RETRY: Duration = Duration::from_secs(1);
/// So many static pods a node has at most; further ones are left out, which is told.
const MAX_STATIC_PODS: usize = 110;
/// A file that is larger is left out, which is told.
const MAX_FILE_BYTES: u64 = 1 << 20;
const HASH: &str = "kubernetes.io/config.hash";
const MIRROR: &str = "kubernetes.io/config.mirror";
const SOURCE: &str = "kubernetes.io/config.source";
const SEEN: &str = "kubernetes.io/config.seen";

impl Kubelet {
    /// Whether it may have static pods.
    pub(crate) fn has_static_pods(&self) -> bool {
        let config = &self.shared.config;
        !config.static_pods.is_empty() || config.options.pod_manifest_path.is_some()
    }

    /// Keeps the mirror pods as they should be, for as long as it is polled.
    pub(crate) async fn keep_static_pods(self) {
        self.pod_informer().wait_for_sync().await;
        let clock = &self.shared.context.clock;
        loop {
            let synced = self.sync_static_pods().await;
            let gone = self.shared.state.mirror_gone.notified();
            let pause = match &synced {
                Err(status) => {
                    tracing::debug!(node = self.node_name(), status = %status.message, "static pods");
                    Some(RETRY)
                }
                // What was refused may be taken later, as files may be others.
                Ok(are_all_taken) => {
                    let has_folder = self.shared.config.options.pod_manifest_path.is_some();
                    (has_folder || !are_all_taken).then_some(FILE_CHECK)
                }
            };
            match pause {
                Some(pause) => drop(clock.timeout(pause, gone).await),
                None => gone.await,
            }
        }
    }

    /// Says whether none was refused.
    async fn sync_static_pods(&self) -> Result<bool, Status> {
        let mut are_all_taken = true;
        let client = &self.shared.context.client;
        let uid = client.get(&NODES, "", self.node_name()).await?.metadata.uid.clone();
        let wanted: Vec<Value> = self.static_pods().iter().map(|pod| self.mirror(pod, &uid)).collect();
        let mut there = self.pod_informer().lister().all();
        there.retain(|pod| pod.mentions(SOURCE) && annotation(&pod.to_value(), SOURCE) == "file");
        for pod in &there {
            let tree = pod.to_value();
            let is_wanted = |mirror: &Value| {
                is_named(pod, mirror) && annotation(mirror, HASH) == annotation(&tree, MIRROR)
            };
            if !wanted.iter().any(is_wanted) && !pod.is_deleting() {
                let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
                let options = DeleteOptions::default().of_uid(&pod.metadata.uid);
                ignore(404, client.delete(&PODS, namespace, name, &options).await)?;
            }
        }
        for mirror in wanted.iter().filter(|mirror| !there.iter().any(|pod| is_named(pod, mirror))) {
            let namespace = text(mirror, "metadata.namespace");
            match client.create(&PODS, namespace, mirror.clone()).await {
                Err(status) if matches!(status.code, 403 | 422) => {
                    are_all_taken = false;
                    self.tell_of_static(&status.message);
                }
                other => ignore(409, other.map(drop))?,
            }
        }
        Ok(are_all_taken)
    }

    /// As they are written.
    fn static_pods(&self) -> Vec<Value> {
        let config = &self.shared.config;
        let mut pods = config.static_pods.clone();
        if let Some(folder) = &config.options.pod_manifest_path {
            match of_folder(folder) {
                Ok((found, problems)) => {
                    problems.iter().for_each(|problem| self.tell_of_static(problem));
                    pods.extend(found);
                }
                Err(why) => self.tell_of_static(&format!("cannot read {}: {why}", folder.display())),
            }
        }
        if pods.len() > MAX_STATIC_PODS {
            self.tell_of_static(&format!("a node has at most {MAX_STATIC_PODS} static pods"));
            pods.truncate(MAX_STATIC_PODS);
        }
        pods
    }

    fn tell_of_static(&self, why: &str) {
        self.tell_of_node("Warning", "FailedStaticPod", why);
    }

    /// What the apiserver is told of one (`applyDefaults`, `CreateMirrorPod`).
    fn mirror(&self, pod: &Value, node_uid: &str) -> Value {
        let node = self.node_name();
        let mut mirror = pod.clone();
        let hash = format!("{:x}", Sha256::digest(format!("{node}{pod}")))[..32].to_owned();
        let name = format!("{}-{node}", text(pod, "metadata.name"));
        let namespace = Some(text(pod, "metadata.namespace")).filter(|given| !given.is_empty());
        mirror["metadata"]["name"] = name.into();
        mirror["metadata"]["namespace"] = namespace.unwrap_or("default").into();
        mirror["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": true}]);
        let annotations = object_mut(&mut mirror, "metadata.annotations");
        let seen = rfc3339(self.shared.context.clock.now());
        for (name, value) in [(HASH, &*hash), (MIRROR, &hash), (SOURCE, "file"), (SEEN, &seen)] {
            annotations.insert(name.into(), value.into());
        }
        mirror["spec"]["nodeName"] = node.into();
        let bears = json!({"operator": "Exists", "effect": "NoExecute"});
        match mirror["spec"]["tolerations"].as_array_mut() {
            Some(tolerations) => tolerations.push(bears),
            None => mirror["spec"]["tolerations"] = json!([bears]),
        }
        mirror
    }
}

fn is_named(pod: &Arc<Object>, mirror: &Value) -> bool {
    let metadata = &pod.metadata;
    metadata.name == text(mirror, "metadata.name") && metadata.namespace == text(mirror, "metadata.namespace")
}

fn ignore(code: u16, done: Result<(), Status>) -> Result<(), Status> {
    match done {
        Err(status) if status.code == code => Ok(()),
        done => done,
    }
}

/// The pods in the files of a folder, and what is wrong with others: files that begin with a dot are not
/// looked at, nor are folders.
fn of_folder(folder: &Path) -> std::io::Result<(Vec<Value>, Vec<String>)> {
    let mut files: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.is_file() && !is_hidden(file));
    files.sort();
    let mut pods = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        match of_file(&file) {
            Ok(pod) => pods.push(pod),
            Err(why) => problems.push(format!("{}: {why}", file.display())),
        }
    }
    Ok((pods, problems))
}

fn is_hidden(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn of_file(file: &Path) -> Result<Value, String> {
    let size = fs::metadata(file).map_err(|why| why.to_string())?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("larger than {MAX_FILE_BYTES} bytes"));
    }
    let text = fs::read_to_string(file).map_err(|why| why.to_string())?;
    let pod: Value = yaml::from_str(&text).map_err(|why| why.to_string())?;
    check(&pod).map_or(Ok(pod), Err)
}

/// Why a manifest is none of a static pod.
pub(crate) fn check(pod: &Value) -> Option<String> {
    if pod["kind"] != "Pod" || pod["apiVersion"] != "v1" {
        return Some("must be a Pod of apiVersion v1".into());
    }
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    (name.is_empty() || !pod["spec"].is_object()).then(|| "a Pod has a name and a spec".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_pods_and_what_is_none_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("b.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: []}}");
        write("a.json", r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}"#);
        write(".c.yaml.swp", "nothing");
        fs::create_dir(folder.path().join("d")).unwrap();
        let (pods, problems) = of_folder(folder.path()).unwrap();
        assert_eq!((pods.len(), &pods[0]["metadata"]["name"]), (1, &json!("b")));
        assert!(
            problems.len() == 1 && problems[0].ends_with("a.json: must be a Pod of apiVersion v1"),
            "{problems:?}"
        );
        write("b.yaml", &" ".repeat((1 << 20) + 1));
        assert!(of_folder(folder.path()).unwrap().1[1].ends_with("b.yaml: larger than 1048576 bytes"));
    }
}
