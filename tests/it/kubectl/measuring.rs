//! `kubectl top` and `kubectl autoscale`: what pods use, and how many there are for it. Time passes sixty times as
//! fast.

use crate::support::{Kubectl, Up, kubectls};

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
      annotations:
        kubarium.dev/usage-cpu: 80m
        kubarium.dev/usage-memory: 32Mi
    spec:
      containers:
      - name: web
        image: nginx
        resources:
          requests:
            cpu: 100m
            memory: 64Mi
";

/// The words of each line.
fn table(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn what_is_used_is_listed_and_scales() {
    for program in kubectls() {
        let up = Up::start_with(&["--nodes", "1", "--clock", "x60"]);
        let kubectl = Kubectl::new(&program, &up);
        kubectl.ok(&format!("apply -f {}", up.file("web.yaml", WEB)));
        kubectl.ok("rollout status deployment/web --timeout=60s");
        let pods = kubectl.until("top pod --no-headers", |text| text.lines().count() == 2);
        assert!(table(&pods).iter().all(|line| line[1..] == ["80m", "32Mi"]), "{pods}");
        let head = kubectl.ok("top pod --containers -l app=web");
        assert!(head.starts_with("POD "), "{head}");
        let containers = kubectl.ok("top pod --containers --no-headers");
        assert!(table(&containers).iter().all(|line| line[1..] == ["web", "80m", "32Mi"]), "{containers}");
        let sum = kubectl.ok("top pod --sum --no-headers");
        assert_eq!(*table(&sum).last().unwrap(), ["160m", "64Mi"], "{sum}");
        let nodes = kubectl.ok("top node --no-headers");
        let node = table(&nodes).concat();
        assert!(node.len() == 5 && node[0] == "node-1" && node[2].ends_with('%'), "{nodes}");
        let said = kubectl.ok("autoscale deployment web --cpu-percent=50 --min=2 --max=4");
        assert_eq!(said, "horizontalpodautoscaler.autoscaling/web autoscaled\n");
        kubectl.until("get deployment web -o jsonpath={.status.readyReplicas}", |text| text == "4");
        let hpa = kubectl.until("get hpa web --no-headers", |text| text.contains("80%/50%"));
        assert!(table(&hpa)[0].contains(&"Deployment/web"), "{hpa}");
        let told = kubectl.ok("describe hpa web");
        assert!(told.contains("New size: 4; reason: cpu resource utilization"), "{told}");
    }
}
