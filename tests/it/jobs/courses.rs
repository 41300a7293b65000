//! Jobs in their course: what their pods are like, whom they adopt, how they are suspended and deleted.

use std::time::Duration;

use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::batch::job::JOBS;
use kubarium::apis::core::pod::PODS;
use kubarium::cluster::Components;
use serde_json::{Value, json};

use crate::controllers::support::{Fixture, NAMESPACE, condition, name};

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

fn job(name: &str, spec: Value) -> Value {
    let container = json!({"name": "c", "image": "busybox", "command": ["sleep", "300"]});
    let mut spec = spec;
    spec["template"] = json!({"metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "restartPolicy": "Never"}});
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn has_pods(fixture: &Fixture, selector: &str, count: usize) -> Vec<Value> {
    fixture
        .eventually(&format!("{count} pods of {selector}"), || async {
            let pods = fixture.pods(selector).await;
            (pods.len() == count).then_some(pods)
        })
        .await
}

async fn has_status(fixture: &Fixture, job: &str, what: &str, count: i64) -> Value {
    fixture
        .eventually(&format!("{job}: {what} is {count}"), || async {
            let job = fixture.get(&JOBS, job).await?;
            (job["status"][what].as_i64().unwrap_or(0) == count).then_some(job)
        })
        .await
}

async fn end(fixture: &Fixture, pod: &Value, phase: &str) {
    let patch = json!({"status": {"phase": phase}});
    let merge = kubarium::apimachinery::options::PatchType::Merge;
    fixture.client.patch_status(&PODS, NAMESPACE, name(pod), merge, &patch).await.unwrap();
}

#[tokio::test]
async fn orphans_are_adopted_and_strays_released() {
    let fixture = Fixture::start().await;
    fixture.create(&JOBS, NAMESPACE, job("adopt", json!({"parallelism": 2, "completions": 4}))).await;
    let pods = has_pods(&fixture, "job-name=adopt", 2).await;
    let pod = name(&pods[0]);
    assert_eq!(pods[0]["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(pods[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "adopt");

    fixture.patch(&PODS, pod, json!({"metadata": {"ownerReferences": null}})).await;
    let adopted = || async {
        let pod = fixture.get(&PODS, pod).await?;
        let owner = &pod["metadata"]["ownerReferences"][0];
        let is_kept = pod["metadata"]["finalizers"] == json!([FINALIZER]);
        (owner["name"] == "adopt" && owner["controller"] == true && is_kept).then_some(())
    };
    fixture.eventually("the orphan is adopted again", adopted).await;

    fixture.patch(&PODS, pod, json!({"metadata": {"labels": null}})).await;
    let released = || async {
        let pod = fixture.get(&PODS, pod).await?;
        let metadata = &pod["metadata"];
        (metadata["ownerReferences"].is_null() && metadata["finalizers"].is_null()).then_some(())
    };
    fixture.eventually("the stray is released", released).await;
    has_pods(&fixture, "job-name=adopt", 2).await;
}

#[tokio::test]
async fn ended_pods_are_counted_once_and_let_go() {
    let fixture = Fixture::start().await;
    fixture.create(&JOBS, NAMESPACE, job("count", json!({"parallelism": 2, "completions": 3}))).await;
    let pods = has_pods(&fixture, "job-name=count", 2).await;
    let running = has_status(&fixture, "count", "active", 2).await;
    assert_eq!(running["status"]["uncountedTerminatedPods"], json!({}));
    assert_eq!((&running["status"]["ready"], &running["status"]["terminating"]), (&json!(0), &json!(0)));
    fixture.set_ready(name(&pods[0]), "True", "10.0.0.1").await;
    has_status(&fixture, "count", "ready", 1).await;
    end(&fixture, &pods[0], "Succeeded").await;
    end(&fixture, &pods[1], "Failed").await;
    has_status(&fixture, "count", "succeeded", 1).await;
    let job = has_status(&fixture, "count", "failed", 1).await;
    assert!(condition(&job, "Complete").is_null());
    let let_go = || async {
        let pods = fixture.list(&PODS, "job-name=count").await;
        let ended = pods.iter().filter(|pod| pod["status"]["phase"] != "Pending");
        let kept = ended.filter(|pod| !pod["metadata"]["finalizers"].is_null()).count();
        (kept == 0).then_some(())
    };
    fixture.eventually("ended pods have no finalizer", let_go).await;
    fixture.pass(Duration::from_secs(12)).await;
    has_pods(&fixture, "job-name=count", 4).await;
}

#[tokio::test]
async fn a_suspended_job_has_no_pods_and_starts_anew() {
    let fixture = Fixture::start_with(Components::ALL).await;
    fixture.create(&JOBS, NAMESPACE, job("pause", json!({"parallelism": 2, "completions": 2}))).await;
    let started = has_status(&fixture, "pause", "ready", 2).await["status"]["startTime"].clone();
    fixture.patch(&JOBS, "pause", json!({"spec": {"suspend": true}})).await;
    fixture.told("Suspended", "Job suspended").await;
    let gone = || async { fixture.list(&PODS, "job-name=pause").await.is_empty().then_some(()) };
    fixture.eventually("its pods are gone", gone).await;
    let paused = has_status(&fixture, "pause", "terminating", 0).await;
    assert_eq!(condition(&paused, "Suspended")["status"], "True");
    assert!(paused["status"]["startTime"].is_null() && paused["status"]["failed"].is_null());
    fixture.pass(Duration::from_secs(2)).await;
    // At rest it may be told where its pods shall go; what they do stays.
    let elsewhere = json!({"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}}}});
    fixture.patch(&JOBS, "pause", elsewhere).await;
    fixture.patch(&JOBS, "pause", json!({"spec": {"suspend": false}})).await;
    fixture.told("Resumed", "Job resumed").await;
    let resumed = has_status(&fixture, "pause", "ready", 2).await;
    let suspended = condition(&resumed, "Suspended");
    assert_eq!((&suspended["status"], &suspended["reason"]), (&json!("False"), &json!("JobResumed")));
    assert_ne!(resumed["status"]["startTime"], started);
    // Less is wanted: what is too much goes, uncounted.
    fixture.patch(&JOBS, "pause", json!({"spec": {"parallelism": 1}})).await;
    has_status(&fixture, "pause", "active", 1).await;
    assert!(has_status(&fixture, "pause", "failed", 0).await["status"]["failed"].is_null());
}

#[tokio::test]
async fn indexed_pods_know_their_index() {
    let fixture = Fixture::start_with(Components::ALL).await;
    let spec = json!({"parallelism": 2, "completions": 2, "completionMode": "Indexed"});
    fixture.create(&JOBS, NAMESPACE, job("index", spec)).await;
    let pods = has_pods(&fixture, "job-name=index,batch.kubernetes.io/job-completion-index=1", 1).await;
    assert!(name(&pods[0]).starts_with("index-1-") && name(&pods[0]).len() == "index-1-".len() + 5);
    assert_eq!(pods[0]["spec"]["hostname"], "index-1");
    let annotations = &pods[0]["metadata"]["annotations"];
    assert_eq!(annotations["batch.kubernetes.io/job-completion-index"], "1");
    assert_eq!(pods[0]["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    has_status(&fixture, "index", "ready", 2).await;
    // A pod that is deleted is replaced in its index.
    fixture.client.delete(&PODS, NAMESPACE, name(&pods[0]), &DeleteOptions::default()).await.unwrap();
    let again = || async {
        let now = fixture.pods("job-name=index,batch.kubernetes.io/job-completion-index=1").await;
        now.iter().any(|pod| name(pod) != name(&pods[0])).then_some(())
    };
    fixture.pass(Duration::from_secs(12)).await;
    fixture.eventually("another pod of the index", again).await;
    has_status(&fixture, "index", "failed", 1).await;
}

#[tokio::test]
async fn a_deleted_job_takes_its_pods_along_or_lets_them_go() {
    let fixture = Fixture::start_with(Components::ALL).await;
    for name in ["with", "without"] {
        fixture.create(&JOBS, NAMESPACE, job(name, json!({"parallelism": 2, "completions": 2}))).await;
        has_status(&fixture, name, "ready", 2).await;
    }
    fixture.delete(&JOBS, "with", "Background").await;
    let gone = || async { fixture.list(&PODS, "app=with").await.is_empty().then_some(()) };
    fixture.eventually("its pods are gone", gone).await;
    fixture.delete(&JOBS, "without", "Orphan").await;
    fixture.gone(&JOBS, "without").await;
    let free = || async {
        let pods = fixture.list(&PODS, "app=without").await;
        let is_free = |pod: &Value| {
            pod["metadata"]["finalizers"].is_null() && pod["metadata"]["ownerReferences"].is_null()
        };
        (pods.len() == 2 && pods.iter().all(is_free)).then_some(())
    };
    fixture.eventually("its pods are free", free).await;
}
