//! The 27 systems that the two teaching texts narrate, each looked for in what `kubarium trace` tells of a
//! cluster that was used as the texts use it: in the story by default, in all of it, and in the steps that
//! the page has.

mod narrated;

use serde_json::Value;

use crate::support::{Kubectl, Up, eventually, kubectls, texts};
use narrated::{Narrated, SYSTEMS};

const LIMITS: &str = "
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: small}
spec: {limits: [{type: Container, defaultRequest: {cpu: 100m}, default: {cpu: 200m}}]}
";
const FOUND: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: found}
spec:
  replicas: 2
  selector: {matchLabels: {app: found}}
  template:
    metadata: {labels: {app: found}}
    spec: {containers: [{name: nginx, image: nginx}]}
";
const OLD: &str = "
apiVersion: batch/v2alpha1
kind: CronJob
metadata: {name: old}
spec:
  schedule: '0 0 1 1 *'
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}
";
const ELSEWHERE: &str = "
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.agg.example.com}
spec:
  group: agg.example.com
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {namespace: default, name: agg}
";
const INITIALIZERS: &str = "
apiVersion: admissionregistration.k8s.io/v1alpha1
kind: InitializerConfiguration
metadata: {name: images}
initializers:
- name: podimage.example.com
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods]}]
";
const ABAC: &str = r#"{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"ann","namespace":"*","resource":"configmaps","apiGroup":"*"}}"#;
const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";

/// A cluster with every way in that the texts know.
fn cluster(home: &std::path::Path) -> Up {
    let file = |name: &str, text: &str| {
        std::fs::write(home.join(name), text).unwrap();
        home.join(name).to_str().unwrap().to_owned()
    };
    let (tokens, passwords) =
        (file("tokens.csv", "of-jane,jane,1001\n"), file("basic.csv", "secret,ann,1002\n"));
    let (abac, policy) = (file("abac.jsonl", ABAC), file("audit.yaml", POLICY));
    let log = home.join("audit.log").to_str().unwrap().to_owned();
    let flags = [
        ["--nodes", "2"],
        ["--token-auth-file", &tokens],
        ["--basic-auth-file", &passwords],
        ["--authorization-mode", "Node,ABAC,RBAC"],
        ["--authorization-policy-file", &abac],
        ["--audit-policy-file", &policy],
        ["--audit-log-path", &log],
        ["--runtime-config", "api/legacy=true,admissionregistration.k8s.io/v1alpha1=true"],
        ["--feature-gates", "Initializers=true"],
        ["--enable-admission-plugins", "Initializers"],
    ];
    Up::start_with(&flags.concat())
}

/// What kubectl asks first, and how it makes, changes and refuses.
fn asked(up: &Up, kubectl: &Kubectl) {
    let found = up.file("found.yaml", FOUND);
    kubectl.ok(&format!("create --cache-dir {} -f {found}", up.folder().join("cache").display()));
    kubectl.ok("rollout status deployment/found --timeout=60s");
    kubectl.ok("scale deployment found --replicas 3");
    kubectl.ok("rollout status deployment/found --timeout=60s");
    kubectl.ok("create deployment dry --image nginx --dry-run=server");
    let strict =
        up.file("strict.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: strict}, dataa: {}}");
    kubectl.fails(&format!("create -f {strict}"));
    kubectl.fails("get --raw /nope");
    let old = up.file("old.yaml", OLD);
    kubectl.ok(&format!("create -f {old}"));
    kubectl.ok("create service clusterip web --tcp 80");
    let map = |name: &str, value: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{a: '{value}'}}}}")
    };
    let file = up.file("file.yaml", &map("file", "1"));
    kubectl.ok(&format!("create -f {file}"));
    up.file("file.yaml", &map("file", "2"));
    kubectl.ok(&format!("replace -f {file}"));
    kubectl.fails(&format!("create -f {file}"));
    kubectl.ok("delete configmap file");
    let applied = up.file("applied.yaml", &map("applied", "1"));
    kubectl.ok(&format!("apply --server-side --field-manager one -f {applied}"));
    up.file("applied.yaml", &map("applied", "2"));
    kubectl.fails(&format!("apply --server-side --field-manager two -f {applied}"));
}

/// Who comes in and who does not, and what is counted.
fn checked(up: &Up, kubectl: &Kubectl) {
    let raw = kubectl.ok("config view --minify --raw -o jsonpath={.clusters[0].cluster.server}");
    let stranger = format!("--kubeconfig /dev/null --insecure-skip-tls-verify --server {raw}");
    kubectl.ok(&format!("{stranger} --username ann --password secret create configmap by-password"));
    kubectl.fails(&format!("{stranger} --token of-jane create configmap by-jane"));
    kubectl.fails(&format!("{stranger} --token of-nobody create configmap by-nobody"));
    kubectl.ok("create namespace small");
    let limits = up.file("limits.yaml", LIMITS);
    kubectl.ok(&format!("create -f {limits}"));
    kubectl.ok("create quota few --hard=pods=1 -n small");
    kubectl.until("get quota few -n small -o jsonpath={.status.used.pods}", |used| used == "0");
    kubectl.ok("run limited --image nginx -n small");
    kubectl.fails("run beyond --image nginx -n small");
    kubectl.ok("run fails --image busybox --restart Never -- sh -c 'exit 3'");
    kubectl.ok("run picky --image nginx --overrides {\"spec\":{\"nodeSelector\":{\"disk\":\"ssd\"}}}");
    eventually("picky to be refused", || traced(up, "pod/picky").contains("finds no node").then_some(()));
    kubectl.ok("label node node-1 disk=ssd");
    kubectl.ok("wait --for=condition=Ready pod/picky --timeout=60s");
    let elsewhere = up.file("elsewhere.yaml", ELSEWHERE);
    kubectl.ok(&format!("create -f {elsewhere}"));
    let bar =
        up.file("bar.json", r#"{"apiVersion":"agg.example.com/v1","kind":"Bar","metadata":{"name":"b"}}"#);
    eventually("the group to be somebody else's", || {
        kubectl.run(&format!("create --raw /apis/agg.example.com/v1/namespaces/default/bars -f {bar}"));
        traced(up, "bars.agg.example.com").contains("passed on for").then_some(())
    });
}

/// What waits: one until its time is over, one for as long as nobody does its work.
fn waited(up: &Up, kubectl: &Kubectl) {
    let initializers = up.file("initializers.yaml", INITIALIZERS);
    kubectl.ok(&format!("create -f {initializers}"));
    let pod = |name: &str| {
        let pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        up.file(&format!("{name}.json"), &pod.to_string())
    };
    let (late, patient) = (pod("late"), pod("patient"));
    // The configuration is heard of a moment after it is written: then a create does not end well.
    eventually("a pod to wait", || {
        let path = "/api/v1/namespaces/default/pods?timeout=1s";
        let created = kubectl.run(&format!("create --raw {path} -f {late}"));
        if created.status.success() {
            kubectl.ok("delete pod late --now");
        }
        (!created.status.success()).then_some(())
    });
    let mut waiting = kubectl.command(&format!("create -f {patient}")).spawn().unwrap();
    eventually("the other pod to wait", || {
        traced(up, "pod/patient").contains("is seen by nobody").then_some(())
    });
    see(up, kubectl);
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}

fn traced(up: &Up, words: &str) -> String {
    let words: Vec<&str> = std::iter::once("trace").chain(words.split(' ')).collect();
    let (out, err) = texts(&up.kubarium(&words));
    out + &err
}

fn see(up: &Up, kubectl: &Kubectl) {
    let missing: Vec<String> = SYSTEMS.iter().flat_map(|system| missing(up, system)).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n\n"));
    let mut numbers: Vec<usize> = SYSTEMS.iter().map(|system| system.number).collect();
    numbers.dedup();
    assert!(numbers.iter().copied().eq(1..=27), "{numbers:?}");
    let queues = kubectl.ok("get --raw /kubarium/v1/components/metrics?name=kube-controller-manager");
    assert!(queues.contains("workqueue_adds_total{name=\"deployment\"}"), "{queues}");
}

/// What of a system is not to be seen.
fn missing(up: &Up, system: &Narrated) -> Vec<String> {
    let Narrated { number, of, trace, story, all, steps } = system;
    let bare = trace.trim_end_matches(" --all");
    let told = traced(up, trace);
    let whole = traced(up, &format!("{bare} --all")) + &traced(up, &format!("{bare} --full"));
    let json = traced(up, &format!("{bare} -o json"));
    let json: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{trace}: {error}\n{json}"));
    let taken: Vec<&str> =
        json["steps"].as_array().unwrap().iter().filter_map(|step| step["step"].as_str()).collect();
    let lacks = |what: &str, text: &str| format!("{number}, {of}: no {what:?} in `trace {trace}`:\n{text}");
    let in_story = story.iter().filter(|words| !told.contains(**words)).map(|words| lacks(words, &told));
    let in_all = all.iter().filter(|words| !whole.contains(**words)).map(|words| lacks(words, &whole));
    let in_steps =
        steps.iter().filter(|step| !taken.contains(step)).map(|step| lacks(step, &taken.join(" ")));
    in_story.chain(in_all).chain(in_steps).collect()
}

#[test]
fn each_of_the_27_systems_is_seen() {
    let home = tempfile::tempdir().unwrap();
    let up = cluster(home.path());
    let kubectl = Kubectl::new(&kubectls().pop().unwrap(), &up);
    asked(&up, &kubectl);
    checked(&up, &kubectl);
    waited(&up, &kubectl);
    // The log of the audit has the requests by the numbers that the record tells.
    let story = traced(&up, "cm/by-password --all");
    let id =
        story.split("Audit-Id ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned();
    let is_there =
        || std::fs::read_to_string(home.path().join("audit.log")).unwrap().contains(&id).then_some(());
    eventually("the audit log", is_there);
}
