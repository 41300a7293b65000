//! Binding, eviction, scale, resize; and access to devices for administration.

use super::*;
use apimachinery::feature_gates::FeatureGates;

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File"}], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30}})
}

fn binding(node: &str) -> Value {
    json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": node}})
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let subject = Subject::new();
    let kind = subject.kind("", "v1", "pods");
    subject.create(&kind, pod("a")).await.unwrap();
    let bind = async |node: &str| subject.registry.bind(&subject.ctx, "ns", "a", &binding(node), &()).await;
    assert!(message(bind("").await).contains("target.name: Required value"));
    set_status(&subject, &kind, "a", json!({"phase": "Pending", "nominatedNodeName": "node-1"})).await;
    bind("node-1").await.unwrap();
    let bound = subject.get(&kind, "a").await.unwrap().to_value();
    assert_eq!(bound["spec"]["nodeName"], "node-1");
    assert_eq!(bound["status"].get("nominatedNodeName"), None);
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    let scheduled = conditions.iter().find(|condition| condition["type"] == "PodScheduled").unwrap();
    assert_eq!(scheduled["status"], "True");
    assert_eq!(scheduled.get("observedGeneration"), None, "the kubelet says it later");
    assert_eq!(
        message(bind("node-2").await),
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"node-1\""
    );
    let missing = subject.registry.bind(&subject.ctx, "ns", "none", &binding("n"), &()).await;
    assert!(missing.unwrap_err().is_not_found());
}

async fn set_status(subject: &Subject, kind: &Arc<Kind>, name: &str, status: Value) {
    let mut tree = subject.get(kind, name).await.unwrap().to_value();
    tree["status"] = status;
    subject.update(kind, Part::Status, tree).await.unwrap();
}

#[tokio::test]
async fn an_eviction_asks_the_budget() {
    let subject = Subject::new();
    let (pods, budgets) =
        (subject.kind("", "v1", "pods"), subject.kind("policy", "v1", "poddisruptionbudgets"));
    let running = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    for name in ["a", "b"] {
        let mut tree = pod(name);
        tree["spec"]["nodeName"] = json!("node");
        subject.create(&pods, tree).await.unwrap();
        set_status(&subject, &pods, name, running.clone()).await;
    }
    let budget = json!({"metadata": {"name": "pdb"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    subject.create(&budgets, budget).await.unwrap();
    let evict = async |name: &str| subject.registry.evict(&subject.ctx, "ns", name, &named(name), &()).await;
    let behind = evict("a").await.unwrap_err();
    assert_eq!((behind.code, behind.details.as_ref().unwrap().retry_after_seconds), (429, 10));
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2});
    set_status(&subject, &budgets, "pdb", status).await;
    evict("a").await.unwrap();
    assert!(subject.get(&pods, "a").await.is_ok_and(|pod| pod.is_deleting()));
    let after = subject.get(&budgets, "pdb").await.unwrap().to_value();
    assert_eq!(after["status"]["disruptionsAllowed"].as_i64().unwrap_or_default(), 0);
    assert!(after["status"]["disruptedPods"]["a"].is_string());
    let spent = evict("b").await.unwrap_err();
    assert_eq!(spent.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = &spent.details.as_ref().unwrap().causes[0];
    assert_eq!(cause.reason, "DisruptionBudget");
    assert_eq!(cause.message, "The disruption budget pdb needs 1 healthy pods and has 2 currently");
}

#[tokio::test]
async fn a_workload_is_scaled() {
    let subject = Subject::new();
    let kind = subject.kind("apps", "v1", "replicasets");
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]});
    let tree = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    subject.create(&kind, tree).await.unwrap();
    let scale = subject.registry.get_scale(&kind, "ns", "web").await.unwrap().to_value();
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&json!(2), &json!("app=web")));
    let workload = subject.registry.get(&kind, "ns", "web", None).await.unwrap().to_value();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        assert_eq!(scale["metadata"][field], workload["metadata"][field], "{field}");
    }
    let to = async |replicas: i64| {
        let change = move |current: Option<&Value>| {
            let mut scale = current.unwrap().clone();
            scale["spec"]["replicas"] = json!(replicas);
            Ok(scale)
        };
        subject.registry.update_scale(&subject.ctx, &kind, "ns", "web", &change, &()).await
    };
    assert_eq!(to(5).await.unwrap().to_value()["spec"]["replicas"], 5);
    let stored = subject.get(&kind, "web").await.unwrap();
    assert_eq!((stored.metadata.generation, &stored.to_value()["spec"]["replicas"]), (2, &json!(5)));
    assert!(
        message(to(-1).await)
            .contains("spec.replicas: Invalid value: -1: must be greater than or equal to 0")
    );
}

#[tokio::test]
async fn a_resize_reaches_the_whole_pod_and_nothing_else() {
    let subject = Subject::new();
    let kind = subject.kind("", "v1", "pods");
    let amounts = |cpu: &str| json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
    let mut tree = pod("a");
    tree["spec"]["resources"] = amounts("1");
    subject.create(&kind, tree).await.unwrap();
    let mut tree = subject.get(&kind, "a").await.unwrap().to_value();
    tree["spec"]["resources"] = amounts("1500m");
    tree["spec"]["containers"][0]["image"] = json!("other");
    let resized = subject.update(&kind, Part::Resize, tree.clone()).await.unwrap();
    assert_eq!(resized.metadata.generation, 2);
    let spec = &resized.to_value()["spec"];
    assert_eq!((&spec["resources"], &spec["containers"][0]["image"]), (&amounts("1500m"), &json!("i")));
    tree["metadata"]["resourceVersion"] = Value::Null;
    tree["spec"]["containers"][0]["name"] = json!("other");
    assert_eq!(
        message(subject.update(&kind, Part::Resize, tree).await),
        "Pod \"a\" is invalid: spec.containers[0].name: Forbidden: containers may not be renamed or \
         reordered on resize"
    );
}

#[tokio::test]
async fn without_its_gate_a_resize_leaves_the_whole_pod_as_it_is() {
    let subject = Subject::new();
    let gates = FeatureGates::parse("InPlacePodLevelResourcesVerticalScaling=false").unwrap();
    subject.registry.0.gates.set(gates).expect("nobody has asked yet");
    let kind = subject.kind("", "v1", "pods");
    let mut tree = pod("a");
    tree["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    subject.create(&kind, tree).await.unwrap();
    let mut tree = subject.get(&kind, "a").await.unwrap().to_value();
    let before = tree["spec"].clone();
    tree["spec"]["resources"] = json!({"requests": {"cpu": "2"}});
    let resized = subject.update(&kind, Part::Resize, tree).await.unwrap();
    assert_eq!(resized.to_value()["spec"], before);
    assert_eq!(resized.metadata.generation, 1);
    let cpu = json!({"cpu": "1"});
    let told = json!({"phase": "Running", "resources": {"requests": cpu}, "allocatedResources": cpu});
    set_status(&subject, &kind, "a", told).await;
    let status = subject.get(&kind, "a").await.unwrap().to_value()["status"].take();
    assert_eq!(status, json!({"phase": "Running", "qosClass": "Burstable"}));
}

#[tokio::test]
async fn devices_are_claimed_for_administration_in_namespaces_for_that() {
    const WORDS: &str = "Forbidden: admin access to devices requires the \
        `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    let subject = Subject::new();
    let namespaces = subject.kind("", "v1", "namespaces");
    subject.create(&namespaces, named("ns")).await.unwrap();
    let exactly = |is_admin: bool| {
        let exactly = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1,
            "adminAccess": is_admin});
        json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}})
    };
    let claims = subject.kind("resource.k8s.io", "v1", "resourceclaims");
    let templates = subject.kind("resource.k8s.io", "v1", "resourceclaimtemplates");
    let claim = |name: &str, is_admin: bool| json!({"metadata": {"name": name}, "spec": exactly(is_admin)});
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": exactly(true)}});
    let path = "spec.devices.requests[0].adminAccess";
    assert_eq!(
        message(subject.create(&claims, claim("a", true)).await),
        format!("ResourceClaim.resource.k8s.io \"a\" is invalid: {path}: {WORDS}")
    );
    assert_eq!(
        message(subject.create(&templates, template.clone()).await),
        format!("ResourceClaimTemplate.resource.k8s.io \"t\" is invalid: {path}: {WORDS}")
    );
    let mut given = subject.create(&claims, claim("b", false)).await.unwrap().to_value();
    let result = json!({"request": "r", "driver": "d.example.com", "pool": "p", "device": "g",
        "adminAccess": true});
    given["status"] = json!({"allocation": {"devices": {"results": [result]}}});
    let refused = message(subject.update(&claims, Part::Status, given.clone()).await);
    assert!(refused.contains("status.allocation.devices.results[0].adminAccess: Forbidden"), "{refused}");
    let mut namespace = subject.get(&namespaces, "ns").await.unwrap().to_value();
    namespace["metadata"]["labels"] = json!({"resource.kubernetes.io/admin-access": "true"});
    subject.update(&namespaces, Part::Main, namespace).await.unwrap();
    subject.create(&claims, claim("a", true)).await.unwrap();
    subject.create(&templates, template).await.unwrap();
    subject.update(&claims, Part::Status, given).await.unwrap();
}
