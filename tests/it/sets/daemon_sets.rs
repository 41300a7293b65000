//! DaemonSets: a pod on every node that wants one, and how one revision follows another.

use std::collections::BTreeSet;

use kubarium::apimachinery::options::{DeleteOptions, ListOptions};
use kubarium::apimachinery::watch::WatchEvent;
use kubarium::apis::apps::controller_revision::CONTROLLER_REVISIONS;
use kubarium::apis::apps::daemon_set::DAEMON_SETS;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use serde_json::{Value, json};

use super::{NAMESPACE, World, counts, image, is_ready, label, name, node_of};

fn daemon_set(name: &str, change: Value, spec: Value) -> Value {
    let mut pod = json!({"containers": [{"name": "c", "image": "agent:1"}]});
    pod.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": pod});
    let mut spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
    spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": spec})
}

/// The nodes that have a ready pod.
async fn ready_on(world: &World) -> Vec<String> {
    let pods = world.pods().await;
    let nodes: BTreeSet<&str> = pods.iter().filter(|pod| is_ready(pod)).map(node_of).collect();
    nodes.into_iter().map(str::to_owned).collect()
}

async fn runs_on(world: &World, nodes: &[&str]) {
    world
        .until(&format!("pods on {nodes:?}"), || async { (ready_on(world).await == nodes).then_some(()) })
        .await;
}

/// All pods are of the newest template, and ready.
async fn rolled_out(world: &World, set: &str) -> Value {
    let is_done = |set: &Value| {
        let count = |name: &str| set["status"][name].as_i64().unwrap_or(0);
        let desired = count("desiredNumberScheduled");
        set["status"]["observedGeneration"] == set["metadata"]["generation"]
            && desired == count("updatedNumberScheduled")
            && desired == count("numberAvailable")
    };
    world.when(&DAEMON_SETS, set, is_done).await
}

fn hashes(pods: &[Value]) -> BTreeSet<&str> {
    pods.iter().map(|pod| label(pod, "controller-revision-hash")).collect()
}

#[tokio::test]
async fn a_daemon_runs_on_every_node_and_stops() {
    let world = World::start(3).await;
    world.create(&DAEMON_SETS, daemon_set("agent", json!({}), json!({}))).await;
    runs_on(&world, &["node-1", "node-2", "node-3"]).await;
    let set = rolled_out(&world, "agent").await;
    let expected = [
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberAvailable",
        "numberReady",
        "updatedNumberScheduled",
    ];
    assert_eq!(counts(&set), expected.map(|name| (name.to_owned(), 3)).into());
    assert_eq!(set["status"]["numberMisscheduled"], 0);

    let pods = world.pods().await;
    let pod = &pods[0];
    assert!(name(pod).starts_with("agent-"));
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let fields = &required["nodeSelectorTerms"][0]["matchFields"];
    assert_eq!(*fields, json!([{"key": "metadata.name", "operator": "In", "values": [node_of(pod)]}]));
    let tolerations: Vec<String> = pod["spec"]["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{}:{}", it["key"].as_str().unwrap(), it["effect"].as_str().unwrap()))
        .map(|text| text.replace("node.kubernetes.io/", ""))
        .collect();
    let expected = "not-ready:NoExecute unreachable:NoExecute disk-pressure:NoSchedule \
        memory-pressure:NoSchedule pid-pressure:NoSchedule unschedulable:NoSchedule";
    assert_eq!(tolerations.join(" "), expected);
    let revisions = world.revisions().await;
    let hash = label(&revisions[0], "controller-revision-hash");
    assert_eq!(name(&revisions[0]), format!("agent-{hash}"));
    assert_eq!(revisions[0]["data"]["spec"]["template"]["$patch"], "replace");
    assert_eq!(revisions[0]["metadata"]["ownerReferences"][0]["kind"], "DaemonSet");
    assert_eq!(hashes(&pods), BTreeSet::from([hash]));
    assert!(pods.iter().all(|pod| label(pod, "pod-template-generation") == "1"));
    world.told("SuccessfulCreate", &format!("Created pod: {}", name(pod))).await;

    let gone = name(pod).to_owned();
    world.client.delete(&PODS, NAMESPACE, &gone, &DeleteOptions::default()).await.unwrap();
    let replaced = || async { world.pods().await.iter().all(|pod| name(pod) != gone).then_some(()) };
    world.until("the pod is replaced", replaced).await;
    runs_on(&world, &["node-1", "node-2", "node-3"]).await;

    let failed = name(&world.pods().await[0]).to_owned();
    world.patch_status(&PODS, &failed, json!({"status": {"phase": "Failed"}})).await;
    world.told("FailedDaemonPod", &format!("Found failed daemon pod test/{failed} on node")).await;
    world.told("SuccessfulDelete", &format!("Deleted pod: {failed}")).await;
    runs_on(&world, &["node-1", "node-2", "node-3"]).await;

    let options = DeleteOptions::propagation("Foreground");
    world.client.delete(&DAEMON_SETS, NAMESPACE, "agent", &options).await.unwrap();
    let empty = || async {
        (world.list(&PODS, "").await.is_empty() && world.revisions().await.is_empty()).then_some(())
    };
    world.until("pods and revisions go", empty).await;
    world.cluster.stop().await;
}

#[tokio::test]
async fn a_daemon_follows_labels_and_taints_of_nodes() {
    let world = World::start(3).await;
    let selector = json!({"nodeSelector": {"disk": "ssd"}});
    world.create(&DAEMON_SETS, daemon_set("agent", json!({}), selector)).await;
    rolled_out(&world, "agent").await;
    for node in ["node-1", "node-2"] {
        world.patch(&NODES, node, json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    }
    runs_on(&world, &["node-1", "node-2"]).await;
    world.patch(&NODES, "node-1", json!({"metadata": {"labels": {"disk": null}}})).await;
    runs_on(&world, &["node-2"]).await;

    // A cordon keeps no daemon away, and neither does it make one leave.
    world
        .patch(
            &NODES,
            "node-1",
            json!({"spec": {"unschedulable": true}, "metadata": {"labels": {"disk": "ssd"}}}),
        )
        .await;
    runs_on(&world, &["node-1", "node-2"]).await;

    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "own", "effect": effect}]}});
    world.patch(&NODES, "node-2", taint("NoSchedule")).await;
    world.when(&DAEMON_SETS, "agent", |set| set["status"]["numberMisscheduled"] == 1).await;
    runs_on(&world, &["node-1", "node-2"]).await;
    world.patch(&NODES, "node-2", taint("NoExecute")).await;
    runs_on(&world, &["node-1"]).await;
    let set = world.when(&DAEMON_SETS, "agent", |set| set["status"]["numberMisscheduled"] == 0).await;
    assert_eq!(set["status"]["desiredNumberScheduled"], 1);
    world.patch(&NODES, "node-2", json!({"spec": {"taints": null}})).await;
    runs_on(&world, &["node-1", "node-2"]).await;

    // A node that goes takes its pod with it.
    world.client.delete(&NODES, "", "node-2", &DeleteOptions::default()).await.unwrap();
    world.when(&DAEMON_SETS, "agent", |set| set["status"]["desiredNumberScheduled"] == 1).await;
}

#[tokio::test]
async fn daemons_roll_out_and_back() {
    let world = World::start(3).await;
    let strategy = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        "revisionHistoryLimit": 2});
    world.create(&DAEMON_SETS, daemon_set("agent", strategy, json!({}))).await;
    rolled_out(&world, "agent").await;
    world
        .patch(
            &DAEMON_SETS,
            "agent",
            json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "two"}}}),
        )
        .await;
    world.patch(&DAEMON_SETS, "agent", image("agent:2")).await;
    rolled_out(&world, "agent").await;
    let revisions = world.revisions().await;
    assert_eq!(revisions.iter().map(|it| it["revision"].as_i64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(revisions[1]["metadata"]["annotations"]["kubernetes.io/change-cause"], "two");
    let (first, second) = (name(&revisions[0]).to_owned(), name(&revisions[1]).to_owned());
    assert!(second.ends_with(hashes(&world.pods().await).first().unwrap()));

    // Back: the first revision is the newest again.
    world.patch(&DAEMON_SETS, "agent", image("agent:1")).await;
    rolled_out(&world, "agent").await;
    let numbered = || async {
        let revisions = world.revisions().await;
        let order: Vec<(&str, i64)> =
            revisions.iter().map(|it| (name(it), it["revision"].as_i64().unwrap())).collect();
        (order == [(second.as_str(), 2), (first.as_str(), 3)]).then_some(())
    };
    world.until("the first revision is the third", numbered).await;

    for number in 3..7 {
        world.patch(&DAEMON_SETS, "agent", image(&format!("agent:{number}"))).await;
        rolled_out(&world, "agent").await;
    }
    let limited = || async { (world.revisions().await.len() == 3).then_some(()) };
    world.until("two old revisions are kept", limited).await;
}

#[tokio::test]
async fn new_daemons_may_come_beside_old_ones_or_wait_for_their_end() {
    let world = World::start(2).await;
    let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}});
    world.create(&DAEMON_SETS, daemon_set("agent", json!({"updateStrategy": surge}), json!({}))).await;
    let before = rolled_out(&world, "agent").await;
    world.patch(&DAEMON_SETS, "agent", image("agent:2")).await;
    let resource_version = before["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    let options = ListOptions { resource_version, ..ListOptions::default() };
    let mut changes = world.client.watch(&DAEMON_SETS, NAMESPACE, &options).await.unwrap();
    rolled_out(&world, "agent").await;
    loop {
        let Some(WatchEvent::Modified(object)) = changes.recv().await else { panic!("a change") };
        let set = object.to_value();
        assert_eq!(set["status"]["numberAvailable"], 2, "all are available throughout");
        if set["status"]["updatedNumberScheduled"] == 2 {
            break;
        }
    }

    world
        .patch(
            &DAEMON_SETS,
            "agent",
            json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}),
        )
        .await;
    world.patch(&DAEMON_SETS, "agent", image("agent:3")).await;
    let observed = |set: &Value| set["status"]["observedGeneration"] == set["metadata"]["generation"];
    let set = world
        .when(&DAEMON_SETS, "agent", |set| observed(set) && set["status"]["updatedNumberScheduled"].is_null())
        .await;
    assert_eq!(set["status"]["numberAvailable"], 2);
    for pod in world.pods().await {
        world.client.delete(&PODS, NAMESPACE, name(&pod), &DeleteOptions::default()).await.unwrap();
    }
    rolled_out(&world, "agent").await;
}

#[tokio::test]
async fn revisions_live_with_their_set() {
    let world = World::start(1).await;
    world.create(&DAEMON_SETS, daemon_set("agent", json!({}), json!({}))).await;
    rolled_out(&world, "agent").await;
    // One that is deleted is made again: it is what the pods are of.
    let revision = world.revisions().await.remove(0);
    world
        .client
        .delete(&CONTROLLER_REVISIONS, NAMESPACE, name(&revision), &DeleteOptions::default())
        .await
        .unwrap();
    let again = world
        .when(&CONTROLLER_REVISIONS, name(&revision), |it| {
            it["metadata"]["uid"] != revision["metadata"]["uid"]
        })
        .await;
    assert_eq!((&again["data"], &again["revision"]), (&revision["data"], &json!(1)));
    // One of the same template, made by hand, takes its place, and the pods with it.
    let mut twin = again.clone();
    twin["metadata"] =
        json!({"name": "agent-twin", "labels": {"app": "agent", "controller-revision-hash": "twin"}});
    twin["revision"] = 3.into();
    world.create(&CONTROLLER_REVISIONS, twin).await;
    let only = || async {
        let revisions = world.revisions().await;
        (revisions.len() == 1 && name(&revisions[0]) == "agent-twin").then(|| revisions[0].clone())
    };
    let twin = world.until("the twin alone", only).await;
    assert_eq!(twin["metadata"]["ownerReferences"][0]["name"], "agent");
    let relabelled = || async { (hashes(&world.pods().await) == BTreeSet::from(["twin"])).then_some(()) };
    world.until("the pods are the twin's", relabelled).await;
    // Released when it matches no more, and made anew.
    let unlabelled = json!({"metadata": {"labels": {"app": "other"}}});
    world.patch(&CONTROLLER_REVISIONS, "agent-twin", unlabelled).await;
    world.when(&CONTROLLER_REVISIONS, "agent-twin", |it| it["metadata"]["ownerReferences"].is_null()).await;
}

#[tokio::test]
async fn pods_are_adopted_and_released() {
    let world = World::start(1).await;
    let pod = json!({"metadata": {"name": "orphan", "labels": {"app": "agent"}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "agent:1"}]}});
    world.create(&PODS, pod).await;
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    world.create(&DAEMON_SETS, daemon_set("agent", on_delete, json!({}))).await;
    world.when(&PODS, "orphan", |pod| pod["metadata"]["ownerReferences"][0]["name"] == "agent").await;
    world.when(&DAEMON_SETS, "agent", |set| set["status"]["numberReady"] == 1).await;
    assert_eq!(world.pods().await.len(), 1);
    world.patch(&PODS, "orphan", json!({"metadata": {"labels": {"app": "free"}}})).await;
    world.when(&PODS, "orphan", |pod| pod["metadata"]["ownerReferences"].is_null()).await;
    world.until("another pod comes", || async { (world.pods().await.len() == 2).then_some(()) }).await;
    rolled_out(&world, "agent").await;

    // The status is written as any other's: the controller puts back what it counts.
    let condition = json!({"type": "Odd", "status": "True", "reason": "E2E"});
    world
        .patch_status(&DAEMON_SETS, "agent", json!({"status": {"conditions": [condition], "numberReady": 7}}))
        .await;
    let set = world.when(&DAEMON_SETS, "agent", |set| set["status"]["numberReady"] == 1).await;
    assert_eq!(set["status"]["conditions"][0]["type"], "Odd");
}
