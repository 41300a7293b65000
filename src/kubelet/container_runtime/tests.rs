//! The simulated runtime, through its seam alone.

use std::time::Duration;

use super::given::{running, runtime};
use super::services::{
    Command, ContainerConfig, Exit, Image, PodSandboxConfig, PodSandboxStatus, RuntimeService,
};
use apimachinery::object::ObjectMeta;
use apimachinery::time::Time;
use apis::views::pod::Pod;
use machine::file_system::Tree;
use machine::surroundings::Surroundings;
use serde_json::{Value, json};

const NOW: Time = Time::UNIX_EPOCH;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn pod(spec: Value, annotations: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"annotations": annotations}, "spec": spec})).unwrap()
}

fn metadata(uid: &str) -> ObjectMeta {
    ObjectMeta { uid: uid.into(), ..ObjectMeta::default() }
}

#[test]
fn sandboxes_have_addresses_until_they_are_stopped() {
    let runtime = runtime();
    let pod = pod(json!({"containers": [{"name": "a", "image": "nginx"}]}), json!({}));
    let run = |uid: &str, attempt| {
        let metadata = metadata(uid);
        runtime.run_pod_sandbox(&PodSandboxConfig { pod: &pod, metadata: &metadata, attempt }, NOW)
    };
    for (uid, ip) in [("1", "10.244.1.2"), ("2", "10.244.1.3"), ("3", "10.244.1.4"), ("4", "10.244.1.5")] {
        let call = run(uid, 0);
        assert_eq!((call.returns_at, call.result), (Some(NOW), Ok(PodSandboxStatus { ip: ip.into() })));
    }
    assert!(run("5", 0).result.is_ok());
    let refused = run("6", 0).result.unwrap_err();
    assert!(refused.message.ends_with("no IP addresses available in range"), "{refused:?}");
    assert_eq!(runtime.pod_sandbox_status("6"), None);
    runtime.stop_pod_sandbox("2");
    runtime.stop_pod_sandbox("2");
    assert_eq!(runtime.pod_sandbox_status("2"), None);
    assert_eq!(run("6", 1).result.unwrap().ip, "10.244.1.3");
}

#[test]
fn an_image_is_there_when_its_pull_has_returned() {
    let runtime = runtime();
    let pod = pod(
        json!({"containers": [{"name": "a", "image": "nginx"}]}),
        json!({"kubarium.dev/stage": "slow-start"}),
    );
    let metadata = metadata("1");
    let container = &pod.spec.containers[0];
    let config = ContainerConfig { pod: &pod, metadata: &metadata, container, attempt: 0 };
    let call = runtime.pull_image(&config, NOW);
    let at = call.returns_at.unwrap();
    assert!(at > NOW);
    assert_eq!((runtime.image_status("nginx", NOW), runtime.list_images(9, NOW).1), (None, 0));
    let call = call.returned(NOW).unwrap_err();
    let image: Image = call.returned(at).unwrap().unwrap();
    assert_eq!(runtime.image_status("nginx", at), Some(image));
}

#[test]
fn a_container_is_known_from_its_start_to_its_removal() {
    let script = "echo hello; sleep 10; exit 3";
    let given = running(json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script]}));
    let (runtime, config, id) = (&given.runtime, given.config(), &given.id);
    assert_eq!(runtime.list_containers(), std::slice::from_ref(id));
    let status = runtime.container_status(id).unwrap();
    let end = (NOW + seconds(10), Exit { code: 3, ..Exit::default() });
    assert_eq!((status.ready_at, status.ends.clone()), (Some(NOW), Some(end.clone())));
    let said = runtime.container_log(&config, id, NOW, NOW + seconds(1));
    assert_eq!(said[0].text, "hello");
    let exited = runtime.exited_container(&config, id, &end.1, end.0);
    assert!(exited.is_known && exited.fault.is_none() && exited.message.is_empty());
    runtime.remove_container(id);
    assert!(runtime.container_status(id).is_none() && runtime.list_containers().is_empty());
}

#[test]
fn what_a_command_writes_is_there_for_the_next() {
    let given = running(json!({"name": "a", "image": "busybox", "command": ["sleep", "600"]}));
    let (runtime, config, id) = (&given.runtime, given.config(), &given.id);
    let run = |script: &str| {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let command = Command { words, ..Command::default() };
        let response = runtime.exec(&config, id, &command, &|| Some(Surroundings::default()), NOW).unwrap();
        response.executed.unwrap()
    };
    assert_eq!(run("echo 1 > /tmp/x").end, Some((Duration::ZERO, 0)));
    // The second time nothing is shown that is new.
    assert!(runtime.update_container(&config, id, &|_| Tree::new(), NOW));
    assert!(!runtime.update_container(&config, id, &|_| Tree::new(), NOW));
    assert_eq!(run("cat /tmp/x").out, "1\n");
    // A hook's command leaves nothing.
    let sync = |script: &str| runtime.exec_sync(id, &["sh", "-c", script].map(str::to_owned));
    assert_eq!(sync("sleep 2; echo 2 > /tmp/x").unwrap().took, seconds(2));
    assert_eq!(run("cat /tmp/x").out, "1\n");
}

#[test]
fn a_process_ends_within_its_timeout() {
    let lingers = "trap 'sleep 5; exit 4' TERM; while true; do sleep 1; done";
    let given = running(json!({"name": "a", "image": "busybox", "command": ["sh", "-c", lingers]}));
    let stop = |timeout| given.runtime.stop_container(&given.config(), &given.id, timeout, NOW + seconds(9));
    let ended = |call: super::services::Call<Exit>| (call.returns_at, call.result.unwrap().code);
    assert_eq!(ended(stop(seconds(30))), (Some(NOW + seconds(15)), 4));
    assert_eq!(ended(stop(seconds(2))), (Some(NOW + seconds(11)), 137));
}
