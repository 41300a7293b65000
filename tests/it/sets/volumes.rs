//! Claims, volumes and the pods that wait for them, in whole clusters.

use kubarium::Config;
use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::apps::stateful_set::STATEFUL_SETS;
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::apis::core::persistent_volume_claim::PERSISTENT_VOLUME_CLAIMS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::storage::storage_class::STORAGE_CLASSES;
use kubarium::entropy::Entropy;
use serde_json::{Value, json};

use super::{NAMESPACE, World, is_ready, node_of};

/// As `kubarium up` starts it.
async fn start(nodes: u32) -> World {
    let entropy = Entropy::seeded(11);
    World::of(Config::new().nodes(nodes).entropy(entropy).default_storage_class(true)).await
}

fn claim(name: &str, class: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "1Gi"}}}})
}

fn pod(name: &str, claim: &str) -> Value {
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
    json!({"metadata": {"name": name}, "spec": {"volumes": [volume],
        "containers": [{"name": "c", "image": "i"}]}})
}

fn is_bound(object: &Value) -> bool {
    object["status"]["phase"] == "Bound"
}

fn why_unscheduled(pod: &Value) -> &str {
    let conditions = pod["status"]["conditions"].as_array();
    let unscheduled =
        conditions.into_iter().flatten().find(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    unscheduled.and_then(|it| it["message"].as_str()).unwrap_or("")
}

async fn refused(world: &World, name: &str, why: &str) {
    world.when(&PODS, name, |pod| why_unscheduled(pod).contains(why)).await;
}

#[tokio::test]
async fn disks_are_made_where_their_pods_go() {
    let world = start(2).await;
    world.create(&PERSISTENT_VOLUME_CLAIMS, claim("data", Value::Null)).await;
    world.told("WaitForFirstConsumer", "waiting for first consumer to be created before binding").await;
    world.create(&PODS, pod("p", "data")).await;
    let pod = world.when(&PODS, "p", is_ready).await;
    let claim = world.when(&PERSISTENT_VOLUME_CLAIMS, "data", is_bound).await;
    let annotations = &claim["metadata"]["annotations"];
    assert_eq!(annotations["volume.kubernetes.io/selected-node"], node_of(&pod));
    assert_eq!(annotations["volume.kubernetes.io/storage-provisioner"], "kubarium.dev/simulated-disk");
    assert_eq!(claim["spec"]["storageClassName"], "standard");
    let name = format!("pvc-{}", claim["metadata"]["uid"].as_str().unwrap());
    assert_eq!(claim["spec"]["volumeName"], *name);
    let volume = world.when(&PERSISTENT_VOLUMES, &name, is_bound).await;
    assert_eq!(volume["spec"]["capacity"], json!({"storage": "1Gi"}));
    assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Delete");
    let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["values"], json!([node_of(&pod)]));
    world.told("ProvisioningSucceeded", &format!("Successfully provisioned volume {name}")).await;

    // The disk holds the next pod on its node, and goes with its claim.
    world.client.delete(&PODS, NAMESPACE, "p", &DeleteOptions::default()).await.unwrap();
    world.create(&PODS, self::pod("q", "data")).await;
    let next = world.when(&PODS, "q", is_ready).await;
    assert_eq!(node_of(&next), node_of(&pod));
    let options = DeleteOptions::default();
    world.client.delete(&PODS, NAMESPACE, "q", &options).await.unwrap();
    world.client.delete(&PERSISTENT_VOLUME_CLAIMS, NAMESPACE, "data", &options).await.unwrap();
    let gone = || async { world.get(&PERSISTENT_VOLUMES, &name).await.is_none().then_some(()) };
    world.until("the disk goes with its claim", gone).await;
}

#[tokio::test]
async fn pods_of_a_set_keep_their_disks() {
    let world = start(2).await;
    let template = json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c",
        "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}});
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}]);
    let set = json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}}, "template": template, "volumeClaimTemplates": claims}});
    world.create(&STATEFUL_SETS, set).await;
    world.when(&STATEFUL_SETS, "db", |set| set["status"]["availableReplicas"] == 2).await;
    let before = world.when(&PERSISTENT_VOLUME_CLAIMS, "data-db-1", is_bound).await;
    let uid = world.get(&PODS, "db-1").await.unwrap()["metadata"]["uid"].clone();
    world.client.delete(&PODS, NAMESPACE, "db-1", &DeleteOptions::default()).await.unwrap();
    world.when(&PODS, "db-1", |pod| pod["metadata"]["uid"] != uid && is_ready(pod)).await;
    let after = world.get(&PERSISTENT_VOLUME_CLAIMS, "data-db-1").await.unwrap();
    assert_eq!(before["spec"]["volumeName"], after["spec"]["volumeName"]);
}

#[tokio::test]
async fn pods_wait_for_their_claims_and_say_so() {
    let world = World::start(1).await;
    world.create(&PODS, pod("early", "data")).await;
    refused(&world, "early", "0/1 nodes are available: persistentvolumeclaim \"data\" not found").await;
    world.create(&PERSISTENT_VOLUME_CLAIMS, claim("data", json!(""))).await;
    refused(&world, "early", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims")
        .await;
    let volume = json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}});
    world.create(&PERSISTENT_VOLUMES, volume.clone()).await;
    world.when(&PODS, "early", is_ready).await;

    // Volumes made by hand, for whoever comes first, on a node that is not there.
    let class = json!({"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"});
    world.create(&STORAGE_CLASSES, class).await;
    world.create(&PERSISTENT_VOLUME_CLAIMS, claim("disk", json!("local"))).await;
    world.create(&PODS, pod("late", "disk")).await;
    refused(&world, "late", "1 node(s) didn't find available persistent volumes to bind").await;
    let on = |name: &str, node: &str| {
        let expression = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
        let mut volume = volume.clone();
        volume["metadata"]["name"] = name.into();
        volume["spec"]["storageClassName"] = "local".into();
        volume["spec"]["nodeAffinity"] =
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}});
        volume
    };
    world.create(&PERSISTENT_VOLUMES, on("elsewhere", "node-9")).await;
    world.create(&PERSISTENT_VOLUMES, on("here", "node-1")).await;
    world.when(&PODS, "late", is_ready).await;
    let claim = world.when(&PERSISTENT_VOLUME_CLAIMS, "disk", is_bound).await;
    assert_eq!(claim["spec"]["volumeName"], "here");
    assert!(claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_null());
}
