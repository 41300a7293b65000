//! Pods that want other resources while they run.

use kubarium::apimachinery::options::PatchType;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::kubelet::node_config::NodeConfig;
use serde_json::{Value, json};

use super::{Nodes, condition, is_ready};

/// A web server that asks for this.
fn asking(requests: &Value, resize_policy: Value) -> Value {
    let resources = json!({"requests": requests});
    json!({"containers": [{"name": "app", "image": "nginx", "resources": resources, "resizePolicy": resize_policy}]})
}

impl Nodes {
    /// As `kubectl edit --subresource resize`.
    async fn resize(&self, pod: &str, requests: Value) {
        self.resize_at("/spec/containers/0/resources/requests", pod, requests).await;
    }

    /// Of the requests there.
    async fn resize_at(&self, pointer: &str, pod: &str, requests: Value) {
        let of_pod = || async {
            let mut wanted = self.client.get(&PODS, "default", pod).await.unwrap().to_value();
            let own = wanted.pointer_mut(pointer).unwrap();
            requests.as_object().unwrap().iter().for_each(|(name, amount)| own[name] = amount.clone());
            // Its status may have changed meanwhile.
            self.client.update_subresource(&PODS, "default", pod, "resize", wanted).await.ok()
        };
        self.until(of_pod).await;
    }

    async fn told(&self, pod: &str, reason: &str) -> String {
        let of_reason = || async {
            let events = self.events(pod).await;
            events.into_iter().find(|(own, _)| own == reason).map(|(_, message)| message)
        };
        self.until(of_reason).await
    }
}

fn status(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

fn has_cpu(amount: &'static str) -> impl Fn(&Value) -> bool {
    move |pod| {
        status(pod)["allocatedResources"]["cpu"] == amount
            && condition(pod, "PodResizePending").is_null()
            && condition(pod, "PodResizeInProgress").is_null()
    }
}

#[tokio::test]
async fn a_container_has_more_without_being_restarted() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", asking(&json!({"cpu": "1", "memory": "1Gi"}), Value::Null)).await;
    let before = nodes.pod_when("web", is_ready).await;
    nodes.resize("web", json!({"cpu": "2"})).await;
    let after = nodes.pod_when("web", has_cpu("2")).await;
    assert_eq!(status(&after)["resources"], json!({"requests": {"cpu": "2", "memory": "1Gi"}}));
    assert_eq!(status(&after)["restartCount"], 0);
    assert_eq!(status(&after)["containerID"], status(&before)["containerID"]);
    let wanted = r#"{"containers":[{"name":"app","resources":{"requests":{"cpu":"2","memory":"1Gi"}}}],"generation":2}"#;
    assert_eq!(nodes.told("web", "ResizeStarted").await, format!("Pod resize started: {wanted}"));
    assert_eq!(nodes.told("web", "ResizeCompleted").await, format!("Pod resize completed: {wanted}"));
}

#[tokio::test]
async fn a_whole_pod_has_more_without_being_restarted() {
    let nodes = Nodes::start(1).await;
    let container = json!({"name": "app", "image": "nginx"});
    let spec = json!({"containers": [container], "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}});
    nodes.create_pod("web", spec).await;
    nodes.pod_when("web", is_ready).await;
    nodes.resize_at("/spec/resources/requests", "web", json!({"cpu": "1500m"})).await;
    let given = |pod: &Value| {
        pod["status"]["allocatedResources"]["cpu"] == "1500m"
            && pod["status"]["observedGeneration"] == 2
            && condition(pod, "PodResizeInProgress").is_null()
    };
    let pod = nodes.pod_when("web", given).await;
    assert_eq!(pod["status"]["resources"], json!({"requests": {"cpu": "1500m", "memory": "1Gi"}}));
    assert_eq!(status(&pod)["restartCount"], 0);
    // What its node never has is not given, and the pod keeps what it has.
    let capacity = json!({"status": {"allocatable": {"cpu": "100"}}});
    nodes.client.patch_status(&NODES, "", "node-1", PatchType::Merge, &capacity).await.unwrap();
    nodes.resize_at("/spec/resources/requests", "web", json!({"cpu": "80"})).await;
    let pod = nodes.pod_when("web", |pod| condition(pod, "PodResizePending")["reason"] == "Infeasible").await;
    assert_eq!(pod["status"]["allocatedResources"]["cpu"], "1500m");
}

#[tokio::test]
async fn a_container_that_wants_it_is_restarted_for_that() {
    let nodes = Nodes::start(1).await;
    let policy = json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    nodes.create_pod("web", asking(&json!({"cpu": "1", "memory": "1Gi"}), policy)).await;
    nodes.pod_when("web", is_ready).await;
    nodes.resize("web", json!({"cpu": "2"})).await;
    let more = nodes.pod_when("web", has_cpu("2")).await;
    assert_eq!(status(&more)["restartCount"], 0);
    nodes.resize("web", json!({"memory": "2Gi"})).await;
    let again = |pod: &Value| status(pod)["restartCount"] == 1 && is_ready(pod);
    let again = nodes.pod_when("web", again).await;
    assert_eq!(status(&again)["allocatedResources"]["memory"], "2Gi");
    assert_eq!(nodes.told("web", "Killing").await, "Container app resize requires restart");
}

#[tokio::test]
async fn what_a_node_never_has_is_not_given() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", asking(&json!({"cpu": "1"}), Value::Null)).await;
    nodes.pod_when("web", is_ready).await;
    // Its Node says more than there is, for as long as its kubelet does not notice.
    let more = json!({"status": {"allocatable": {"cpu": "100"}}});
    nodes.client.patch_status(&NODES, "", "node-1", PatchType::Merge, &more).await.unwrap();
    nodes.resize("web", json!({"cpu": "80"})).await;
    let pod = nodes.pod_when("web", |pod| !condition(pod, "PodResizePending").is_null()).await;
    let why = "Node didn't have enough capacity: cpu, requested: 80000, capacity: 8000";
    let pending = condition(&pod, "PodResizePending");
    assert_eq!(
        (&pending["reason"], &pending["message"], &pending["status"]),
        (&json!("Infeasible"), &json!(why), &json!("True"))
    );
    assert_eq!(status(&pod)["allocatedResources"]["cpu"], "1");
    assert_eq!(status(&pod)["resources"]["requests"]["cpu"], "1");
    assert!(nodes.told("web", "ResizeInfeasible").await.ends_with(&format!(r#""error":"{why}"}}"#)));
    nodes.resize("web", json!({"cpu": "1"})).await;
    nodes.pod_when("web", has_cpu("1")).await;
}

#[tokio::test]
async fn what_others_have_is_waited_for() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("other", asking(&json!({"cpu": "6"}), Value::Null)).await;
    nodes.create_pod("web", asking(&json!({"cpu": "1"}), Value::Null)).await;
    nodes.pod_when("other", is_ready).await;
    nodes.pod_when("web", is_ready).await;
    nodes.resize("web", json!({"cpu": "4"})).await;
    let deferred = |pod: &Value| condition(pod, "PodResizePending")["reason"] == "Deferred";
    let pod = nodes.pod_when("web", deferred).await;
    let why = "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000";
    assert_eq!(condition(&pod, "PodResizePending")["message"], why);
    assert_eq!(status(&pod)["allocatedResources"]["cpu"], "1");
    // A kubelet that comes back knows what the pod has, and goes on waiting.
    nodes.stop_kubelet("node-1");
    nodes.start_kubelet(NodeConfig::numbered(1)).await;
    nodes.delete_pod("other").await;
    let pod = nodes.pod_when("web", has_cpu("4")).await;
    assert_eq!(status(&pod)["restartCount"], 0);
}

#[tokio::test]
async fn memory_that_is_in_use_is_not_taken_away() {
    let nodes = Nodes::start(1).await;
    let memory = |amount: &str| json!({"requests": {"memory": amount}, "limits": {"memory": amount}});
    let spec = json!({"containers": [{"name": "app", "image": "nginx"}], "resources": memory("64Mi")});
    nodes.create_pod("web", spec).await;
    nodes.pod_when("web", is_ready).await;
    let resize = async |amount: &str| {
        let wanted = json!({"spec": {"resources": memory(amount)}});
        let web = ["default", "web", "resize"];
        nodes.client.patch_as(&PODS, web, PatchType::Merge, &wanted, "test").await.unwrap();
    };
    resize("10Ki").await;
    let in_progress = |pod: &Value| condition(pod, "PodResizeInProgress").clone();
    let pod = nodes.pod_when("web", |pod| in_progress(pod)["reason"] == "Error").await;
    let limit = "memory limit (10240) below current usage (8388608)";
    let why = format!(
        "cannot decrease memory limits: [attempting to set pod {limit}, attempting to set container \"app\" {limit}]"
    );
    assert_eq!(in_progress(&pod)["message"], why);
    assert_eq!(pod["status"]["resources"], memory("64Mi"));
    assert_eq!(pod["status"]["allocatedResources"], json!({"memory": "10Ki"}));
    nodes.told("web", "ResizeError").await;
    resize("32Mi").await;
    let pod = nodes.pod_when("web", |pod| in_progress(pod).is_null()).await;
    assert_eq!(pod["status"]["resources"], memory("32Mi"));
    nodes.told("web", "ResizeCompleted").await;
}

#[tokio::test]
async fn a_pod_that_waits_for_room_is_tried_again_when_it_wants_less() {
    let nodes = Nodes::start(1).await;
    let all = nodes.client.get(&NODES, "", "node-1").await.unwrap().to_value();
    let all = &all["status"]["allocatable"]["cpu"];
    nodes.create_pod("first", asking(&json!({"cpu": "1"}), Value::Null)).await;
    nodes.pod_when("first", is_ready).await;
    nodes.create_pod("second", asking(&json!({"cpu": all}), Value::Null)).await;
    let waits = |pod: &Value| condition(pod, "PodScheduled")["reason"] == "Unschedulable";
    nodes.pod_when("second", waits).await;
    nodes.resize("second", json!({"cpu": "1"})).await;
    nodes.pod_when("second", is_ready).await;
}
