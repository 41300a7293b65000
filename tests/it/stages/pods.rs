//! kwok's stages of pods: they decide, and the kubelet keeps its hands off.

use kubarium::DeleteOptions;
use kubarium::kinds::{JOBS, PODS};
use serde_json::{Value, json};

use super::Stages;

#[tokio::test]
async fn pod_fast_plays_pods_in_place_of_the_kubelet() {
    let stages = Stages::start().await;
    stages.create_pod("before", json!({})).await;
    stages.publish("pod/fast").await;
    stages.create_pod("played", json!({})).await;
    let played = stages.pod("played").await.unwrap();
    assert_eq!(played["status"]["phase"], "Running");
    // A kubelet would know an id, and a condition more.
    let status = &played["status"]["containerStatuses"][0];
    assert_eq!((&status["ready"], &status["containerID"]), (&json!(true), &json!(null)));
    assert_eq!(played["status"]["hostIP"], "172.18.0.2");
    let before = stages.pod("before").await.unwrap();
    assert_eq!(before["status"]["phase"], "Running");
    assert_ne!(before["status"]["podIP"], played["status"]["podIP"]);
    // The kubelet says nothing of it later either.
    stages.pass(60).await;
    assert_eq!(stages.pod("played").await.unwrap()["status"], played["status"]);
    for name in ["played", "before"] {
        stages.client.delete(&PODS, "default", name, &DeleteOptions::default()).await.unwrap();
        stages.settle().await;
        assert_eq!(stages.pod(name).await, None, "{name}");
    }
}

#[tokio::test]
async fn pod_fast_completes_jobs() {
    let stages = Stages::start().await;
    stages.publish("pod/fast").await;
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]}});
    let job = json!({"metadata": {"name": "work"}, "spec": {"template": template}});
    stages.client.create(&JOBS, "default", job).await.unwrap();
    stages.pass(2).await;
    let job = stages.client.get(&JOBS, "default", "work").await.unwrap().to_value();
    assert_eq!(job["status"]["succeeded"], 1, "{job}");
}

#[tokio::test]
async fn pod_general_takes_its_time_and_says_so() {
    let stages = Stages::start().await;
    stages.publish("pod/general").await;
    let annotation = "pod-ready.stage.kwok.x-k8s.io/delay";
    let jitter = "pod-ready.stage.kwok.x-k8s.io/jitter-delay";
    let late = json!({"metadata": {"annotations": {annotation: "30s", jitter: "30s"}}});
    stages.create_pod("web", json!({})).await;
    stages.create_pod("late", late).await;
    let phase = async |name: &str| stages.pod(name).await.unwrap()["status"]["phase"].clone();
    assert_eq!(stages.pod("web").await.unwrap()["status"]["containerStatuses"], Value::Null);
    stages.pass(10).await;
    assert_eq!((phase("web").await, phase("late").await), (json!("Running"), json!("Pending")));
    assert_eq!(stages.told("web", "Created").await, ["Created container"]);
    stages.pass(30).await;
    assert_eq!(phase("late").await, "Running");
}

#[tokio::test]
async fn pod_chaos_fails_as_annotations_say() {
    let stages = Stages::start().await;
    stages.publish("pod/fast").await;
    stages.publish("pod/chaos").await;
    let prefix = "pod-container-running-failed.stage.kwok.x-k8s.io";
    let metadata = json!({
        "labels": {prefix: "true"},
        "annotations": {
            format!("{prefix}/reason"): "Tired", format!("{prefix}/exit-code"): "42",
            format!("{prefix}/delay"): "20s", format!("{prefix}/jitter-delay"): "20s",
        },
    });
    stages.create_pod("web", json!({"metadata": metadata})).await;
    assert_eq!(stages.pod("web").await.unwrap()["status"]["phase"], "Running");
    stages.pass(19).await;
    assert_eq!(stages.pod("web").await.unwrap()["status"]["phase"], "Running");
    stages.pass(2).await;
    let pod = stages.pod("web").await.unwrap();
    assert_eq!(pod["status"]["phase"], "Failed");
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("Tired"), &json!(42)));
}

#[tokio::test]
async fn a_pod_of_the_kubelet_is_taken_over_when_a_stage_matches_it() {
    let stages = Stages::start().await;
    let prefix = "pod-container-running-failed.stage.kwok.x-k8s.io";
    stages.publish("pod/chaos").await;
    stages.create_pod("web", json!({})).await;
    let running = stages.pod("web").await.unwrap();
    assert!(!running["status"]["containerStatuses"][0]["containerID"].as_str().unwrap().is_empty());
    let patch = json!({"metadata": {"labels": {prefix: "true"}}});
    stages.client.patch(&PODS, "default", "web", kubarium::PatchType::Merge, &patch).await.unwrap();
    stages.pass(5).await;
    let failed = stages.pod("web").await.unwrap();
    assert_eq!(failed["status"]["phase"], "Failed", "{failed}");
    assert_eq!(failed["status"]["podIP"], running["status"]["podIP"]);
}

#[tokio::test]
async fn annotations_say_how_containers_fail_and_probes_answer() {
    let stages = Stages::with(kubarium::Config::new()).await;
    let fails = json!({"kubarium.dev/chaos-run": "code=3, reason=Tired, message=no more, after=5s"});
    let extra = json!({"metadata": {"annotations": fails}, "spec": {"restartPolicy": "Never"}});
    stages.create_pod("fails", extra).await;
    let probe = json!({"httpGet": {"port": 80}, "periodSeconds": 1, "failureThreshold": 1});
    let containers = json!([{"name": "main", "image": "nginx", "readinessProbe": probe}]);
    let flaps = json!({"kubarium.dev/chaos-readiness": "flap 20s 10s", "kubarium.dev/chaos-fly": ""});
    let extra = json!({"metadata": {"annotations": flaps}, "spec": {"containers": containers}});
    stages.create_pod("flaps", extra).await;
    let ready =
        async || stages.pod("flaps").await.unwrap()["status"]["containerStatuses"][0]["ready"].clone();
    stages.pass(3).await;
    assert_eq!(ready().await, true);
    stages.pass(20).await;
    assert_eq!(ready().await, false);
    stages.pass(10).await;
    assert_eq!(ready().await, true);
    let pod = stages.pod("fails").await.unwrap();
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(3), &json!("Tired")));
    assert_eq!((&ended["message"], &pod["status"]["phase"]), (&json!("no more"), &json!("Failed")));
    let story = stages.cluster.flow().trace("pods", "default", "fails").render();
    assert!(story.contains("container main exited 3 (Tired) in default/fails"), "{story}");
    let told = stages.told("flaps", "InvalidChaos").await;
    assert!(told[0].contains("may be followed by run, pull, start"), "{told:?}");
}
