//! `kubectl get` in all its forms, `describe`, `explain`, discovery.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use super::NGINX;
use crate::support::{Kubectl, PATIENCE, with_each_kubectl};

#[test]
fn get_shows_tables_trees_and_paths() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        kubectl.ok(&format!("create -f {file}"));
        kubectl.until("get deployment nginx", |text| text.contains(" 2/2 "));
        let wide = kubectl.ok("get deploy,rs,pods -o wide");
        for heading in ["UP-TO-DATE", "DESIRED", "NOMINATED NODE", "READINESS GATES", "SELECTOR"] {
            assert!(wide.contains(heading), "no {heading} in\n{wide}");
        }
        let yaml = kubectl.ok("get deployment nginx -o yaml");
        for line in
            ["progressDeadlineSeconds: 600", "terminationMessagePath: /dev/termination-log", "maxSurge: 25%"]
        {
            assert!(yaml.contains(line), "no {line} in\n{yaml}");
        }
        assert_eq!(kubectl.ok("get pods -l app=none"), "");
        let running = kubectl.ok("get pods --field-selector status.phase=Running --no-headers");
        assert_eq!(running.lines().count(), 2);
        let bad = kubectl.fails("get pods --field-selector spec.nowhere=1");
        assert!(bad.contains("field label not supported: spec.nowhere"), "{bad}");
        let sorted =
            kubectl.ok("get namespaces --sort-by=.metadata.name -o jsonpath={.items[*].metadata.name}");
        assert_eq!(sorted, "default kube-node-lease kube-public kube-system");
        let custom = kubectl.ok("get pods -o custom-columns=N:.spec.containers[0].image --no-headers");
        assert_eq!(custom, "nginx:1.25\nnginx:1.25\n");
        let events = kubectl.until("get events", |text| text.contains("Container started"));
        for text in
            ["Scaled up replica set nginx-", "Created pod: nginx-", "Successfully assigned default/nginx-"]
        {
            assert!(events.contains(text), "no {text} in\n{events}");
        }
        assert!(kubectl.fails("get pod nobody").contains(r#"pods "nobody" not found"#));
        assert!(
            kubectl.fails("get nothing").contains(r#"the server doesn't have a resource type "nothing""#)
        );
        kubectl.ok("get all -A");
    });
}

#[test]
fn a_watch_shows_what_happens() {
    with_each_kubectl(|_, kubectl| {
        let watch = Watch::start(kubectl, "get pods -w --output-watch-events");
        kubectl.ok("run web --image=nginx");
        watch.wait_for(&["web", "1/1", "Running"]);
        kubectl.ok("label pod web tier=front");
        watch.wait_for(&["MODIFIED", "web"]);
        kubectl.ok("delete pod web --wait=false");
        watch.wait_for(&["DELETED", "web"]);
    });
}

/// A kubectl that goes on printing, read line by line. Ended when dropped.
struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn start(kubectl: &Kubectl, line: &str) -> Watch {
        let mut child = kubectl.command(line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Watch { child, lines }
    }

    fn wait_for(&self, words: &[&str]) {
        let fits = |line: String| words.iter().all(|word| line.contains(word));
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            if fits(line) {
                return;
            }
        }
        panic!("the watch never printed {words:?}");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn describe_tells_what_people_look_for() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("nginx.yaml", NGINX);
        kubectl.ok(&format!("create -f {file}"));
        kubectl.until("get deployment nginx", |text| text.contains(" 2/2 "));
        let deployment =
            kubectl.until("describe deployment nginx", |text| text.contains("ScalingReplicaSet"));
        for text in
            ["2 desired | 2 updated | 2 total | 2 available", "25% max unavailable", "NewReplicaSetAvailable"]
        {
            assert!(deployment.contains(text), "no {text} in\n{deployment}");
        }
        // One pod: the newest kubectl tells no events when it describes several.
        let name = kubectl.ok("get pods -l app=nginx -o jsonpath={.items[0].metadata.name}");
        let pod = kubectl.until(&format!("describe pod {name}"), |text| text.contains("Container started"));
        for text in
            ["Controlled By:  ReplicaSet/nginx-", "QoS Class:", "BestEffort", "kube-api-access-", "Ready"]
        {
            assert!(pod.contains(text), "no {text} in\n{pod}");
        }
        let node = kubectl.ok("describe node node-1");
        for text in ["kubelet is posting ready status", "Allocated resources:", "PodCIDR:", "RenewTime:"] {
            assert!(node.contains(text), "no {text} in\n{node}");
        }
        kubectl.ok("describe namespace default");
        kubectl.ok("describe service kubernetes");
    });
}

#[test]
fn explain_and_discovery() {
    with_each_kubectl(|_, kubectl| {
        let strategy = kubectl.ok("explain deployment.spec.strategy");
        for text in
            ["rollingUpdate", "The deployment strategy to use to replace existing pods with new ones."]
        {
            assert!(strategy.contains(text), "no {text} in\n{strategy}");
        }
        let recursive = kubectl.ok("explain pod --recursive");
        assert!(recursive.contains("terminationGracePeriodSeconds"));
        let resources = kubectl.ok("api-resources");
        let line =
            |kind: &str| resources.lines().find(|line| line.ends_with(kind)).unwrap_or_default().to_owned();
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(line(" Deployment")), ["deployments", "deploy", "apps/v1", "true", "Deployment"]);
        assert_eq!(words(line(" Node")), ["nodes", "no", "v1", "false", "Node"]);
        let versions = kubectl.ok("api-versions");
        for version in ["v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "discovery.k8s.io/v1"] {
            assert!(versions.lines().any(|line| line == version), "no {version} in\n{versions}");
        }
        let version = kubectl.ok("version -o json");
        assert!(version.contains(r#""gitVersion": "v1.36.2+kubarium"#), "{version}");
        let info = kubectl.ok("cluster-info");
        assert!(info.contains("https://127.0.0.1:"), "{info}");
        kubectl.ok("get --raw /readyz");
        assert!(kubectl.ok("get --raw /metrics").contains("apiserver_request_total"));
    });
}
