//! StatefulSets: pods with names, in order. The tests play scheduler and kubelet.

use kubarium::apimachinery::feature_gates::FeatureGates;
use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::apps::controller_revision::CONTROLLER_REVISIONS;
use kubarium::apis::apps::stateful_set::STATEFUL_SETS;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::core::pod::PODS;
use kubarium::cluster::{Components, Config};
use serde_json::{Value, json};

use super::{image, label, name};
use crate::controllers::support::{Fixture, NAMESPACE};

fn stateful_set(replicas: i64, change: Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}});
    let mut spec = json!({"replicas": replicas, "serviceName": "www", "template": template,
        "selector": {"matchLabels": {"app": "web"}}});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": "web"}, "spec": spec})
}

async fn names(fixture: &Fixture) -> Vec<String> {
    let mut pods = fixture.list(&PODS, "app=web").await;
    pods.sort_by_key(|pod| name(pod).to_owned());
    pods.iter().map(|pod| name(pod).to_owned()).collect()
}

/// Until there are these pods, and still a while later.
async fn has(fixture: &Fixture, expected: &[&str]) {
    let look = || async { (names(fixture).await == expected).then_some(()) };
    fixture.eventually(&format!("{expected:?}"), look).await;
    fixture.settle(10).await;
    assert_eq!(names(fixture).await, expected);
}

/// What a kubelet does when a pod was deleted.
async fn end(fixture: &Fixture, pod: &str) {
    let is_deleting = || async {
        let pod = fixture.get(&PODS, pod).await?;
        (!pod["metadata"]["deletionTimestamp"].is_null()).then_some(())
    };
    fixture.eventually(&format!("{pod} is being deleted"), is_deleting).await;
    remove(fixture, pod).await;
}

async fn remove(fixture: &Fixture, pod: &str) {
    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    fixture.client.delete(&PODS, NAMESPACE, pod, &now).await.unwrap();
}

/// A cluster with a node, on which deleted pods stay until a kubelet lets them go.
async fn start() -> Fixture {
    let fixture = Fixture::start().await;
    fixture.create(&NODES, "", json!({"metadata": {"name": "n"}})).await;
    fixture
}

async fn bind(fixture: &Fixture, pod: &str) {
    let binding = json!({"metadata": {"name": pod}, "target": {"kind": "Node", "name": "n"}});
    // It may be gone, or bound already.
    let _ = fixture.client.create_subresource(&PODS, NAMESPACE, pod, "binding", binding).await;
}

async fn ready(fixture: &Fixture, pod: &str) {
    fixture.exists(&PODS, pod).await;
    bind(fixture, pod).await;
    fixture.set_ready(pod, "True", "10.0.0.1").await;
}

/// What scheduler and kubelets do in time.
async fn run_pods(fixture: &Fixture) {
    for pod in fixture.pods("app=web").await {
        if pod["spec"]["nodeName"].is_null() {
            bind(fixture, name(&pod)).await;
        }
    }
    fixture.run_pods("app=web").await;
}

/// The set, once it has observed its generation and its status has these members.
async fn when(fixture: &Fixture, expected: Value) -> Value {
    fixture
        .eventually(&format!("status {expected}"), || async {
            let set = fixture.get(&STATEFUL_SETS, "web").await?;
            let status = &set["status"];
            let fits = expected.as_object().unwrap().iter().all(|(key, value)| match value.as_i64() {
                Some(count) => status[key].as_i64().unwrap_or(0) == count,
                None => status[key] == *value,
            });
            (fits && status["observedGeneration"] == set["metadata"]["generation"]).then_some(set)
        })
        .await
}

/// All pods run, and those that go are gone, until the set has arrived.
async fn settled(fixture: &Fixture) -> Value {
    fixture
        .eventually("the set has arrived", || async {
            run_pods(fixture).await;
            let set = fixture.get(&STATEFUL_SETS, "web").await?;
            let status = &set["status"];
            let is_observed = status["observedGeneration"] == set["metadata"]["generation"];
            let has = |count: &str| status[count].as_i64().unwrap_or(0) == set["spec"]["replicas"];
            let is_done = ["replicas", "availableReplicas", "updatedReplicas"].into_iter().all(has);
            (is_observed && is_done && status["currentRevision"] == status["updateRevision"])
                .then(|| set.clone())
        })
        .await
}

async fn revisions_of_pods(fixture: &Fixture) -> Vec<String> {
    let mut pods = fixture.list(&PODS, "app=web").await;
    pods.sort_by_key(|pod| name(pod).to_owned());
    pods.iter().map(|pod| label(pod, "controller-revision-hash").to_owned()).collect()
}

#[tokio::test]
async fn pods_come_and_go_in_order() {
    let fixture = start().await;
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(3, json!({}))).await;
    has(&fixture, &["web-0"]).await;
    let pod = fixture.get(&PODS, "web-0").await.unwrap();
    assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&json!("web-0"), &json!("www")));
    assert_eq!(label(&pod, "statefulset.kubernetes.io/pod-name"), "web-0");
    assert_eq!(label(&pod, "apps.kubernetes.io/pod-index"), "0");
    assert_eq!(pod["metadata"]["generateName"], "web-");
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "StatefulSet");
    let set = when(&fixture, json!({"replicas": 1, "readyReplicas": 0, "availableReplicas": 0})).await;
    let revision = set["status"]["updateRevision"].as_str().unwrap();
    assert_eq!(label(&pod, "controller-revision-hash"), revision);
    assert_eq!(set["status"]["currentRevision"], revision);
    assert_eq!(set["status"]["collisionCount"], 0);
    let kept = fixture.get(&CONTROLLER_REVISIONS, revision).await.unwrap();
    assert_eq!(revision, format!("web-{}", label(&kept, "controller.kubernetes.io/hash")));
    fixture.told("SuccessfulCreate", "create Pod web-0 in StatefulSet web successful").await;

    ready(&fixture, "web-0").await;
    has(&fixture, &["web-0", "web-1"]).await;
    ready(&fixture, "web-1").await;
    has(&fixture, &["web-0", "web-1", "web-2"]).await;
    ready(&fixture, "web-2").await;
    when(&fixture, json!({"replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3}))
        .await;

    fixture.patch(&STATEFUL_SETS, "web", json!({"spec": {"replicas": 1}})).await;
    end(&fixture, "web-2").await;
    fixture.told("SuccessfulDelete", "delete Pod web-2 in StatefulSet web successful").await;
    // While another is not ready, nothing goes.
    fixture.set_ready("web-0", "False", "10.0.0.1").await;
    fixture.settle(10).await;
    assert_eq!(names(&fixture).await, ["web-0", "web-1"]);
    ready(&fixture, "web-0").await;
    end(&fixture, "web-1").await;
    has(&fixture, &["web-0"]).await;

    // A pod that ended, however, is replaced under its name.
    let before = fixture.get(&PODS, "web-0").await.unwrap();
    let failed = json!({"status": {"phase": "Failed", "reason": "Evicted"}});
    let patch = kubarium::apimachinery::options::PatchType::Merge;
    fixture.client.patch_status(&PODS, NAMESPACE, "web-0", patch, &failed).await.unwrap();
    let replaced = || async {
        let pod = fixture.get(&PODS, "web-0").await;
        if pod.as_ref().is_some_and(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
            remove(&fixture, "web-0").await;
        }
        pod.filter(|pod| pod["metadata"]["uid"] != before["metadata"]["uid"])
    };
    fixture.eventually("a new web-0", replaced).await;
}

#[tokio::test]
async fn pods_may_come_and_go_at_once_and_begin_anywhere() {
    let fixture = Fixture::start().await;
    let change = json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}, "minReadySeconds": 10});
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(3, change)).await;
    has(&fixture, &["web-5", "web-6", "web-7"]).await;
    for pod in ["web-5", "web-6", "web-7"] {
        ready(&fixture, pod).await;
    }
    // Ready first, available when they have been so for a while.
    let set = when(&fixture, json!({"readyReplicas": 3})).await;
    assert_eq!(set["status"]["availableReplicas"], 0);
    when(&fixture, json!({"availableReplicas": 3})).await;
    fixture.patch(&STATEFUL_SETS, "web", json!({"spec": {"replicas": 2, "ordinals": {"start": 6}}})).await;
    end(&fixture, "web-5").await;
    has(&fixture, &["web-6", "web-7"]).await;
    fixture.patch(&STATEFUL_SETS, "web", json!({"spec": {"replicas": 0}})).await;
    end(&fixture, "web-6").await;
    end(&fixture, "web-7").await;
    has(&fixture, &[]).await;
}

#[tokio::test]
async fn canaries_go_before_phases() {
    let fixture = Fixture::start().await;
    let rolling = |partition: i64| json!({"updateStrategy": {"rollingUpdate": {"partition": partition}}});
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(3, rolling(3))).await;
    let first = settled(&fixture).await["status"]["currentRevision"].as_str().unwrap().to_owned();
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:2")).await;
    let set = when(&fixture, json!({"updatedReplicas": 0, "currentReplicas": 3})).await;
    let second = set["status"]["updateRevision"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    fixture.settle(10).await;
    assert_eq!(revisions_of_pods(&fixture).await, [first.clone(), first.clone(), first.clone()]);

    fixture.patch(&STATEFUL_SETS, "web", json!({"spec": rolling(2)})).await;
    end(&fixture, "web-2").await;
    ready(&fixture, "web-2").await;
    let set = when(&fixture, json!({"updatedReplicas": 1, "currentReplicas": 2, "readyReplicas": 3})).await;
    assert_eq!(set["status"]["currentRevision"], *first);
    assert_eq!(revisions_of_pods(&fixture).await, [first.clone(), first.clone(), second.clone()]);
    // Deleted pods come back as they were: below the partition of the old revision, above of the new.
    for pod in ["web-0", "web-2"] {
        remove(&fixture, pod).await;
        ready(&fixture, pod).await;
    }
    assert_eq!(revisions_of_pods(&fixture).await, [first.clone(), first.clone(), second.clone()]);

    fixture.patch(&STATEFUL_SETS, "web", json!({"spec": rolling(0)})).await;
    end(&fixture, "web-1").await;
    has(&fixture, &["web-0", "web-1", "web-2"]).await;
    assert_eq!(revisions_of_pods(&fixture).await, [first, second.clone(), second.clone()]);
    let set = settled(&fixture).await;
    assert_eq!(
        (&set["status"]["currentRevision"], &set["status"]["currentReplicas"]),
        (&json!(second), &json!(3))
    );
}

fn two_at_once() -> Value {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    json!({"podManagementPolicy": "Parallel", "updateStrategy": strategy})
}

/// `maxUnavailable` is behind a gate that is off.
#[tokio::test]
async fn one_pod_is_replaced_after_the_other() {
    let fixture = Fixture::start().await;
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(4, two_at_once())).await;
    let set = settled(&fixture).await;
    assert_eq!(set["spec"]["updateStrategy"]["rollingUpdate"], json!({"partition": 0}));
    fixture.patch(&STATEFUL_SETS, "web", image("broken")).await;
    end(&fixture, "web-3").await;
    has(&fixture, &["web-0", "web-1", "web-2", "web-3"]).await;
    let pods = fixture.list(&PODS, "").await;
    assert!(pods.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_null()));
}

#[tokio::test]
async fn several_pods_may_be_replaced_at_once_or_none() {
    let mut config = Config::new().components(Components::NONE.controllers(true));
    config.apiserver.features.gates = FeatureGates::parse("MaxUnavailableStatefulSet=true").unwrap();
    let fixture = Fixture::start_configured(config).await;
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(4, two_at_once())).await;
    settled(&fixture).await;
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:2")).await;
    end(&fixture, "web-3").await;
    end(&fixture, "web-2").await;
    has(&fixture, &["web-0", "web-1", "web-2", "web-3"]).await;
    let going = fixture.list(&PODS, "").await;
    assert!(going.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_null()));
    settled(&fixture).await;
    // A revision that never gets ready does not hold up the next one.
    fixture.patch(&STATEFUL_SETS, "web", image("broken")).await;
    end(&fixture, "web-3").await;
    end(&fixture, "web-2").await;
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:3")).await;
    settled(&fixture).await;

    let on_delete = json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}});
    fixture.patch(&STATEFUL_SETS, "web", on_delete).await;
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:4")).await;
    when(&fixture, json!({"updatedReplicas": 0, "replicas": 4})).await;
    remove(&fixture, "web-1").await;
    ready(&fixture, "web-1").await;
    when(&fixture, json!({"updatedReplicas": 1, "readyReplicas": 4})).await;
}

#[tokio::test]
async fn revisions_come_back_and_are_forgotten() {
    let fixture = start().await;
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(1, json!({"revisionHistoryLimit": 1}))).await;
    let first = settled(&fixture).await["status"]["currentRevision"].clone();
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:2")).await;
    let second = settled(&fixture).await["status"]["currentRevision"].clone();
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:1")).await;
    assert_eq!(settled(&fixture).await["status"]["currentRevision"], first);
    let number = |revision: Value| {
        let fixture = &fixture;
        async move {
            fixture.get(&CONTROLLER_REVISIONS, revision.as_str().unwrap()).await.unwrap()["revision"].clone()
        }
    };
    assert_eq!((number(first.clone()).await, number(second.clone()).await), (json!(3), json!(2)));
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:3")).await;
    settled(&fixture).await;
    fixture.gone(&CONTROLLER_REVISIONS, second.as_str().unwrap()).await;
    assert!(fixture.get(&CONTROLLER_REVISIONS, first.as_str().unwrap()).await.is_some());
}

/// As another version left it: with `creationTimestamp: null`, and without what this one defaults.
#[tokio::test]
async fn a_revision_that_means_the_same_restarts_nothing() {
    let fixture = start().await;
    let template = json!({"$patch": "replace", "metadata": {"creationTimestamp": null, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}});
    let revision = json!({"metadata": {"name": "web-older", "labels": {"app": "web"}}, "revision": 1,
        "data": {"spec": {"template": template}}});
    fixture.create(&CONTROLLER_REVISIONS, NAMESPACE, revision).await;
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(1, json!({}))).await;
    assert_eq!(settled(&fixture).await["status"]["updateRevision"], "web-older");
    assert_eq!(fixture.list(&CONTROLLER_REVISIONS, "").await.len(), 1);
    fixture.patch(&STATEFUL_SETS, "web", image("nginx:2")).await;
    assert_ne!(settled(&fixture).await["status"]["updateRevision"], "web-older");
    assert_eq!(fixture.list(&CONTROLLER_REVISIONS, "").await.len(), 2);
}

#[tokio::test]
async fn pods_are_adopted_by_name_and_told_who_they_are() {
    let fixture = Fixture::start().await;
    let orphan = |name: &str| {
        json!({"metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}})
    };
    for name in ["web-0", "web-x"] {
        fixture.create(&PODS, NAMESPACE, orphan(name)).await;
    }
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    fixture.create(&STATEFUL_SETS, NAMESPACE, stateful_set(1, on_delete)).await;
    ready(&fixture, "web-0").await;
    let adopted = || async {
        let pod = fixture.get(&PODS, "web-0").await?;
        (label(&pod, "statefulset.kubernetes.io/pod-name") == "web-0").then_some(pod)
    };
    let pod = fixture.eventually("web-0 is adopted", adopted).await;
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "web");
    fixture.told("SuccessfulUpdate", "update Pod web-0 in StatefulSet web successful").await;
    assert!(fixture.get(&PODS, "web-x").await.unwrap()["metadata"]["ownerReferences"].is_null());
}

fn with_claims(replicas: i64, when_scaled: &str) -> Value {
    let claim = json!({"metadata": {"name": "data", "labels": {"kind": "disk"}}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let policy = json!({"whenScaled": when_scaled, "whenDeleted": "Delete"});
    let change = json!({"volumeClaimTemplates": [claim], "persistentVolumeClaimRetentionPolicy": policy});
    let mut set = stateful_set(replicas, change);
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    set
}

async fn owner_of(fixture: &Fixture, claim: &str, kind: &str) {
    let owned = || async {
        let claim = fixture.get(&PERSISTENT_VOLUME_CLAIMS, claim).await?;
        (claim["metadata"]["ownerReferences"][0]["kind"] == kind).then_some(())
    };
    fixture.eventually(&format!("{claim} goes with its {kind}"), owned).await;
}

#[tokio::test]
async fn claims_outlive_pods_and_go_as_the_policy_has_it() {
    let fixture = start().await;
    fixture.create(&STATEFUL_SETS, NAMESPACE, with_claims(2, "Delete")).await;
    let claim = fixture.exists(&PERSISTENT_VOLUME_CLAIMS, "data-web-0").await;
    assert_eq!(claim["metadata"]["labels"], json!({"app": "web", "kind": "disk"}));
    assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "StatefulSet", "from the start");
    fixture.told("SuccessfulCreate", "create Claim data-web-0 Pod web-0 in StatefulSet web success").await;
    let pod = fixture.exists(&PODS, "web-0").await;
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}});
    assert_eq!(pod["spec"]["volumes"][0], volume);
    settled(&fixture).await;
    owner_of(&fixture, "data-web-0", "StatefulSet").await;
    // A pod comes and goes, its claim stays.
    let before = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data-web-1").await.unwrap();
    remove(&fixture, "web-1").await;
    settled(&fixture).await;
    let after = fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data-web-1").await.unwrap();
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    // It goes with the pod that is too many.
    fixture.patch(&STATEFUL_SETS, "web", json!({"spec": {"replicas": 1}})).await;
    owner_of(&fixture, "data-web-1", "Pod").await;
    end(&fixture, "web-1").await;
    fixture.gone(&PERSISTENT_VOLUME_CLAIMS, "data-web-1").await;
    assert!(fixture.get(&PERSISTENT_VOLUME_CLAIMS, "data-web-0").await.is_some());
    // And comes back new.
    fixture.patch(&STATEFUL_SETS, "web", json!({"spec": {"replicas": 2}})).await;
    settled(&fixture).await;
    fixture.delete(&STATEFUL_SETS, "web", "Background").await;
    let gone = || async {
        run_pods(&fixture).await;
        fixture.list(&PERSISTENT_VOLUME_CLAIMS, "").await.is_empty().then_some(())
    };
    fixture.eventually("the claims go with the set", gone).await;
}
