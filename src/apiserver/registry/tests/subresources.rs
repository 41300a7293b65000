//! Binding, eviction, scale.

use super::*;

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
