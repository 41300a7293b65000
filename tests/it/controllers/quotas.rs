//! Quotas are counted, charged, and given back.

use kubarium::Fault;
use kubarium::apis::apps::replica_set::REPLICA_SETS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::pod_template::POD_TEMPLATES;
use kubarium::apis::core::resource_quota::RESOURCE_QUOTAS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::resource::device_class::DEVICE_CLASSES;
use kubarium::apis::resource::resource_claim::RESOURCE_CLAIMS;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition};

/// Waits until a quota says that so much is used.
async fn uses(fixture: &Fixture, expected: Value) {
    let what = format!("the quota says {expected}");
    let as_expected = || async {
        let quota = fixture.get(&RESOURCE_QUOTAS, "q").await?;
        let all = expected.as_object().unwrap();
        all.iter().all(|(name, amount)| quota["status"]["used"][name] == *amount).then_some(())
    };
    fixture.eventually(&what, as_expected).await;
}

fn quota(hard: Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})
}

fn pod(name: &str) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}});
    json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
}

/// Nobody has to wait until somebody has counted again.
#[tokio::test]
async fn a_pod_that_is_told_to_end_is_charged_where_such_pods_are() {
    let fixture = Fixture::start().await;
    let mut ending = quota(json!({"pods": "1"}));
    ending["spec"]["scopes"] = json!(["Terminating"]);
    fixture.create(&RESOURCE_QUOTAS, NAMESPACE, ending).await;
    uses(&fixture, json!({"pods": "0"})).await;
    fixture.create(&PODS, NAMESPACE, pod("a")).await;
    fixture.patch(&PODS, "a", json!({"spec": {"activeDeadlineSeconds": 3600}})).await;
    uses(&fixture, json!({"pods": "1"})).await;
    let mut other = pod("b");
    other["spec"]["activeDeadlineSeconds"] = 3600.into();
    let refused = fixture.client.create(&PODS, NAMESPACE, other).await.unwrap_err();
    assert!(refused.message.contains("exceeded quota: q, requested: pods=1, used: pods=1"), "{refused}");
    fixture.create(&PODS, NAMESPACE, pod("c")).await;
}

#[tokio::test]
async fn what_is_there_is_counted_and_what_goes_is_given_back() {
    let fixture = Fixture::start().await;
    fixture.create(&CONFIG_MAPS, NAMESPACE, json!({"metadata": {"name": "before"}})).await;
    let hard = json!({"pods": "5", "requests.cpu": "1", "configmaps": "10", "services.nodeports": "3",
        "count/replicasets.apps": "2", "count/widgets.example.com": "1"});
    fixture.create(&RESOURCE_QUOTAS, NAMESPACE, quota(hard)).await;
    // The certificate of the authority is the second ConfigMap.
    uses(
        &fixture,
        json!({"pods": "0", "requests.cpu": "0", "configmaps": "2", "services.nodeports": "0",
        "count/replicasets.apps": "0", "count/widgets.example.com": null}),
    )
    .await;
    for name in ["a", "b"] {
        fixture.create(&PODS, NAMESPACE, pod(name)).await;
    }
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    fixture.create(&SERVICES, NAMESPACE, service).await;
    uses(&fixture, json!({"pods": "2", "requests.cpu": "200m", "services.nodeports": "1"})).await;
    fixture.delete(&PODS, "a", "Background").await;
    fixture.delete(&CONFIG_MAPS, "before", "Background").await;
    fixture.patch(&SERVICES, "s", json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}})).await;
    uses(
        &fixture,
        json!({"pods": "1", "requests.cpu": "100m", "configmaps": "1", "services.nodeports": "0"}),
    )
    .await;
    fixture.patch(&RESOURCE_QUOTAS, "q", json!({"spec": {"hard": {"configmaps": "7"}}})).await;
    let follows = || async {
        let quota = fixture.get(&RESOURCE_QUOTAS, "q").await?;
        (quota["status"]["hard"]["configmaps"] == "7").then_some(())
    };
    fixture.eventually("the status follows the spec", follows).await;
}

#[tokio::test]
async fn a_replica_set_says_that_a_quota_stands_in_its_way() {
    let fixture = Fixture::start().await;
    fixture.create(&RESOURCE_QUOTAS, NAMESPACE, quota(json!({"pods": "2"}))).await;
    uses(&fixture, json!({"pods": "0"})).await;
    let labels = json!({"app": "web"});
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    fixture.create(&REPLICA_SETS, NAMESPACE, set).await;
    let fails = || async {
        let set = fixture.get(&REPLICA_SETS, "web").await?;
        let failure = condition(&set, "ReplicaFailure").clone();
        (failure["status"] == "True").then_some(failure)
    };
    let failure = fixture.eventually("the set says it", fails).await;
    assert_eq!(failure["reason"], "FailedCreate");
    let text = failure["message"].as_str().unwrap();
    let words = "is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2";
    assert!(text.starts_with("pods \"web-") && text.ends_with(words), "{text}");
    fixture.patch(&REPLICA_SETS, "web", json!({"spec": {"replicas": 2}})).await;
    let recovers = || async {
        let set = fixture.get(&REPLICA_SETS, "web").await?;
        (condition(&set, "ReplicaFailure").is_null() && set["status"]["replicas"] == 2).then_some(())
    };
    fixture.eventually("nothing stands in its way", recovers).await;
}

#[tokio::test]
async fn what_goes_before_its_kind_is_watched_is_given_back_too() {
    let fixture = Fixture::start().await;
    let late =
        Fault::answer(503).user("system:kube-controller-manager").resource("podtemplates").named("late");
    fixture.cluster.faults().add(late).unwrap();
    fixture.create(&RESOURCE_QUOTAS, NAMESPACE, quota(json!({"count/podtemplates": "5"}))).await;
    uses(&fixture, json!({"count/podtemplates": "0"})).await;
    let container = json!({"name": "c", "image": "i"});
    let template = json!({"metadata": {"name": "t"}, "template": {"spec": {"containers": [container]}}});
    fixture.create(&POD_TEMPLATES, NAMESPACE, template).await;
    uses(&fixture, json!({"count/podtemplates": "1"})).await;
    fixture.delete(&POD_TEMPLATES, "t", "Background").await;
    fixture.cluster.faults().remove("late").unwrap();
    uses(&fixture, json!({"count/podtemplates": "0"})).await;
}

/// What is said to whoever is refused an object.
async fn refused(fixture: &Fixture, kind: &kubarium::apis::kind::Kind, tree: Value) -> String {
    let refusal = fixture.cluster.client().create(kind, NAMESPACE, tree).await.unwrap_err();
    assert_eq!(refusal.code, 403, "{refusal}");
    refusal.message
}

#[tokio::test]
async fn claims_of_devices_are_charged_by_the_name_under_which_pods_ask_for_them() {
    let fixture = Fixture::start().await;
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}});
    fixture.create(&DEVICE_CLASSES, "", class).await;
    let hard = json!({"requests.example.com/gpu": "2", "requests.deviceclass.resource.kubernetes.io/gpu": "9",
        "requests.example.com/other": "1"});
    fixture.create(&RESOURCE_QUOTAS, NAMESPACE, quota(hard)).await;
    uses(&fixture, json!({"requests.example.com/gpu": "0"})).await;
    let claim = |name: &str, count: i64| {
        let exactly = json!({"deviceClassName": "gpu", "count": count});
        let requests = json!([{"name": "r", "exactly": exactly}]);
        json!({"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})
    };
    fixture.create(&RESOURCE_CLAIMS, NAMESPACE, claim("two", 2)).await;
    let both = "requests.deviceclass.resource.kubernetes.io/gpu";
    uses(&fixture, json!({"requests.example.com/gpu": "2", both: "2", "requests.example.com/other": "0"}))
        .await;
    let why = refused(&fixture, &RESOURCE_CLAIMS, claim("more", 1)).await;
    let words = "exceeded quota: q, requested: requests.example.com/gpu=1, used: requests.example.com/gpu=2, \
        limited: requests.example.com/gpu=2";
    assert!(why.ends_with(words), "{why}");
    let limits = json!({"example.com/gpu": "1"});
    let container = json!({"name": "c", "image": "i", "resources": {"limits": limits}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}});
    let why = refused(&fixture, &PODS, pod).await;
    assert!(why.ends_with(words), "pods and claims are charged to the same: {why}");
    fixture.delete(&RESOURCE_CLAIMS, "two", "Background").await;
    uses(&fixture, json!({"requests.example.com/gpu": "0", both: "0"})).await;
}

#[tokio::test]
async fn a_quota_may_be_about_the_claims_of_some_classes_of_attributes() {
    let fixture = Fixture::start().await;
    let scope = json!({"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]});
    let mut gold = quota(json!({"persistentvolumeclaims": "1", "requests.storage": "3Gi"}));
    gold["spec"]["scopeSelector"] = json!({"matchExpressions": [scope]});
    fixture.create(&RESOURCE_QUOTAS, NAMESPACE, gold).await;
    uses(&fixture, json!({"persistentvolumeclaims": "0"})).await;
    let claim = |name: &str, class: Option<&str>| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "volumeAttributesClassName": class, "resources": {"requests": {"storage": "2Gi"}}}})
    };
    for (name, class) in [("plain", None), ("silver", Some("silver")), ("gold", Some("gold"))] {
        fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim(name, class)).await;
    }
    uses(&fixture, json!({"persistentvolumeclaims": "1", "requests.storage": "2Gi"})).await;
    let why = refused(&fixture, &PERSISTENT_VOLUME_CLAIMS, claim("more", Some("gold"))).await;
    assert!(why.contains("exceeded quota: q, requested: persistentvolumeclaims=1,"), "{why}");
    fixture.create(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, claim("another", Some("silver"))).await;
    fixture.delete(&PERSISTENT_VOLUME_CLAIMS, "gold", "Background").await;
    uses(&fixture, json!({"persistentvolumeclaims": "0", "requests.storage": "0"})).await;
}
