//! The rows that do something many times: pages of hundreds, a hundred watches, services, updates, pods.

use std::time::Duration;

use axum::body::BodyDataStream;
use chrono::DateTime;
use futures::StreamExt;
use kubarium::clock::Clock;
use kubarium::cluster::Components;
use serde_json::{Value, json};

use super::*;
use crate::apiserver::{Server, request};

const TEMPLATES: &str = "/api/v1/namespaces/default/podtemplates";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn create_templates(server: &Server, count: usize) {
    for number in 0..count {
        let name = format!("template-{number:04}");
        let template = json!({"spec": {"containers": [{"name": "test", "image": "test2"}]}});
        server.create(TEMPLATES, json!({"metadata": {"name": name}, "template": template})).await;
    }
}

/// Checks a page against what was found before it; gives its token.
fn page(list: &Value, found: &mut usize, total: usize) -> String {
    let items = list["items"].as_array().unwrap();
    for item in items {
        assert_eq!(item["metadata"]["name"], format!("template-{found:04}"));
        *found += 1;
    }
    let token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    match token.is_empty() {
        true => assert!(list["metadata"]["remainingItemCount"].is_null()),
        false => assert_eq!(list["metadata"]["remainingItemCount"], total - *found),
    }
    token
}

/// Row: chunked lists - pages of one state
#[tokio::test]
async fn a_list_is_read_in_pages_of_one_state() {
    let cluster = Cluster::start(Config::new().components(Components::NONE)).await.unwrap();
    let server = Server::of(&cluster);
    create_templates(&server, 400).await;
    for _ in 0..3 {
        let (mut found, mut query, mut revision) = (0, "limit=17".to_owned(), None);
        loop {
            let list = server.get(&format!("{TEMPLATES}?{query}")).await;
            let own = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
            assert_eq!(*revision.get_or_insert_with(|| own.clone()), own);
            let token = page(&list, &mut found, 400);
            if token.is_empty() {
                break;
            }
            query = format!("limit=17&continue={token}");
        }
        assert_eq!(found, 400);
    }
    let all = server.get(&format!("{TEMPLATES}?limit=401")).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 400);
    cluster.stop().await;
}

/// Row: chunked lists - a token outlives compaction, inconsistently
#[tokio::test]
async fn a_list_goes_on_after_its_state_was_compacted() {
    let clock = Clock::stepped(DateTime::from_timestamp(1_800_000_000, 0).unwrap());
    let config = Config::new().components(Components::NONE).clock(clock.clone());
    let cluster = Cluster::start(config).await.unwrap();
    let server = Server::of(&cluster);
    create_templates(&server, 40).await;
    let mut found = 0;
    let first = server.get(&format!("{TEMPLATES}?limit=4")).await;
    let token = page(&first, &mut found, 40);
    server.create(CONFIG_MAPS, json!({"metadata": {"name": "goes-on"}})).await;
    let again = format!("GET {TEMPLATES}?limit=4&continue={token}");
    let mut expired = server.call(&again, &Value::Null).await;
    for _ in 0..40 {
        if expired.code != 200 {
            break;
        }
        clock.advance(Duration::from_secs(30));
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        expired = server.call(&again, &Value::Null).await;
    }
    let status = expired.json();
    assert_eq!((expired.code, status["reason"].as_str()), (410, Some("Expired")));
    let mut token = status["metadata"]["continue"].as_str().unwrap().to_owned();
    let mut revisions = BTreeSet::new();
    while !token.is_empty() {
        let list = server.get(&format!("{TEMPLATES}?limit=4&continue={token}")).await;
        assert!(list["items"].as_array().unwrap().len() <= 4);
        revisions.insert(list["metadata"]["resourceVersion"].clone().to_string());
        token = page(&list, &mut found, 40);
    }
    assert_eq!((found, revisions.len()), (40, 1));
    assert!(!revisions.contains(&first["metadata"]["resourceVersion"].to_string()));
    cluster.stop().await;
}

/// The events of a watch, with what is not yet a whole line.
struct Watch(BodyDataStream, Vec<u8>);

impl Watch {
    async fn start(server: &Server, revision: &str) -> Watch {
        let line =
            format!("GET {CONFIG_MAPS}?watch=true&resourceVersion={revision}&allowWatchBookmarks=true");
        let response = server.send(request(&line, &[], String::new())).await;
        assert_eq!(response.status(), 200);
        Watch(response.into_body().into_data_stream(), vec![])
    }

    /// The revision of the next object.
    async fn next(&mut self) -> String {
        loop {
            while let Some(end) = self.1.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.1.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).unwrap();
                if event["type"] != "BOOKMARK" {
                    return event["object"]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
                }
            }
            let frame = tokio::time::timeout(crate::support::PATIENCE, self.0.next()).await;
            self.1.extend_from_slice(&frame.unwrap().unwrap().unwrap());
        }
    }
}

/// Row: watchers - concurrent watches tell the same in the same order
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_from_every_revision_tell_the_same() {
    let cluster = Cluster::start(Config::new().components(Components::NONE)).await.unwrap();
    let server = Server::of(&cluster);
    let mut revision =
        server.get(CONFIG_MAPS).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let writer = Server::of(&cluster);
    // Not further ahead than watches may be behind: those that are slower are cut off.
    let (wrote, mut written) = tokio::sync::mpsc::channel(20);
    let writing = tokio::spawn(async move {
        for number in 0_usize.. {
            let name = format!("cm-{}", number / 3);
            let path = format!("{CONFIG_MAPS}/{name}");
            let body = json!({"metadata": {"name": name, "labels": {"number": number.to_string()}}});
            match number % 3 {
                0 => writer.call(&format!("POST {CONFIG_MAPS}"), &body).await,
                1 => writer.call(&format!("PUT {path}"), &body).await,
                _ => writer.call(&format!("DELETE {path}"), &Value::Null).await,
            };
            if wrote.send(()).await.is_err() {
                break;
            }
        }
    });
    let mut watches: Vec<Watch> = vec![];
    for _ in 0..100 {
        written.recv().await.expect("it writes as long as it is heard");
        watches.push(Watch::start(&server, &revision).await);
        revision = watches[0].next().await;
        for watch in &mut watches[1..] {
            assert_eq!(watch.next().await, revision);
        }
    }
    writing.abort();
    cluster.stop().await;
}

/// A step of a story outside of the stories.
async fn step(server: &Server, step: Value) {
    let step = serde_json::from_value(step).unwrap();
    Runner::new(server.service(), &[]).run(&step).await.unwrap();
}

/// Row: pods - five hundred updates, and the generation that is observed
/// Row: services - endpoints of two hundred services in time
/// Row: empty dir wrappers - pods with fifty config maps
/// Row: garbage collector - orphans the pods of a replication controller
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_of_one_kind() {
    let cluster = Cluster::start(Config::new().nodes(2)).await.unwrap();
    let server = Server::of(&cluster);
    update_a_pod_often(&server).await;
    serve_many_services(&server).await;
    mount_many_config_maps(&server).await;
    orphan_many_pods(&server).await;
    cluster.stop().await;
}

async fn update_a_pod_often(server: &Server) {
    let container =
        json!({"name": "agnhost-container", "image": "registry.k8s.io/e2e-test-images/agnhost:2.56"});
    let spec = json!({"activeDeadlineSeconds": 5000, "containers": [container]});
    server.create(PODS, json!({"metadata": {"name": "often"}, "spec": spec})).await;
    let running = json!({"phase": "Running", "conditions": {"$has": [{"type": "Ready", "status": "True"}]}});
    let path = format!("{PODS}/often");
    step(server, json!({"do": format!("GET {path}"), "eventually": true, "answer": {"status": running}}))
        .await;
    for left in (4501..5000).rev() {
        let update = json!({"spec": {"activeDeadlineSeconds": left}});
        step(server, json!({"do": format!("PUT {path}"), "update": update})).await;
    }
    let answer = json!({"metadata": {"generation": 500}, "status": {"observedGeneration": 500}});
    step(server, json!({"do": format!("GET {path}"), "eventually": true, "answer": answer})).await;
}

async fn serve_many_services(server: &Server) {
    let pause = json!({"name": "svc-latency", "image": "registry.k8s.io/pause:3.10"});
    let template = json!({"metadata": {"labels": {"name": "svc-latency"}}, "spec": {"containers": [pause]}});
    let spec =
        json!({"replicas": 1, "selector": {"matchLabels": {"name": "svc-latency"}}, "template": template});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    server.create(deployments, json!({"metadata": {"name": "svc-latency"}, "spec": spec})).await;
    let deployment = format!("GET {deployments}/svc-latency");
    step(
        server,
        json!({"do": deployment, "eventually": true, "answer": {"status": {"availableReplicas": 1}}}),
    )
    .await;
    for _ in 0..200 {
        let spec = json!({"ports": [{"port": 80, "protocol": "TCP"}], "selector": {"name": "svc-latency"}});
        let body =
            json!({"metadata": {"generateName": "latency-svc-", "labels": {"many": "yes"}}, "spec": spec});
        server.create("/api/v1/namespaces/default/services", body).await;
    }
    let start = std::time::Instant::now();
    let selector = "labelSelector=many%3Dyes,endpointslice.kubernetes.io/managed-by";
    loop {
        let slices = server
            .get(&format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?{selector}"))
            .await;
        let slices = slices["items"].as_array().unwrap();
        let is_ready = |slice: &&Value| slice["endpoints"][0]["conditions"]["ready"] == true;
        if slices.iter().filter(is_ready).count() == 200 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn mount_many_config_maps(server: &Server) {
    let (mut volumes, mut mounts) = (vec![], vec![]);
    for number in 0..50 {
        let name = format!("racey-configmap-{number}");
        server.create(CONFIG_MAPS, json!({"metadata": {"name": name}, "data": {"data-1": "value-1"}})).await;
        let items = json!([{"key": "data-1", "path": "data-1"}]);
        volumes.push(json!({"name": name, "configMap": {"name": name, "items": items}}));
        mounts.push(json!({"name": name, "mountPath": format!("/etc/config-{number}")}));
    }
    let container =
        json!({"name": "test-container", "image": "registry.k8s.io/pause:3.10", "volumeMounts": mounts});
    let spec = json!({"containers": [container], "volumes": volumes, "dnsPolicy": "Default"});
    let template = json!({"metadata": {"labels": {"name": "wrapped"}}, "spec": spec});
    let spec = json!({"replicas": 5, "selector": {"name": "wrapped"}, "template": template});
    replicate(server, "wrapped", spec, 5).await;
}

async fn orphan_many_pods(server: &Server) {
    let container = json!({"name": "nginx", "image": "registry.k8s.io/e2e-test-images/nginx:1.14-4"});
    let template = json!({"metadata": {"labels": {"gc": "orphan"}}, "spec": {"containers": [container]}});
    let spec = json!({"replicas": 100, "selector": {"gc": "orphan"}, "template": template});
    let path = replicate(server, "orphaning", spec, 100).await;
    let uid = server.get(&path).await["metadata"]["uid"].clone();
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan",
        "preconditions": {"uid": uid}});
    step(server, json!({"do": format!("DELETE {path}"), "body": options})).await;
    step(server, json!({"do": format!("GET {path}"), "code": 404, "eventually": true})).await;
    let pods = format!("GET {PODS}?labelSelector=gc%3Dorphan");
    step(server, json!({"do": pods, "steadily": true, "answer": {"items": {"$count": 100}}})).await;
    let pods = server.get(&format!("{PODS}?labelSelector=gc%3Dorphan")).await;
    let mut owners = pods["items"].as_array().unwrap().iter().map(|pod| &pod["metadata"]["ownerReferences"]);
    assert!(owners.all(Value::is_null));
}

/// A replication controller whose pods all run; its path.
async fn replicate(server: &Server, name: &str, spec: Value, count: usize) -> String {
    let collection = "/api/v1/namespaces/default/replicationcontrollers";
    server.create(collection, json!({"metadata": {"name": name}, "spec": spec})).await;
    let path = format!("{collection}/{name}");
    let answer = json!({"status": {"replicas": count, "readyReplicas": count, "availableReplicas": count}});
    step(server, json!({"do": format!("GET {path}"), "eventually": true, "answer": answer})).await;
    path
}
