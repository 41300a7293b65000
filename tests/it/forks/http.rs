//! Forks and snapshots over HTTP.

use axum::body::Body;
use http_body_util::BodyExt;
use kubarium::{Cluster, Config, Snapshot};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{bare, put};
use crate::handles::ask;
use crate::support::wire::Target;

async fn map(target: &Target, name: &str) -> u16 {
    let path = format!("/api/v1/namespaces/default/configmaps/{name}");
    target.http1().await.unwrap().get(&path).await.unwrap().code
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_are_made_listed_reached_and_ended() {
    let parent = Cluster::start(bare()).await.unwrap();
    let first = put(&parent, "a", "1").await;
    put(&parent, "b", "2").await;
    let forks = async |method: &str, path: &str, body: Value| {
        ask(&parent, "", method, &format!("/kubarium/v1/forks{path}"), body).await
    };
    let wanted = json!({"name": "old", "resourceVersion": first.to_string()});
    let (code, old) = forks("POST", "", wanted).await;
    assert_eq!((code, &old["name"]), (200, &json!("old")), "{old}");
    let (_, new) = forks("POST", "", Value::Null).await;
    assert_eq!(new["name"], "fork-1", "{new}");
    let folder = tempfile::tempdir().unwrap();
    let target = |fork: &Value| {
        let path = folder.path().join(fork["name"].as_str().unwrap());
        std::fs::write(&path, fork["kubeconfig"].as_str().unwrap()).unwrap();
        Target::of_kubeconfig(&path)
    };
    let (of_old, of_new) = (target(&old), target(&new));
    assert_eq!((map(&of_old, "a").await, map(&of_old, "b").await), (200, 404));
    assert_eq!((map(&of_new, "a").await, map(&of_new, "b").await), (200, 200));
    let (_, list) = forks("GET", "", Value::Null).await;
    assert_eq!(list["forks"].as_array().unwrap().len(), 2, "{list}");
    assert_eq!(forks("DELETE", "/old", Value::Null).await.0, 200);
    assert!(of_old.http1().await.is_err(), "its port is closed");
    for (method, path, body, code) in [
        ("DELETE", "/old", Value::Null, 404),
        ("POST", "", json!({"name": "fork-1"}), 409),
        ("POST", "", json!({"name": "A B"}), 400),
        ("POST", "", json!({"resourceVersion": "x"}), 400),
        ("POST", "", json!({"resourceVersion": "99999"}), 400),
        ("POST", "", json!({"resourceVersion": "1"}), 400),
        ("POST", "", json!({"unknown": 1}), 400),
    ] {
        let (answered, status) = forks(method, path, body.clone()).await;
        assert_eq!((answered, status["kind"].as_str()), (code, Some("Status")), "{body} {status}");
    }
    parent.stop().await;
    assert!(of_new.http1().await.is_err(), "forks end with their parent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_forks_are_kept_and_no_more() {
    let parent = Cluster::start(bare()).await.unwrap();
    for _ in 0..100 {
        let (code, made) = ask(&parent, "", "POST", "/kubarium/v1/forks", Value::Null).await;
        assert_eq!(code, 200, "{made}");
    }
    let (code, status) = ask(&parent, "", "POST", "/kubarium/v1/forks", Value::Null).await;
    assert_eq!((code, status["reason"].as_str()), (429, Some("TooManyRequests")), "{status}");
    assert_eq!(ask(&parent, "", "DELETE", "/kubarium/v1/forks/fork-7", Value::Null).await.0, 200);
    let (_, made) = ask(&parent, "", "POST", "/kubarium/v1/forks", Value::Null).await;
    assert_eq!(made["name"], "fork-7");
    parent.stop().await;
}

/// Whoever had begun to ask when it began to stop.
#[tokio::test]
async fn a_cluster_that_is_stopping_is_forked_no_more() {
    let parent = Cluster::start(bare()).await.unwrap();
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let body = Body::from_stream(futures::stream::once(async move {
        let _ = finished.await;
        Ok::<_, std::convert::Infallible>("{}")
    }));
    let request = http::Request::post("/kubarium/v1/forks").body(body).unwrap();
    let mut asked = Box::pin(parent.service().oneshot(request));
    for _ in 0..100 {
        assert!(futures::poll!(&mut asked).is_pending(), "it waits for its body");
        tokio::task::yield_now().await;
    }
    parent.stop().await;
    finish.send(()).unwrap();
    let response = asked.await.unwrap();
    assert_eq!(response.status(), 503);
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(status["reason"], "ServiceUnavailable");
    let words = "the cluster is stopping: it cannot be forked any more";
    assert!(status["message"].as_str().unwrap().contains(words), "{status}");
}

#[tokio::test]
async fn what_is_different_from_a_snapshot_is_told() {
    let cluster = Cluster::start(bare()).await.unwrap();
    put(&cluster, "a", "1").await;
    let before = cluster.snapshot().unwrap();
    put(&cluster, "b", "2").await;
    let diff = async |body: Vec<u8>, query: &str| {
        let request =
            http::Request::post(format!("/kubarium/v1/diff{query}")).body(Body::from(body)).unwrap();
        let response = cluster.service().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let (code, told) = diff(before.encode(), "").await;
    let added = json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "b"}]);
    assert_eq!((code, told), (200, json!({"added": added, "removed": [], "changed": []})));
    let same = before.diff(&cluster.snapshot().unwrap(), false).await.unwrap();
    assert_eq!(serde_json::to_value(same).unwrap()["added"], added);
    let mut cut = before.encode();
    cut.pop();
    let (code, told) = diff(cut, "").await;
    assert_eq!((code, told["kind"].as_str()), (400, Some("Status")), "{told}");
    assert!(told["message"].as_str().unwrap().contains("cut short"), "{told}");
    assert_eq!(diff(before.encode(), "?all=x").await.0, 400);
    cluster.stop().await;
}

#[tokio::test]
async fn a_snapshot_and_an_export_are_downloaded() {
    let parent = Cluster::start(bare()).await.unwrap();
    put(&parent, "a", "1").await;
    let download = async |path: &str| {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let response = parent.service().oneshot(request).await.unwrap();
        (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
    };
    let (code, bytes) = download("/kubarium/v1/snapshot").await;
    assert_eq!(code, 200);
    let snapshot = Snapshot::decode(bytes, "the answer").unwrap();
    let config = Config::new().components(kubarium::Components::NONE).snapshot(snapshot);
    let copy = Cluster::start(config).await.unwrap();
    assert_eq!(super::text(&copy, "a").await.as_deref(), Some("1"));
    let (_, without) = download("/kubarium/v1/snapshot?keys=false").await;
    assert!(!without.windows(11).any(|part| part == b"PRIVATE KEY"), "the keys are left out");
    let (code, yaml) = download("/kubarium/v1/export").await;
    let yaml = String::from_utf8(yaml.to_vec()).unwrap();
    assert!(code == 200 && yaml.contains("name: a\n") && !yaml.contains("kube-system"), "{yaml}");
    assert_eq!(download("/kubarium/v1/export?all=x").await.0, 400);
    copy.stop().await;
    parent.stop().await;
}
