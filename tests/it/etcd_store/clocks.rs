//! Servers on one etcd whose wall clocks are apart: what is counted in time goes by each one's own watch, or by
//! the etcd's, and so nothing of it breaks.

use serde_json::{Value, json};

use super::*;

const TIMES: [&str; 3] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=200ms",
];
const LEASE: &str = "get lease -n kube-system kube-controller-manager -o jsonpath=";

/// What of the Lease of who runs the controllers.
fn lease(kubectl: &Kubectl, field: &str) -> String {
    kubectl.ok(&format!("{LEASE}{{.spec.{field}}}"))
}

fn server_at(etcd: &RealEtcd, keys: &TempDir, clock: &str, flags: &[&str]) -> Up {
    let clock = format!("--clock={clock}");
    server(
        etcd,
        keys,
        &[&TIMES[..], &[&clock, "--event-ttl=15s", "--etcd-compaction-interval=1s"], flags].concat(),
    )
}

#[test]
fn servers_whose_clocks_are_apart_are_one_cluster() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let mut ahead = server_at(&etcd, &keys, "+10m", &["--nodes", "0"]);
    let right = server_at(&etcd, &keys, "real", &["--nodes", "1"]);
    let behind = server_at(&etcd, &keys, "-10m", &["--nodes", "0"]);
    let all = [&ahead, &right, &behind].map(kubectl);
    let [one, two, three] = &all;
    for kubectl in &all {
        assert!(
            kubectl.ok("get --raw /readyz?verbose").contains("[+]etcd ok"),
            "as upstream, which knows no other"
        );
    }
    let holder = lease(two, "holderIdentity");
    // Each is listed, under a Lease of its own, and nobody takes another's.
    let listed = "get endpoints kubernetes -o jsonpath={.subsets[*].ports[*].port}";
    let own = "get leases -n kube-system -l apiserver.kubernetes.io/identity=kube-apiserver -o jsonpath={.items[*].spec.holderIdentity}";
    for kubectl in &all {
        kubectl.until(listed, |ports| ports.split_whitespace().count() == 3);
        kubectl.until(own, |holders| holders.split_whitespace().count() == 3);
    }
    // An event is there for its time and no longer, whoever has written it.
    for (at, kubectl) in all.iter().enumerate() {
        tell(kubectl, at);
        all[(at + 1) % 3].ok(&format!("get event told-{at}"));
    }
    // What was written is read by whoever is asked, whatever time it says.
    two.ok("create deployment web --image nginx");
    three.ok("rollout status deployment/web --timeout=60s");
    one.ok("scale deployment/web --replicas=2");
    two.ok("rollout status deployment/web --timeout=60s");
    three.ok("delete pod -l app=web --wait=true --timeout=60s");
    one.ok("rollout status deployment/web --timeout=60s");
    for kubectl in &all {
        kubectl.until("get events -o name", |events| !events.contains("event/told-"));
    }
    // All that time one has led, and compaction went on.
    assert_eq!((lease(two, "holderIdentity"), lease(two, "leaseTransitions")), (holder.clone(), "0".into()));
    assert!(compacted(&etcd) > 0);
    // Who is behind or right takes over from who was ahead.
    ahead.kill();
    two.until(&format!("{LEASE}{{.spec.holderIdentity}}"), |next| !next.is_empty() && next != holder);
    three.ok("scale deployment/web --replicas=3");
    three.ok("rollout status deployment/web --timeout=60s");
    assert_eq!(lease(three, "leaseTransitions"), "1");
    two.until(listed, |ports| ports.split_whitespace().count() == 2);
}

/// Makes an Event.
fn tell(kubectl: &Kubectl, at: usize) {
    let about = json!({"kind": "Pod", "namespace": "default"});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("told-{at}")},
        "reason": "R", "message": "m", "type": "Normal", "involvedObject": about});
    with_file(kubectl, &event, "create");
}

/// What kubectl says when it does something with a manifest.
fn with_file(kubectl: &Kubectl, manifest: &Value, verb: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifest.json");
    std::fs::write(&file, manifest.to_string()).unwrap();
    kubectl.ok(&format!("{verb} -f {}", file.display()))
}

/// The revision that the servers have agreed to compact to.
fn compacted(etcd: &RealEtcd) -> u64 {
    let agreed = || etcd.ctl(&["get", "compact_rev_key", "--print-value-only"]).trim().parse().ok();
    eventually("a compaction", || agreed().filter(|revision| *revision > 0))
}

#[test]
fn a_token_of_a_server_that_is_little_ahead_is_good_elsewhere() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let flags = ["--apiserver-only"];
    let right = server_at(&etcd, &keys, "real", &flags);
    let ahead = server_at(&etcd, &keys, "+10m", &flags);
    let little = server_at(&etcd, &keys, "+30s", &flags);
    let [one, two, three] = [&right, &ahead, &little].map(kubectl);
    one.ok("create serviceaccount robot");
    let of = |token: &str| {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token.trim()}});
        with_file(&one, &review, "create -o jsonpath={.status.user.username}{.status.error}")
    };
    let early = of(&two.ok("create token robot"));
    assert!(
        early.contains("invalid bearer token"),
        "ten minutes are more than upstream's leeway of one: {early}"
    );
    assert_eq!(of(&three.ok("create token robot")), "system:serviceaccount:default:robot");
}
