//! `kubarium trace`: the story, parts of it, its other forms, and as it happens.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;

use serde_json::Value;
use sync::Mutex;

use super::Home;
use crate::support::{command, eventually};

const PENDING: &str = "
apiVersion: v1
kind: Pod
metadata: {name: picky}
spec:
  nodeSelector: {disk: ssd}
  containers: [{name: main, image: nginx}]
";

#[test]
fn a_story_is_told_in_stages_in_parts_and_in_other_forms() {
    let home = Home::new();
    let file = home.file("pod.yaml", PENDING);
    home.ok(&format!("up --detach --name tale --nodes 2 --keep-bodies -f {file}"));
    home.kubectl("create deployment web --image nginx --replicas 3");
    home.kubectl("rollout status deployment/web --timeout=60s");
    let story = home.ok("trace deploy/web");
    for words in [
        "kubernetes-admin creates deployments.apps default/web, as apps/v1",
        "X509 knows kubernetes-admin",
        ": /registry/deployments/default/web as apps/v1,",
        "informers of kube-controller-manager hear of it (Added, OnAdd), which goes into the queues of deployment",
        "replicaset-controller creates 3 pods: web-",
        "(wants 3 pods, has 0)",
        "kube-scheduler binds 3 pods: web-",
        "score of node-",
        "RunPodSandbox (10.244.",
        "every step: --full",
    ] {
        assert!(story.contains(words), "{words:?} is not in\n{story}");
    }
    assert!(story.lines().count() < 40, "a screenful or so:\n{story}");
    let full = home.ok("trace deploy/web --full");
    assert!(full.lines().count() > 150 && full.contains("(Added; OnAdd of"), "{full}");
    assert!(
        full.contains("(Node: no opinion)") && full.contains("event Started about default/web-"),
        "{full}"
    );
    let writes = home.ok("trace deploy/web --full --only writes --lane apiserver");
    assert!(writes.lines().skip(1).all(|line| line.contains("apps") || line.contains(" at ")), "{writes}");
    assert!(!home.ok("trace deploy/web --lane scheduler").contains("replicaset-controller creates"));
    let user = home.ok("trace --user replicaset-controller --only writes");
    assert!(
        user.starts_with("the whole cluster") && user.contains("replicaset-controller creates"),
        "{user}"
    );
    let long_ago = home.ok("trace deploy/web --since 0s");
    assert!(
        long_ago.contains("nothing that is recorded of deployments.apps default/web passes"),
        "{long_ago}"
    );
    let json: Value = serde_json::from_str(&home.ok("trace deploy/web -o json")).unwrap();
    assert!(json["steps"].is_array() && json["stages"][0]["kind"] == "request", "{json}");
    assert!(home.ok("trace deploy/web -o mermaid").starts_with("sequenceDiagram"));
    let spans = home.ok("trace deploy/web -o otlp");
    assert!(spans.contains("\"resourceSpans\"") && !spans.contains("\"name\":\"step\""), "{spans}");
    let pod = home.ok("trace pod/picky");
    let why = " => pod default/picky has no node: node-1, node-2: NodeAffinity: node(s) didn't match Pod's node \
               affinity/selector";
    assert!(pod.contains(why) && pod.contains("Priority: spec.preemptionPolicy"), "{pod}");
    let bodies = home.ok("trace deploy/web --bodies");
    for words in [
        " POST /apis/apps/v1/namespaces/default/deployments?fieldManager=kubectl-create",
        "> user-agent: kubectl",
        "\"containers\": [",
        "\n< 201\n",
        "\n< audit-id: ",
        "kept are those of the last 128 writes of people",
    ] {
        assert!(bodies.contains(words), "{words:?} is not in\n{bodies}");
    }
    assert!(home.fails("trace").contains("names no object"));
    assert!(home.fails("trace pod/picky --since soon").contains("--since \"soon\""));
}

#[test]
fn a_story_is_followed_until_the_cluster_is_gone() {
    let home = Home::new();
    home.ok("up --detach --name tale");
    let mut follow = command(home.path())
        .args(["trace", "configmap/late", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(follow.stdout.take().unwrap());
    let told = Arc::<Mutex<Vec<String>>>::default();
    let heard = told.clone();
    let hearing = thread::spawn(move || out.lines().for_each(|line| heard.lock().push(line.unwrap())));
    let is_told = |words: &str| told.lock().iter().any(|line| line.contains(words));
    // Only what happens from the moment on at which it follows is told, and nobody says when that is.
    eventually("a story to be told", || {
        home.kubectl("create configmap late");
        home.kubectl("delete configmap late");
        is_told("kubernetes-admin creates configmaps default/late").then_some(())
    });
    home.ok("down");
    hearing.join().unwrap();
    assert!(is_told("etcd has it created"), "{:?}", told.lock());
    assert!(follow.wait().unwrap().success());
}
