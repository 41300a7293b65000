//! What pods see of the files and the devices of their node: parts of volumes, local volumes, blocks, and the
//! node's own root.

use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::core::persistent_volume::PERSISTENT_VOLUMES;
use kubarium::cluster::Settle;
use kubarium::kinds::{EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS};
use kubarium::{Clock, Cluster, Config, Entropy, ListOptions};
use serde_json::{Value, json};

async fn start() -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let config = Config::new().default_storage_class(true).clock(clock).entropy(Entropy::seeded(7));
    Cluster::start(config).await.unwrap()
}

async fn pass(cluster: &Cluster, seconds: u64) {
    cluster.settle(Settle::new()).await.unwrap();
    cluster.pass(Duration::from_secs(seconds)).await.unwrap();
    cluster.settle(Settle::new()).await.unwrap();
}

async fn run(cluster: &Cluster, name: &str, spec: Value) -> Value {
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    cluster.client().create(&PODS, "default", pod).await.unwrap();
    pass(cluster, 5).await;
    pod_named(cluster, name).await
}

async fn pod_named(cluster: &Cluster, name: &str) -> Value {
    cluster.client().get(&PODS, "default", name).await.unwrap().to_value()
}

async fn remove(cluster: &Cluster, name: &str) {
    cluster.client().delete(&PODS, "default", name, &DeleteOptions::default()).await.unwrap();
    pass(cluster, 60).await;
}

async fn log(cluster: &Cluster, pod: &str) -> String {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/log");
    let answer = cluster.client().raw(http::Request::get(path).body(Default::default()).unwrap()).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// The messages of the events for a reason.
async fn told(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events = cluster.client().list(&EVENTS, "", &ListOptions::default()).await.unwrap();
    let events = events.items.iter().map(|event| event.to_value());
    let own = events.filter(|event| event["reason"] == reason);
    own.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

/// A container that plays a script, with more that is said of it.
fn script(name: &str, script: &str, more: Value) -> Value {
    let mut container = json!({"name": name, "image": "busybox", "command": ["sh", "-c", script]});
    json_patch::merge(&mut container, &more);
    container
}

async fn volume_and_claim(cluster: &Cluster, name: &str, source: Value, mode: &str) {
    let size = json!({"storage": "1Gi"});
    let requirement = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]});
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}});
    let mut spec = json!({"capacity": size, "accessModes": ["ReadWriteOnce"], "storageClassName": name,
        "volumeMode": mode, "nodeAffinity": affinity});
    json_patch::merge(&mut spec, &source);
    let volume = json!({"metadata": {"name": name}, "spec": spec});
    cluster.client().create(&PERSISTENT_VOLUMES, "", volume).await.unwrap();
    let claim = json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "storageClassName": name, "volumeMode": mode, "resources": {"requests": size}}});
    cluster.client().create(&PERSISTENT_VOLUME_CLAIMS, "default", claim).await.unwrap();
    pass(cluster, 1).await;
}

fn claimed(claim: &str, container: Value) -> Value {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    json!({"restartPolicy": "Never", "containers": [container], "volumes": volumes})
}

fn mounted() -> Value {
    json!({"volumeMounts": [{"name": "v", "mountPath": "/mnt/volume1"}]})
}

fn mapped() -> Value {
    json!({"volumeDevices": [{"name": "v", "devicePath": "/mnt/volume1"}]})
}

/// The init container makes a link, and the other one mounts that by its `subPath`.
fn linked(target: &str) -> Value {
    let link = script(
        "init",
        &format!("mkdir /v/inner; echo in > /v/inner/f; ln -s {target} /v/part"),
        json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
    );
    let part = json!({"volumeMounts": [{"name": "v", "mountPath": "/part", "subPath": "part"}]});
    json!({"restartPolicy": "Never", "initContainers": [link], "containers": [script("c", "cat /part/f", part)],
        "volumes": [{"name": "v", "emptyDir": {}}]})
}

#[tokio::test]
async fn a_part_of_a_volume_does_not_lead_out_of_it() {
    let cluster = start().await;
    for (name, target) in [("bin", "/bin"), ("sh", "/bin/sh"), ("none", "/none"), ("up", "../")] {
        let pod = run(&cluster, name, linked(target)).await;
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        assert_eq!(waiting["reason"], "CreateContainerConfigError", "{name}: {}", pod["status"]);
        let message = waiting["message"].as_str().unwrap();
        let is_told = message.starts_with("failed to ") && message.contains("subPath");
        assert!(is_told && message.ends_with(" for volumeMount \"v\" of container \"c\""), "{message}");
    }
    let pod = run(&cluster, "inner", linked("inner")).await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{}", pod["status"]);
    assert_eq!(log(&cluster, "inner").await, "in\n");
    cluster.stop().await;
}

#[tokio::test]
async fn a_local_volume_is_a_folder_that_its_node_has() {
    let cluster = start().await;
    volume_and_claim(&cluster, "nowhere", json!({"local": {"path": "/non-existent/nowhere"}}), "Filesystem")
        .await;
    let writes = "echo text > /mnt/volume1/f && cat /mnt/volume1/f";
    let pod = run(&cluster, "lost", claimed("nowhere", script("c", writes, mounted()))).await;
    assert_eq!(pod["status"]["phase"], "Pending");
    let why = "MountVolume.NewMounter initialization failed for volume \"nowhere\" : path \
               \"/non-existent/nowhere\" does not exist";
    assert!(told(&cluster, "FailedMount").await.iter().all(|message| message == why));
    // Somebody makes it.
    let makes = json!({"restartPolicy": "Never", "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        "containers": [script("c", "mkdir -p /host/non-existent/nowhere",
            json!({"volumeMounts": [{"name": "v", "mountPath": "/host"}]}))]});
    run(&cluster, "makes", makes).await;
    pass(&cluster, 130).await;
    assert_eq!(log(&cluster, "lost").await, "text\n");
    cluster.stop().await;
}

#[tokio::test]
async fn blocks_are_kept_and_never_mapped_by_who_knows_files_alone() {
    let cluster = start().await;
    volume_and_claim(&cluster, "folder", json!({"hostPath": {"path": "/data"}}), "Block").await;
    run(&cluster, "waits", claimed("folder", script("c", "true", mapped()))).await;
    pass(&cluster, 300).await;
    assert_eq!(pod_named(&cluster, "waits").await["status"]["phase"], "Pending");
    let why = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process \
               volumes=[]: context deadline exceeded";
    assert!(told(&cluster, "FailedMount").await.iter().any(|message| message == why));

    let claim = json!({"metadata": {"name": "disk"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "volumeMode": "Block", "resources": {"requests": {"storage": "1Gi"}}}});
    cluster.client().create(&PERSISTENT_VOLUME_CLAIMS, "default", claim).await.unwrap();
    let device = "/mnt/volume1";
    let writes = format!(
        "test -b {device} && printf 0123456789 | dd of={device} bs=10 count=1 2>/dev/null; \
        printf ab | dd of={device} 2>/dev/null; ls -l {device} | cut -c1-10"
    );
    let pod = run(&cluster, "writes", claimed("disk", script("c", &writes, mapped()))).await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{}", pod["status"]);
    assert_eq!(log(&cluster, "writes").await, "brw-rw----\n");
    remove(&cluster, "writes").await;
    let reads = format!("dd if={device} bs=8 count=1 2>/dev/null");
    run(&cluster, "reads", claimed("disk", script("c", &reads, mapped()))).await;
    assert_eq!(log(&cluster, "reads").await, "ab234567\n");
    cluster.stop().await;
}

/// A pod as those by which suites look into a node; its script is played there.
fn on_node(in_node: &str, is_privileged: bool) -> Value {
    let mut container = json!({"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.63.0",
        "securityContext": {"privileged": is_privileged},
        "command": ["nsenter", "--mount=/rootfs/proc/1/ns/mnt", "--", "sh", "-c", in_node]});
    container["volumeMounts"] = json!([{"name": "rootfs", "mountPath": "/rootfs", "readOnly": true}]);
    json!({"restartPolicy": "Never", "containers": [container],
        "volumes": [{"name": "rootfs", "hostPath": {"path": "/"}}]})
}

#[tokio::test]
async fn who_enters_the_namespace_of_a_node_sees_its_files() {
    let cluster = start().await;
    let refused = run(&cluster, "refused", on_node("true", false)).await;
    assert_eq!(refused["status"]["phase"], "Failed");
    let why = "nsenter: can't open '/rootfs/proc/1/ns/mnt': Permission denied\n";
    assert_eq!(log(&cluster, "refused").await, why);

    let tmpfs = "mkdir -p \"/tmp/a\" && mount -t tmpfs -o size=10m tmpfs-\"/tmp/a\" \"/tmp/a\"";
    let pod = run(&cluster, "mounts", on_node(tmpfs, true)).await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{}", log(&cluster, "mounts").await);
    volume_and_claim(&cluster, "local", json!({"local": {"path": "/tmp/a"}}), "Filesystem").await;
    let writes = "echo text > /mnt/volume1/f; stat -c %g /mnt/volume1";
    let mut spec = claimed("local", script("c", writes, mounted()));
    spec["securityContext"] = json!({"fsGroup": 1234});
    run(&cluster, "writes", spec).await;
    assert_eq!(log(&cluster, "writes").await, "1234\n");
    run(&cluster, "reads", on_node("cat /tmp/a/f; cat /etc/hostname", true)).await;
    assert_eq!(log(&cluster, "reads").await, "text\nnode-1\n");
    let leaves = "umount /tmp/a && ls /tmp/a && rm -r /tmp/a && ls /tmp/a; umount /tmp/a";
    run(&cluster, "leaves", on_node(leaves, true)).await;
    let said = log(&cluster, "leaves").await;
    assert!(said.ends_with("umount: can't unmount /tmp/a: Invalid argument\n"), "{said}");
    assert!(said.starts_with("ls: ") && said.contains("No such file or directory"), "{said}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_file_of_a_node_is_a_device_with_a_file_system() {
    let cluster = start().await;
    let find = "DEV=$(losetup | grep /tmp/d/file | awk '{ print $1 }') 2>&1 > /dev/null && echo ${DEV}";
    let attach = format!(
        "mkdir -p /tmp/d && dd if=/dev/zero of=/tmp/d/file bs=4096 count=5120 2>/dev/null \
        && losetup -f /tmp/d/file && {find}"
    );
    run(&cluster, "attach", on_node(&attach, true)).await;
    assert_eq!(log(&cluster, "attach").await, "/dev/loop0\n");
    let format = "mkfs -t ext4 /dev/loop0 > /dev/null && mount -t ext4 /dev/loop0 /tmp/d && chmod o+rwx /tmp/d \
        && echo kept > /tmp/d/f && ls /tmp/d && umount /tmp/d && ls /tmp/d && mount /dev/loop0 /tmp/d && ls /tmp/d";
    run(&cluster, "format", on_node(format, true)).await;
    assert_eq!(log(&cluster, "format").await, "f\nfile\nf\n");
    volume_and_claim(&cluster, "local", json!({"local": {"path": "/dev/loop0"}}), "Block").await;
    let pod = run(&cluster, "maps", claimed("local", script("c", "test -b /mnt/volume1", mapped()))).await;
    assert_eq!(pod["status"]["phase"], "Succeeded", "{}", pod["status"]);
    let detach = "umount /tmp/d && losetup -d /dev/loop0 && rm -r /tmp/d && losetup | wc -l";
    run(&cluster, "detach", on_node(detach, true)).await;
    assert_eq!(log(&cluster, "detach").await, "0\n");
    cluster.stop().await;
}

#[tokio::test]
async fn another_root_is_where_its_files_are() {
    let cluster = start().await;
    let volumes = json!([{"name": "host", "hostPath": {"path": "/"}}]);
    let mounts = json!({"volumeMounts": [{"name": "host", "mountPath": "/host"}]});
    let changes = "chroot /host sh -c 'echo x > /tmp/x; cat /etc/hostname; pwd'; cat /host/tmp/x; \
        cat /tmp/x 2>/dev/null || echo none; chroot /host/none true || echo $?";
    let container = script("c", changes, mounts);
    run(
        &cluster,
        "changes",
        json!({"restartPolicy": "Never", "containers": [container], "volumes": volumes}),
    )
    .await;
    let said = log(&cluster, "changes").await;
    assert!(said.starts_with("node-1\n/\nx\nnone\nchroot: can't change root directory"), "{said}");
    let enters = json!({"restartPolicy": "Never", "hostPID": true, "containers": [script("c",
        "nsenter -t 1 -m cat /tmp/x", json!({"securityContext": {"privileged": true}}))]});
    run(&cluster, "enters", enters).await;
    assert_eq!(log(&cluster, "enters").await, "x\n");
    cluster.stop().await;
}
