//! More rows of sig-cli: a controller and its pods, differences, dry runs, logs, a proxy on a free port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use crate::support::{Kubectl, Up, kubectls};

/// Row: kubectl - a replication controller is scaled, labelled, annotated and exposed
/// Row: kubectl - a difference of images is found
/// Row: kubectl - a dry run changes nothing
/// Row: kubectl - logs are retrieved and filtered
/// Row: kubectl - a proxy on a free port
#[test]
fn kubectl_does_what_suites_ask_of_it() {
    let up = Up::start();
    let kubectl = Kubectl::new(kubectls().last().unwrap(), &up);
    controller(&up, &kubectl);
    expose(&kubectl);
    difference(&up, &kubectl);
    dry_run(&kubectl);
    logs(&kubectl);
    proxy(&kubectl);
}

const CONTROLLER: &str = "apiVersion: v1
kind: ReplicationController
metadata: {name: update-demo-nautilus}
spec:
  replicas: 2
  selector: {name: update-demo, version: nautilus}
  template:
    metadata: {labels: {name: update-demo, version: nautilus}}
    spec:
      containers:
      - {name: update-demo, image: registry.k8s.io/e2e-test-images/nautilus:1.7, ports: [{containerPort: 6379}]}
";

/// The templates that upstream asks with.
const NAMES: &str = "get pods -o template --template={{range.items}}{{.metadata.name}}{{\"\\x20\"}}{{end}} -l name=update-demo";

fn count(kubectl: &Kubectl, wanted: usize) -> Vec<String> {
    let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    names(&kubectl.until(NAMES, |text| names(text).len() == wanted))
}

fn controller(up: &Up, kubectl: &Kubectl) {
    kubectl.ok(&format!("create -f {}", up.file("controller.yaml", CONTROLLER)));
    count(kubectl, 2);
    for size in [1, 2] {
        kubectl.ok(&format!("scale rc update-demo-nautilus --replicas={size} --timeout=5m"));
        count(kubectl, size);
    }
    let pod = count(kubectl, 2).remove(0);
    kubectl.ok(&format!("label pods {pod} testing-label=testing-label-value"));
    assert!(kubectl.ok(&format!("get pod {pod} -L testing-label")).contains("testing-label-value"));
    kubectl.ok(&format!("label pods {pod} testing-label-"));
    assert!(!kubectl.ok(&format!("get pod {pod} -L testing-label")).contains("testing-label-value"));
    for pod in count(kubectl, 2) {
        kubectl.ok(&format!(r#"patch pod {pod} -p {{"metadata":{{"annotations":{{"x":"y"}}}}}}"#));
        assert_eq!(kubectl.ok(&format!("get pod {pod} -o jsonpath={{.metadata.annotations.x}}")), "y");
    }
}

fn expose(kubectl: &Kubectl) {
    kubectl.ok("expose rc update-demo-nautilus --name=rm2 --port=1234 --target-port=6379");
    kubectl.ok("expose service rm2 --name=rm3 --port=2345 --target-port=6379");
    for (service, port) in [("rm2", "1234"), ("rm3", "2345")] {
        let ports = format!(
            "get service {service} -o jsonpath={{.spec.ports[0].port}}/{{.spec.ports[0].targetPort}}"
        );
        assert_eq!(kubectl.ok(&ports), format!("{port}/6379"));
        let addresses = format!("get endpoints {service} -o jsonpath={{.subsets[*].ports[*].port}}");
        kubectl.until(&addresses, |port| port == "6379");
    }
    kubectl.ok("delete service rm2 rm3");
    kubectl.ok("delete rc update-demo-nautilus --grace-period=0 --force");
    count(kubectl, 0);
}

fn difference(up: &Up, kubectl: &Kubectl) {
    let deployment = "apiVersion: apps/v1
kind: Deployment
metadata: {name: httpd-deployment}
spec:
  selector: {matchLabels: {app: httpd}}
  template:
    metadata: {labels: {app: httpd}}
    spec: {containers: [{name: httpd, image: IMAGE}]}
";
    kubectl.ok(&format!("create -f {}", up.file("live.yaml", &deployment.replace("IMAGE", "httpd:2.4"))));
    let declared = up.file("declared.yaml", &deployment.replace("IMAGE", "busybox:1.36"));
    let output = kubectl.run(&format!("diff -f {declared}"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for line in ["image: httpd:2.4", "image: busybox:1.36"] {
        assert!(text.lines().any(|found| found.contains(line)), "no {line} in\n{text}");
    }
    kubectl.ok("delete deployment httpd-deployment");
}

fn dry_run(kubectl: &Kubectl) {
    kubectl.ok("run e2e-test-httpd-pod --image=httpd:2.4 --labels=run=e2e-test-httpd-pod");
    let patch = r#"{"spec":{"containers":[{"name":"e2e-test-httpd-pod","image":"busybox:1.36"}]}}"#;
    kubectl.ok(&format!("patch pod e2e-test-httpd-pod -p {patch} --dry-run=server"));
    let image = "get pod e2e-test-httpd-pod -o jsonpath={.spec.containers[0].image}";
    assert_eq!(kubectl.ok(image), "httpd:2.4");
}

fn logs(kubectl: &Kubectl) {
    kubectl.ok("run logs-generator --image=registry.k8s.io/e2e-test-images/agnhost:2.56 --restart=Never \
         --pod-running-timeout=2m0s -- logs-generator --log-lines-total 100 --run-duration 5s");
    let all = kubectl.until("logs logs-generator logs-generator", |text| {
        text.contains("/api/v1/namespaces/kube-system") && text.lines().count() > 2
    });
    assert!(all.lines().all(|line| line.starts_with('I')), "{all}");
    assert_eq!(kubectl.ok("logs logs-generator logs-generator --tail=1").lines().count(), 1);
    assert_eq!(kubectl.ok("logs logs-generator logs-generator --limit-bytes=1").len(), 1);
    let stamped = kubectl.ok("logs logs-generator logs-generator --tail=1 --timestamps");
    let stamp = stamped.split_whitespace().next().unwrap_or_default();
    assert!(kubarium::apimachinery::time::parse(stamp).is_some(), "{stamped}");
    kubectl.ok("wait --for=jsonpath={.status.phase}=Succeeded pod/logs-generator --timeout=60s");
    let older = kubectl.ok("logs logs-generator logs-generator --since=24h").lines().count();
    let recent = kubectl.ok("logs logs-generator logs-generator --since=1s").lines().count();
    assert!(recent < older && older == 100, "{recent} {older}");
}

fn proxy(kubectl: &Kubectl) {
    let mut child = kubectl.command("proxy -p 0 --disable-filter").stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let address = first.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    let mut stream = TcpStream::connect(&address).unwrap_or_else(|error| panic!("{first}: {error}"));
    stream.write_all(b"GET /api/ HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert!(answer.contains("APIVersions"), "{answer}");
}
