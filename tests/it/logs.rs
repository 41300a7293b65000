//! What `-v` and `-vv` log, and what they do not; and what `kubarium trace` prints into a pipe.

use http::Method;
use serde_json::json;

use crate::support::wire::{Answer, Target};
use crate::support::{Up, eventually, texts};

const SECRET: &str = "c0ntent-of-a-s3cret";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Sends requests to a cluster, one after the other, as its administrator.
fn send(up: &Up, requests: &[(Method, &str, serde_json::Value)]) -> Vec<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut wire = Target::of_kubeconfig(&up.folder().join("kubeconfig")).http1().await.unwrap();
        let mut answers = Vec::new();
        for (method, path, body) in requests {
            answers.push(wire.send(method.clone(), path, body).await.unwrap());
        }
        answers
    })
}

/// A pod that runs and ends, one that fits nowhere, and a Secret.
fn work(up: &Up) -> Vec<Answer> {
    let containers = json!([{"name": "main", "image": "busybox", "command": ["sh", "-c", "exit 3"]}]);
    let once =
        json!({"metadata": {"name": "once"}, "spec": {"restartPolicy": "Never", "containers": containers}});
    let picky = json!({"metadata": {"name": "picky"},
        "spec": {"nodeSelector": {"disk": "ssd"}, "containers": containers}});
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"key": SECRET}});
    let secrets = "/api/v1/namespaces/default/secrets";
    let requests = [(Method::POST, PODS, once), (Method::POST, PODS, picky), (Method::POST, secrets, secret)];
    send(up, &requests)
}

/// The first line of the log with all of these words, as soon as it is there.
fn line(up: &Up, words: &[&str]) -> String {
    eventually(&format!("{words:?} in the log"), || {
        let log = up.log();
        let found = log.lines().find(|line| words.iter().all(|word| line.contains(word)));
        found.map(str::to_owned)
    })
}

#[test]
fn v_says_what_the_components_do() {
    let up = Up::start_in(&["--nodes", "1", "-v"], &[]);
    work(&up);
    line(&up, &["INFO", "Successfully bound pod to node", "pod=default/once", "node=node-1"]);
    line(&up, &["INFO", "Unable to schedule pod", "pod=default/picky", "didn't match Pod's node affinity"]);
    line(&up, &["INFO", "SyncLoop ADD", "pod=default/once"]);
    line(&up, &["INFO", "SyncLoop (PLEG)", "ContainerStarted", "container=\"main\"", "default/once"]);
    line(&up, &["INFO", "SyncLoop (PLEG)", "ContainerDied", "exit_code=3", "default/once"]);
    let log = up.log();
    assert!(!log.contains("DEBUG") && !log.contains(" HTTP"), "{log}");
}

#[test]
fn vv_says_every_request_and_reconcile_and_no_secret_or_colour() {
    let up = Up::start_in(&["--nodes", "1"], &[("KUBARIUM_VERBOSE", "2")]);
    let answers = work(&up);
    let id = answers[0].headers["audit-id"].to_str().unwrap();
    let request = line(&up, &["HTTP", id]);
    for field in ["DEBUG", "verb=POST", PODS, "user=\"kubernetes-admin\"", "resp=201", "latency=", "srcIP="] {
        assert!(request.contains(field), "{field} is not in {request}");
    }
    line(&up, &["HTTP", "user=\"system:kube-scheduler\"", "once/binding", "resp=201"]);
    line(&up, &["Finished syncing", "controller=", "key=", "result=done", "retries=0"]);
    line(&up, &["Event occurred", "object=default/once", "reason=\"Scheduled\""]);
    line(&up, &["ContainerDied", "default/once"]);
    let log = up.log();
    assert!(!log.contains(SECRET) && !log.contains("YzBudGVudC1vZi1hLXMzY3JldA=="), "a secret is in the log");
    assert!(!log.contains('\u{1b}'), "colours are for terminals");
}

#[test]
fn without_v_nothing_is_said() {
    let up = Up::start_in(&["--nodes", "1"], &[]);
    work(&up);
    eventually("the pod to have ended", || {
        let got = send(&up, &[(Method::GET, &format!("{PODS}/once"), json!(null))]).remove(0).json();
        (got["status"]["phase"] == "Failed").then_some(())
    });
    let log = up.log();
    assert!(!["INFO", "DEBUG", "WARN", "ERROR"].iter().any(|level| log.contains(level)), "{log}");
}

#[test]
fn a_trace_in_a_pipe_is_whole_and_knows_objects_of_one_name_and_refusals() {
    let up = Up::start_in(&["--nodes", "1"], &[]);
    let name = "a-pod-with-a-name-that-is-far-too-long-for-any-column-of-a-terminal";
    let pod =
        json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
    let path = format!("{PODS}/{name}");
    let create = || (Method::POST, PODS, pod.clone());
    let answers =
        send(&up, &[create(), (Method::DELETE, path.as_str(), json!({"gracePeriodSeconds": 0})), create()]);
    assert_eq!([0, 1, 2].map(|at| answers[at].code), [201, 200, 201]);
    let [first, second] = [0, 2].map(|at| answers[at].json()["metadata"].clone());
    let trace = |arguments: &[&str]| texts(&up.kubarium(&[&["trace", "--name", "test"], arguments].concat()));
    let object = format!("pod/{name}");
    let uid = |metadata: &serde_json::Value| metadata["uid"].as_str().unwrap().to_owned();
    let revision = |metadata: &serde_json::Value| metadata["resourceVersion"].as_str().unwrap().to_owned();
    let created = |metadata| format!("created pods default/{name} at {}", revision(metadata));
    let (story, _) = trace(&[&object, "--full"]);
    assert!(story.contains(&created(&second)) && !story.contains(&created(&first)), "{story}");
    assert!(story.contains(&format!("--uid {}", uid(&first))) && !story.contains('…'), "{story}");
    let (story, _) = trace(&[&object, "--full", "--uid", &uid(&first)]);
    assert!(story.contains(&created(&first)) && !story.contains(&created(&second)), "{story}");
    let (json, _) = trace(&[&object, "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["uid"].as_str(), json["others"][0]["uid"].as_str()),
        (Some(&*uid(&second)), Some(&*uid(&first)))
    );

    let (_, said) = trace(&["pod/nobody"]);
    assert!(said.contains("nothing is recorded of pod/nobody in namespace \"default\""), "{said}");
    let (_, said) = trace(&["pods"]);
    assert!(
        said.contains("no refused request about pods that names no object")
            && said.contains("trace pods/web"),
        "{said}"
    );
    send(&up, &[(Method::POST, PODS, json!([]))]);
    let (story, _) = trace(&["pods"]);
    assert!(
        story.contains("creates pods in namespace default") && story.contains("refused with 400"),
        "{story}"
    );
    let (_, said) = trace(&["pod/nobody"]);
    assert!(said.contains("refused requests that name no object: 1 (trace pods tells them)"), "{said}");
}
