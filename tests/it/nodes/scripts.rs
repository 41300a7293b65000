//! Scripts of containers: what is left of one run for the next, and what becomes of those that go too far.

use kubarium::kubelet::exec::ExecCommand;
use kubarium::machine::bounds::ScriptFault;
use serde_json::{Value, json};

use super::Nodes;

/// There is nobody here to make the certificate that is mounted with a token.
fn busybox(script: &str) -> Value {
    let mut spec = super::busybox(script);
    spec["automountServiceAccountToken"] = false.into();
    spec
}

fn has_ended(pod: &Value) -> bool {
    ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase)
}

/// With a volume at `/data`.
fn with_volume(mut spec: Value, source: Value) -> Value {
    spec["volumes"] = json!([source]);
    spec["volumes"][0]["name"] = "data".into();
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    spec
}

async fn log(nodes: &Nodes, pod: &str) -> String {
    use futures::StreamExt;
    let options = kubarium::kubelet::server::LogOptions { container: "main".into(), ..Default::default() };
    let log = nodes.kubelet("node-1").container_logs("default", pod, options).await.unwrap();
    let pieces: Vec<_> = log.collect().await;
    String::from_utf8(pieces.concat()).unwrap()
}

#[tokio::test]
async fn pods_of_a_node_share_its_files() {
    let nodes = Nodes::start(2).await;
    let script = "if [[ -f /data/x ]] ; then exit 0 ; else touch /data/x ; exit 1 ; fi";
    let own = std::env::temp_dir().join("no file of the machine");
    for (name, node, phase) in
        [("first", "node-1", "Failed"), ("second", "node-1", "Succeeded"), ("elsewhere", "node-2", "Failed")]
    {
        let mut spec = with_volume(busybox(script), json!({"hostPath": {"path": own}}));
        spec["nodeName"] = node.into();
        nodes.create_pod(name, spec).await;
        let pod = nodes.pod_when(name, has_ended).await;
        assert_eq!(pod["status"]["phase"], phase, "{name}");
    }
    assert!(!own.exists());
}

#[tokio::test]
async fn what_is_added_to_a_file_outlives_a_restart() {
    let nodes = Nodes::start(1).await;
    let script = "echo line >> /data/f; wc -l /data/f; [ $(wc -l /data/f | awk {'print $1'}) -ge 2 ]";
    let mut spec = with_volume(busybox(script), json!({"emptyDir": {}}));
    spec["restartPolicy"] = "OnFailure".into();
    nodes.create_pod("twice", spec).await;
    let pod = nodes.pod_when("twice", has_ended).await;
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(log(&nodes, "twice").await, "2 /data/f\n");
}

#[tokio::test]
async fn a_script_that_goes_too_far_ends_with_a_reason() {
    let nodes = Nodes::start(1).await;
    let deep = format!("{}echo hi{}", "(".repeat(5000), ")".repeat(5000));
    let faults = [
        ("deep", deep.as_str(), ScriptFault::Depth),
        ("big", "x=a; while [ 1 = 1 ]; do x=$x$x; done", ScriptFault::Memory),
        ("open", "echo 'open", ScriptFault::Syntax("unterminated quoted string".into())),
    ];
    for (name, script, fault) in faults {
        nodes.create_pod(name, busybox(script)).await;
        let pod = nodes.pod_when(name, has_ended).await;
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(ended["exitCode"], fault.code(), "{name}");
        assert_eq!(ended["reason"], fault.reason(), "{name}");
        assert_eq!(ended["message"], fault.to_string(), "{name}");
        assert_eq!(log(&nodes, name).await, format!("sh: {fault}\n"));
        let told = format!("Error: container main: {fault}");
        let is_told = || async {
            nodes.events(name).await.contains(&("Failed".to_owned(), told.clone())).then_some(())
        };
        nodes.until(is_told).await;
    }
}

#[tokio::test]
async fn variables_that_grow_too_long_keep_a_container_from_starting() {
    let nodes = Nodes::start(1).await;
    let twice = |at: usize| json!({"name": format!("V{at}"), "value": format!("$(V{0})$(V{0})", at - 1)});
    let first = json!({"name": "V0", "value": "0123456789"});
    let env: Vec<Value> = [first].into_iter().chain((1..40).map(twice)).collect();
    let mut spec = busybox("env");
    spec["containers"][0]["env"] = env.into();
    nodes.create_pod("long", spec).await;
    let waiting = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
    let is_refused = |pod: &Value| waiting(pod)["reason"] == "CreateContainerConfigError";
    let pod = nodes.pod_when("long", is_refused).await;
    let why = "argument list too long: variable V14 is over 131072 bytes";
    assert_eq!(waiting(&pod)["message"], why);
}

#[tokio::test]
async fn a_command_that_goes_too_far_is_an_error_of_exec() {
    let nodes = Nodes::start(1).await;
    nodes.create_pod("web", busybox("sleep 600")).await;
    nodes.pod_when("web", |pod| pod["status"]["phase"] == "Running").await;
    let kubelet = nodes.kubelet("node-1");
    let run = async |script: &str| {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let command = ExecCommand { container: "main".into(), words, ..ExecCommand::default() };
        let executed = kubelet.exec("default", "web", &command).await.unwrap();
        (executed.end.map(|(_, code)| code), executed.errors)
    };
    let deep = format!("{}echo hi{}", "echo $(".repeat(5000), ")".repeat(5000));
    for (script, fault) in [
        (deep.as_str(), ScriptFault::Depth),
        ("x=a; while [ 1 = 1 ]; do x=$x$x; done", ScriptFault::Memory),
        ("i=0; while [ 1 = 1 ]; do i=$((i+1)); touch /tmp/$i; done", ScriptFault::Files),
    ] {
        assert_eq!(run(script).await, (Some(fault.code()), format!("sh: {fault}\n")));
    }
    // What was written before the end stays, and no more.
    assert_eq!(run("touch /tmp/more").await.0, Some(ScriptFault::Files.code()));
    assert_eq!(run("echo hi").await, (Some(0), String::new()));
}

/// `/bin/echo` is `echo`, and the last word from a log ends as the log did.
#[tokio::test]
async fn the_last_word_is_as_it_was_said() {
    let nodes = Nodes::start(1).await;
    let mut spec = busybox("/bin/echo -n DONE; /bin/false");
    spec["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError".into();
    nodes.create_pod("done", spec).await;
    let pod = nodes.pod_when("done", has_ended).await;
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"], "DONE");
}

/// A script that is not known is not played: its container just runs.
#[tokio::test]
async fn a_container_whose_program_is_not_known_runs() {
    let nodes = Nodes::start(1).await;
    let mut spec = busybox("my-server; echo 'open");
    // Of BusyBox' image everything is known.
    spec["containers"][0]["image"] = "my-app".into();
    nodes.create_pod("server", spec).await;
    nodes.pod_when("server", |pod| pod["status"]["phase"] == "Running").await;
}
