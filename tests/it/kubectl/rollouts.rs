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
