//! The rows of sig-cli, and those that look at a kind with kubectl: one cluster and the newest kubectl at hand.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::support::{Kubectl, Up, eventually, kubectls};

/// Row: kubectl - the controller, the service, the node and the namespace are described
/// Row: kubectl - v1 is among the versions
/// Row: kubectl - the version of both sides
/// Row: kubectl - the image of a pod is replaced
/// Row: kubectl - a pod is run that is never restarted
/// Row: kubectl - the control plane in cluster-info
/// Row: kubectl - a proxy on a unix socket
#[test]
fn kubectl_shows_what_suites_look_for() {
    let up = Up::start();
    let kubectl = Kubectl::new(kubectls().last().unwrap(), &up);
    assert!(kubectl.ok("api-versions").lines().any(|line| line == "v1"));
    let version = kubectl.ok("version");
    for side in ["Client Version: v", "Server Version: v1.36"] {
        assert!(version.contains(side), "{version}");
    }
    let info = kubectl.ok("cluster-info");
    assert!(info.contains("Kubernetes control plane") && info.contains("is running at"), "{info}");
    describe(&up, &kubectl);
    replace(&up, &kubectl);
    proxy(&up, &kubectl);
}

const PRIMARY: &str = r#"{"kind": "ReplicationController", "apiVersion": "v1",
  "metadata": {"name": "agnhost-primary", "labels": {"app": "agnhost", "role": "primary"}},
  "spec": {"replicas": 1, "selector": {"app": "agnhost", "role": "primary"}, "template": {
    "metadata": {"labels": {"app": "agnhost", "role": "primary"}},
    "spec": {"containers": [{"name": "agnhost-primary", "image": "registry.k8s.io/e2e-test-images/agnhost:2.56",
      "ports": [{"name": "agnhost-server", "containerPort": 6379}]}]}}}}"#;
const PRIMARY_SERVICE: &str = r#"{"kind": "Service", "apiVersion": "v1",
  "metadata": {"name": "agnhost-primary", "labels": {"app": "agnhost", "role": "primary"}},
  "spec": {"ports": [{"port": 6379, "targetPort": "agnhost-server"}],
    "selector": {"app": "agnhost", "role": "primary"}}}"#;

/// The first word of each in this order, with the others on the same line.
fn has_lines(text: &str, wanted: &[&[&str]]) {
    let mut lines = text.lines().peekable();
    for words in wanted {
        while lines.next_if(|line| !line.contains(words[0])).is_some() {}
        let found = lines.peek().is_some_and(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "no {words:?} in its place in\n{text}");
    }
}

fn describe(up: &Up, kubectl: &Kubectl) {
    kubectl.ok(&format!("create -f {}", up.file("controller.json", PRIMARY)));
    kubectl.ok(&format!("create -f {}", up.file("service.json", PRIMARY_SERVICE)));
    let running = "get pods -l app=agnhost -o jsonpath={.items[*].status.phase}";
    kubectl.until(running, |phase| phase == "Running");
    let name = kubectl.ok("get pods -l app=agnhost -o jsonpath={.items[*].metadata.name}");
    has_lines(
        &kubectl.ok(&format!("describe pod {name}")),
        &[
            &["Name:", "agnhost-primary-"],
            &["Namespace:", "default"],
            &["Node:"],
            &["Labels:", "app=agnhost"],
            &["role=primary"],
            &["Annotations:"],
            &["Status:", "Running"],
            &["IP:"],
            &["Controlled By:", "ReplicationController/agnhost-primary"],
            &["Image:", "agnhost"],
            &["State:", "Running"],
            &["QoS Class:", "BestEffort"],
        ],
    );
    has_lines(
        &kubectl.ok("describe rc agnhost-primary"),
        &[
            &["Name:", "agnhost-primary"],
            &["Namespace:", "default"],
            &["Selector:", "app=agnhost,role=primary"],
            &["Labels:", "app=agnhost"],
            &["role=primary"],
            &["Annotations:"],
            &["Replicas:", "1 current", "1 desired"],
            &["Pods Status:", "1 Running", "0 Waiting", "0 Succeeded", "0 Failed"],
            &["Pod Template:"],
            &["Image:", "agnhost"],
            &["Events:"],
        ],
    );
    let slices = "get endpointslices -l kubernetes.io/service-name=agnhost-primary -o yaml";
    kubectl.until(slices, |slices| slices.contains("ready: true"));
    has_lines(
        &kubectl.ok("describe service agnhost-primary"),
        &[
            &["Name:", "agnhost-primary"],
            &["Namespace:", "default"],
            &["Labels:", "app=agnhost"],
            &["role=primary"],
            &["Annotations:"],
            &["Selector:", "app=agnhost", "role=primary"],
            &["Type:", "ClusterIP"],
            &["IP:"],
            &["Port:", "<unset>", "6379/TCP"],
            &["Endpoints:", ":6379"],
            &["Session Affinity:", "None"],
        ],
    );
    has_lines(
        &kubectl.ok("describe node node-1"),
        &[
            &["Name:", "node-1"],
            &["Labels:"],
            &["Annotations:"],
            &["CreationTimestamp:"],
            &["Conditions:"],
            &["Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message"],
            &["Addresses:"],
            &["Capacity:"],
            &["Version:"],
            &["Kernel Version:"],
            &["OS Image:"],
            &["Container Runtime Version:"],
            &["Kubelet Version:"],
            &["Pods:"],
        ],
    );
    let namespace = kubectl.ok("describe namespace default");
    has_lines(&namespace, &[&["Name:", "default"], &["Labels:"], &["Annotations:"], &["Status:", "Active"]]);
}

fn replace(up: &Up, kubectl: &Kubectl) {
    let run =
        "run e2e-test-httpd-pod --image=httpd:2.4 --pod-running-timeout=2m0s --labels=run=e2e-test-httpd-pod";
    kubectl.ok(run);
    kubectl.until("get pod e2e-test-httpd-pod -o jsonpath={.status.phase}", |phase| phase == "Running");
    let pod = kubectl.ok("get pod e2e-test-httpd-pod -o json").replace("httpd:2.4", "busybox:1.36");
    let output = kubectl.ok(&format!("replace -f {}", up.file("pod.json", &pod)));
    assert!(output.contains("pod/e2e-test-httpd-pod replaced"), "{output}");
    let image = "get pod e2e-test-httpd-pod -o jsonpath={.spec.containers[0].image}";
    assert_eq!(kubectl.ok(image), "busybox:1.36");
    kubectl.ok("run once --restart=Never --image=httpd:2.4");
    assert_eq!(kubectl.ok("get pod once -o jsonpath={.spec.restartPolicy}"), "Never");
    kubectl.ok("wait --for=jsonpath={.status.phase}=Running pod/once --timeout=30s");
    kubectl.ok("delete pods e2e-test-httpd-pod once");
}

fn proxy(up: &Up, kubectl: &Kubectl) {
    let socket = up.folder().join("proxy.sock");
    let line = format!("proxy --unix-socket={}", socket.display());
    let mut child = kubectl.command(&line).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let stream = eventually("the socket", || UnixStream::connect(&socket).ok());
    std::io::Write::write_all(&mut &stream, b"GET /api/ HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let answer = std::io::read_to_string(stream).unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert!(first.starts_with("Starting to serve on") && answer.contains("APIVersions"), "{answer}");
}

const DEFINITION: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.crd-publish-openapi-test-foo.example.com}
spec:
  group: crd-publish-openapi-test-foo.example.com
  scope: Namespaced
  names: {plural: PLURAL, singular: KIND, kind: KIND, listKind: KINDList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: SCHEMA}}
"#;
const FOO: &str = r#"{description: Foo CRD for Testing, type: object, properties: {
  spec: {type: object, description: Specification of Foo, properties: {
    bars: {description: List of Bars and their specs., type: array, items: {type: object, required: [name], properties: {
      name: {description: Name of Bar., type: string},
      age: {description: Age of Bar., type: string},
      feeling: {description: Whether Bar is feeling great., type: string, enum: [Great, Down]},
      bazs: {description: List of Bazs., type: array, items: {type: string}}}}}}},
  status: {description: Status of Foo, type: object, properties: {
    bars: {description: List of Bars and their statuses., type: array, items: {type: object, properties: {
      name: {description: Name of Bar., type: string},
      available: {description: Whether the Bar is installed., type: boolean},
      quxType: {description: Indicates to external qux type., type: string, pattern: in-tree|out-of-tree}}}}}}}}"#;
const WALDO: &str = r#"type: object, properties: {
  spec: {description: Specification of Waldo, type: object, NESTED properties: {
    dummy: {description: Dummy property., type: object}}},
  status: {description: Status of Waldo, type: object, properties: {
    bars: {description: List of Bars and their statuses., type: array, items: {type: object}}}}}}"#;

/// A custom kind, known to kubectl when this returns.
fn define(up: &Up, kubectl: &Kubectl, kind: &str, schema: &str) {
    let plural = format!("{kind}s");
    let definition = DEFINITION.replace("PLURAL", &plural).replace("KIND", kind).replace("SCHEMA", schema);
    kubectl.ok(&format!("create -f {}", up.file("definition.yaml", &definition)));
    kubectl.ok(&format!(
        "wait --for=condition=Established crd/{plural}.crd-publish-openapi-test-foo.example.com"
    ));
    let shown = |explained: &str| explained.contains("crd-publish-openapi-test-foo.example.com");
    kubectl.until(&format!("explain {plural}"), shown);
}

fn custom(up: &Up, kind: &str, rest: &str) -> String {
    let text = format!(
        r#"{{"kind": "{kind}", "apiVersion": "crd-publish-openapi-test-foo.example.com/v1",
            "metadata": {{"name": "test"}}, {rest}}}"#
    );
    up.file("object.json", &text)
}

fn matches(text: &str, pattern: &str) {
    assert!(regex::Regex::new(&format!("(?s){pattern}")).unwrap().is_match(text), "no {pattern} in\n{text}");
}

/// Row: published schemas - kubectl and a validation schema
/// Row: published schemas - unknown fields kept at the root
/// Row: published schemas - unknown fields kept in an embedded object
#[test]
fn kubectl_follows_the_schemas_that_are_published() {
    let up = Up::start();
    let kubectl = Kubectl::new(kubectls().last().unwrap(), &up);
    define(&up, &kubectl, "e2e-test-foo-crd", FOO);
    let valid = custom(&up, "e2e-test-foo-crd", r#""spec": {"bars": [{"name": "test-bar"}]}"#);
    accepts(&kubectl, "e2e-test-foo-crds", &valid);
    for (rest, refusal) in [
        (
            r#"{"bars": [{"name": "b", "feeling": "NonExistentValue"}]}"#,
            r#"Unsupported value: "NonExistentValue""#,
        ),
        (r#"{"foo": true}"#, r#"unknown field "spec.foo""#),
        (r#"{"bars": [{"age": "10"}]}"#, "spec.bars[0].name: Required value"),
    ] {
        let file = custom(&up, "e2e-test-foo-crd", &format!(r#""spec": {rest}"#));
        for verb in ["create", "apply"] {
            let error = kubectl.fails(&format!("{verb} -f {file}"));
            assert!(error.contains(refusal), "{error}");
        }
    }
    let explain = |path: &str| kubectl.ok(&format!("explain e2e-test-foo-crds{path}"));
    let root = "DESCRIPTION:.*Foo CRD for Testing.*FIELDS:.*apiVersion.*<string>.*APIVersion defines.*spec.*<Object>\
                .*Specification of Foo";
    matches(&explain(""), root);
    matches(
        &explain(".metadata"),
        "DESCRIPTION:.*Standard object's metadata.*FIELDS:.*creationTimestamp.*<string>\
                                    .*CreationTimestamp is a timestamp",
    );
    matches(
        &explain(".spec"),
        r"DESCRIPTION:.*Specification of Foo.*FIELDS:.*bars.*<\[\]Object>.*List of Bars and their specs",
    );
    matches(
        &explain(".spec.bars"),
        r"(FIELD|RESOURCE):.*bars.*<\[\]Object>.*DESCRIPTION:.*List of Bars and their specs\
        .*FIELDS:.*bazs.*<\[\]string>.*List of Bazs.*name.*<string>.*Name of Bar"
            .replace("\\\n        ", "")
            .as_str(),
    );
    assert!(
        kubectl.fails("explain e2e-test-foo-crds.spec.bars2").contains(r#"field "bars2" does not exist"#)
    );

    let root = format!(
        "{{description: at root for Testing, x-kubernetes-preserve-unknown-fields: true, {}",
        WALDO.replace("NESTED", "")
    );
    define(&up, &kubectl, "e2e-test-root-crd", &root);
    accepts(&kubectl, "e2e-test-root-crds", &custom(&up, "e2e-test-root-crd", r#""a": {"b": [{"c": "d"}]}"#));
    matches(&kubectl.ok("explain e2e-test-root-crds"), "KIND:.*e2e-test-root-crd");
    let nested = WALDO.replace("NESTED", "x-kubernetes-preserve-unknown-fields: true,");
    define(
        &up,
        &kubectl,
        "e2e-test-nested-crd",
        &format!("{{description: in nested field for Testing, {nested}"),
    );
    let object = custom(&up, "e2e-test-nested-crd", r#""spec": {"a": null, "b": [{"c": "d"}]}"#);
    accepts(&kubectl, "e2e-test-nested-crds", &object);
    matches(&kubectl.ok("explain e2e-test-nested-crds"), "DESCRIPTION:.*in nested field for Testing");
}

fn accepts(kubectl: &Kubectl, plural: &str, file: &str) {
    for verb in ["create", "apply"] {
        kubectl.ok(&format!("{verb} -f {file}"));
        kubectl.ok(&format!("delete {plural} test"));
    }
}
