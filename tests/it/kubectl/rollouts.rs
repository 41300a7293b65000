//! Rollouts: status, history, undo, restart, pause and resume; the story that `kubarium trace` tells.

use super::NGINX;
use crate::support::{texts, with_each_kubectl};

#[test]
fn a_rollout_goes_forward_and_back() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        kubectl.ok(&format!("apply -f {file}"));
        let done = kubectl.ok("rollout status deployment/nginx --timeout=60s");
        assert!(done.ends_with("deployment \"nginx\" successfully rolled out\n"), "{done}");
        kubectl.ok("set image deployment/nginx nginx=nginx:1.27");
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        let image =
            || kubectl.ok("get deployment nginx -o jsonpath={.spec.template.spec.containers[0].image}");
        assert_eq!(image(), "nginx:1.27");
        let history = kubectl.ok("rollout history deployment/nginx");
        assert!(history.contains("\n1 ") && history.contains("\n2 "), "{history}");
        assert_eq!(kubectl.ok("rollout undo deployment/nginx"), "deployment.apps/nginx rolled back\n");
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        assert_eq!(image(), "nginx:1.25");
        let history = kubectl.ok("rollout history deployment/nginx");
        assert!(!history.contains("\n1 ") && history.contains("\n3 "), "{history}");
        kubectl.ok("rollout undo deployment/nginx --to-revision=2");
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        assert_eq!(image(), "nginx:1.27");
        let sets =
            kubectl.until("get rs --no-headers", |text| text.lines().any(|line| line.contains(" 2  ")));
        assert_eq!(sets.lines().count(), 2, "{sets}");
    });
}

#[test]
fn a_rollout_restarts_pauses_and_resumes() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        kubectl.ok(&format!("apply -f {file}"));
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        kubectl.ok("rollout restart deployment/nginx");
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        assert_eq!(kubectl.ok("get rs -o name").lines().count(), 2);
        kubectl.ok("rollout pause deployment/nginx");
        kubectl.ok("set image deployment/nginx nginx=nginx:9");
        let paused =
            "get deployment nginx -o jsonpath={.status.conditions[?(@.type==\"Progressing\")].reason}";
        kubectl.until(paused, |text| text == "DeploymentPaused");
        assert_eq!(kubectl.ok("get rs -o name").lines().count(), 2);
        kubectl.ok("rollout resume deployment/nginx");
        kubectl.ok("rollout status deployment/nginx --timeout=60s");
        assert_eq!(kubectl.ok("get rs -o name").lines().count(), 3);
    });
}

const SETS: &str = "apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: web
spec:
  replicas: 3
  serviceName: web
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: nginx
        image: nginx:1.25
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
spec:
  selector:
    matchLabels:
      app: agent
  template:
    metadata:
      labels:
        app: agent
    spec:
      containers:
      - name: agent
        image: agent:1
";

#[test]
fn sets_roll_out_and_back() {
    with_each_kubectl(|up, kubectl| {
        kubectl.ok(&format!("apply -f {}", up.file("sets.yaml", SETS)));
        let sets = [
            ("statefulset/web", "nginx", "partitioned roll out complete: 3 new pods have been updated..."),
            ("daemonset/agent", "agent", "successfully rolled out"),
        ];
        let arrived = |set: &str, said: &str| {
            let done = kubectl.ok(&format!("rollout status {set} --timeout=60s"));
            assert!(done.contains(said), "{done}");
        };
        for (set, container, said) in sets {
            let image =
                || kubectl.ok(&format!("get {set} -o jsonpath={{.spec.template.spec.containers[0].image}}"));
            arrived(set, said);
            let first = image();
            kubectl.ok(&format!("set image {set} {container}={container}:9"));
            arrived(set, said);
            let history = kubectl.ok(&format!("rollout history {set}"));
            assert!(history.contains("\n1 ") && history.contains("\n2 "), "{history}");
            let kept = kubectl.ok(&format!("rollout history {set} --revision=1"));
            assert!(kept.contains(&first), "{kept}");
            let undone = kubectl.ok(&format!("rollout undo {set}"));
            assert!(undone.ends_with("rolled back\n"), "{undone}");
            arrived(set, said);
            assert_eq!(image(), first);
            let history = kubectl.ok(&format!("rollout history {set}"));
            assert!(!history.contains("\n1 ") && history.contains("\n3 "), "{history}");
            kubectl.ok(&format!("rollout undo {set} --to-revision=2"));
            kubectl.ok(&format!("rollout restart {set}"));
            arrived(set, said);
        }
        let refused = kubectl.fails("drain node-1");
        assert!(refused.contains("cannot delete DaemonSet-managed Pods"), "{refused}");
        let drained = kubectl.ok("drain node-1 --ignore-daemonsets --timeout=60s");
        assert!(drained.ends_with("node/node-1 drained\n"), "{drained}");
        let left = kubectl.ok("get pods --field-selector=spec.nodeName=node-1 -o name");
        assert!(left.starts_with("pod/agent-") && left.lines().count() == 1, "{left}");
        arrived("daemonset/agent", "successfully rolled out");
    });
}

#[test]
fn a_trace_tells_the_story_from_kubectl_to_the_kubelet() {
    with_each_kubectl(|up, kubectl| {
        kubectl.ok("create namespace test");
        kubectl.ok("create deployment nginx-deployment --image nginx -n test");
        kubectl.ok("rollout status deployment/nginx-deployment -n test --timeout=60s");
        let output = up.kubarium(&["trace", "deployment/nginx-deployment", "-n", "test", "--name", "test"]);
        let (story, said) = texts(&output);
        assert!(output.status.success(), "{said}");
        let mut rest = story.as_str();
        // In this order: the request, the store, three controllers' work, the scheduler, the kubelet.
        let stations = ["create", "deployment", "replicaset", "kube-scheduler", "kubelet"];
        for station in stations {
            let at = rest
                .find(station)
                .unwrap_or_else(|| panic!("no {station} after what came before in\n{story}"));
            rest = &rest[at..];
        }
        let none = up.kubarium(&["trace", "deployment/nobody", "--name", "test"]);
        assert!(!none.status.success());
    });
}
