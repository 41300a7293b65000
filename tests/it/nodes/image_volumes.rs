//! Images that pods have as volumes.

use serde_json::{Value, json};

use super::{Nodes, is_ready};

fn pod_with(volumes: Value) -> Value {
    json!({
        "containers": [
            {"name": "app", "image": "nginx", "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            {"name": "beside", "image": "httpd"},
        ],
        "volumes": volumes,
    })
}

fn waiting(pod: &Value) -> &Value {
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let mut of_app = statuses.filter(|status| status["name"] == "app");
    of_app.next().map_or(&Value::Null, |status| &status["state"]["waiting"])
}

#[tokio::test]
async fn the_image_of_a_volume_is_pulled_before_containers_start() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", pod_with(json!([{"name": "data", "image": {"reference": "models:1"}}]))).await;
    nodes.pod_when("web", is_ready).await;
    let pulled = |events: &Vec<(String, String)>| {
        let of_kubelet = events.iter().filter(|(reason, _)| reason != "Scheduled");
        of_kubelet.map(|(reason, message)| format!("{reason}: {message}")).collect::<Vec<String>>()
    };
    let told = || async { Some(nodes.events("web").await).filter(|events| events.len() == 11) };
    let events = pulled(&nodes.until(told).await);
    assert_eq!(events[0], "Pulling: Pulling image \"models:1\"");
    assert!(events[1].starts_with("Pulled: Successfully pulled image \"models:1\""), "{events:?}");
    assert_eq!(events[2], "Pulling: Pulling image \"nginx\"");
    let again = json!([{"name": "data", "image": {"reference": "models:1", "pullPolicy": "IfNotPresent"}}]);
    nodes.create_pod("again", pod_with(again)).await;
    let present =
        "Pulled: Container image \"models:1\" already present on machine and can be accessed by the pod";
    let told = || async { pulled(&nodes.events("again").await).contains(&present.to_owned()).then_some(()) };
    nodes.until(told).await;
}

#[tokio::test]
async fn a_container_waits_for_the_image_of_its_volume_and_others_do_not() {
    let nodes = Nodes::start(1).await;
    let gone = json!([{"name": "data", "image": {"reference": "models:does-not-exist"}}]);
    nodes.create_pod("web", pod_with(gone)).await;
    let pod = nodes.pod_when("web", |pod| waiting(pod)["reason"] == "ErrImagePull").await;
    assert!(waiting(&pod)["message"].as_str().unwrap().contains("docker.io/library/models:does-not-exist"));
    let beside = |pod: &Value| {
        let mut statuses = pod["status"]["containerStatuses"].as_array().unwrap().iter();
        statuses.any(|status| status["name"] == "beside" && status["ready"] == true)
    };
    nodes.pod_when("web", beside).await;
    let pod = nodes.pod_when("web", |pod| waiting(pod)["reason"] == "ImagePullBackOff").await;
    let message = waiting(&pod)["message"].as_str().unwrap();
    assert!(
        message.starts_with("Back-off pulling image \"models:does-not-exist\": ErrImagePull: "),
        "{message}"
    );
    let never =
        json!([{"name": "data", "image": {"reference": "gone:does-not-exist", "pullPolicy": "Never"}}]);
    nodes.create_pod("never", pod_with(never)).await;
    let pod = nodes.pod_when("never", |pod| waiting(pod)["reason"] == "ErrImageNeverPull").await;
    let message = "Container image \"gone:does-not-exist\" is not present with pull policy of Never";
    assert_eq!(waiting(&pod)["message"], message);
    let error = ("Failed".to_owned(), "Error: ErrImageNeverPull".to_owned());
    nodes.until(|| async { nodes.events("never").await.contains(&error).then_some(()) }).await;
}
