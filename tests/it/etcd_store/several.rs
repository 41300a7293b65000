//! Several servers on one etcd are one cluster.

use std::collections::BTreeSet;
use std::thread;

use super::*;

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-x}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "!object.metadata.name.startsWith('x')", message: no x here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-x}
spec: {policyName: no-x, validationActions: [Deny]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: default}
spec: {hard: {count/secrets: "0"}}
"#;

/// Two servers, the first with everything that goes with one.
fn two(etcd: &RealEtcd, keys: &TempDir) -> (Up, Up) {
    let first = server(etcd, keys, &["--nodes", "1"]);
    let second = server(etcd, keys, &["--apiserver-only"]);
    (first, second)
}

#[test]
fn what_one_server_is_told_all_servers_know() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let (first, second) = two(&etcd, &keys);
    let (one, other) = (kubectl(&first), kubectl(&second));
    let file = first.file("objects.yaml", CRD);
    one.ok(&format!("apply -f {file}"));
    one.ok("wait --for=condition=Established crd/crontabs.stable.example.com --timeout=30s");
    // A kind, an admission policy, a quota, a role.
    other.until("get crontabs -o name", |out| out.is_empty());
    let tab =
        second.file("tab.yaml", "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\n");
    eventually("the kind to be served", || {
        other.run(&format!("apply -f {tab}")).status.success().then_some(())
    });
    let read = |kubectl: &Kubectl| {
        kubectl.ok("get crontab a -o jsonpath={.metadata.resourceVersion}/{.metadata.uid}")
    };
    assert_eq!(read(&one), read(&other));
    eventually("the policy to hold", || {
        let refused = other.run("create configmap x-1");
        texts(&refused).1.contains("no x here").then_some(())
    });
    eventually("the quota to hold", || {
        let refused = other.run("create secret generic s");
        texts(&refused).1.contains("exceeded quota").then_some(())
    });
    one.ok("create role reader --verb=get --resource=configmaps");
    one.ok("create rolebinding reader --role=reader --user=ann");
    other.until("auth can-i get configmaps --as=ann", |out| out.trim() == "yes");
    // What the one has acknowledged the other reads at once, without a revision.
    for round in 0..20 {
        one.ok(&format!("create configmap c-{round}"));
        other.ok(&format!("get configmap c-{round}"));
    }
    // Work that the components of the one do is done for what the other is told.
    other.ok("create deployment web --image nginx");
    other.ok("rollout status deployment/web --timeout=60s");
}

#[test]
fn addresses_and_ports_are_given_once() {
    const ROUNDS: usize = 5;
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let small =
        ["--apiserver-only", "--service-cluster-ip-range", "10.9.0.0/26", "--service-node-port-range"];
    let flags = [&small[..], &["31000-31039"]].concat();
    let servers = [server(&etcd, &keys, &flags), server(&etcd, &keys, &flags)];
    thread::scope(|scope| {
        for (at, up) in servers.iter().enumerate() {
            scope.spawn(move || {
                let kubectl = kubectl(up);
                for round in 0..ROUNDS {
                    let service = |name: &str| {
                        format!("create service nodeport s-{at}-{round}-{name} --tcp=80 -o name")
                    };
                    kubectl.ok(&service("a"));
                    kubectl.ok(&service("b"));
                    kubectl.ok(&format!("delete service s-{at}-{round}-a"));
                }
            });
        }
    });
    let one = kubectl(&servers[0]);
    let all = |path: &str| {
        let listed = one.ok(&format!("get services -A -o jsonpath={{.items[*]{path}}}"));
        listed.split_whitespace().map(str::to_owned).collect::<Vec<String>>()
    };
    let (ips, ports) = (all(".spec.clusterIP"), all(".spec.ports[*].nodePort"));
    let distinct = |of: &[String]| of.iter().collect::<BTreeSet<_>>().len();
    assert_eq!((distinct(&ips), distinct(&ports)), (ips.len(), ports.len()), "{ips:?} {ports:?}");
    assert_eq!(ports.len(), 2 * ROUNDS);
    // What was deleted through the one the other may give away.
    let free: Vec<String> =
        (31000..31040).map(|port: u16| port.to_string()).filter(|port| !ports.contains(port)).collect();
    let two = kubectl(&servers[1]);
    for (at, port) in free.iter().enumerate() {
        two.ok(&format!("create service nodeport f-{at} --tcp=80 --node-port={port}"));
    }
    let spent = two.fails("create service nodeport spent --tcp=80");
    assert!(spent.contains("failed to allocate a nodePort: range is full"), "{spent}");
    one.ok("delete service f-0");
    two.ok("create service nodeport again --tcp=80");
}

#[test]
fn servers_are_listed_while_they_are_there() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let flags = ["--apiserver-only"];
    let first = server(&etcd, &keys, &flags);
    // One writes what upstream's writes; who reads it reads either.
    let protobuf = ["--storage-media-type", "application/vnd.kubernetes.protobuf"];
    let second = server(&etcd, &keys, &[&flags[..], &protobuf].concat());
    let third = server(&etcd, &keys, &flags);
    let one = kubectl(&first);
    let ports = || one.ok("get endpoints kubernetes -o jsonpath={.subsets[*].ports[*].port}");
    let count = |text: &str| text.split_whitespace().count();
    eventually("three to be listed", || (count(&ports()) == 3).then_some(()));
    let slices = one.ok(
        "get endpointslices -l kubernetes.io/service-name=kubernetes -o jsonpath={.items[*].ports[*].port}",
    );
    assert_eq!(count(&slices), 3, "{slices}");
    let leases = "get leases -n kube-system -l apiserver.kubernetes.io/identity=kube-apiserver -o name";
    eventually("three Leases", || (one.ok(leases).lines().count() == 3).then_some(()));
    // One that ends says so; one that is killed is missed.
    drop(third);
    assert_eq!(count(&ports()), 2);
    let mut killed = second;
    killed.kill();
    eventually("the lost one to leave", || (count(&ports()) == 1).then_some(()));
    one.ok("create configmap a");
}
