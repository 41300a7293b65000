//! Two whole clusters on one etcd: one of them runs the controllers and the scheduler.

use super::*;

const TIMES: [&str; 3] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=200ms",
];
const HOLDER: &str = "get lease -n kube-system kube-controller-manager -o jsonpath={.spec.holderIdentity}";
const PAGE: &str = "get --raw /kubarium/v1/components/metrics?name=kube-scheduler";

#[test]
fn of_two_whole_clusters_one_leads_and_the_other_takes_over() {
    let etcd = RealEtcd::start();
    let keys = tempfile::tempdir().unwrap();
    let start = |nodes: &str| server(&etcd, &keys, &[&TIMES[..], &["--nodes", nodes]].concat());
    let mut first = start("0");
    let second = start("1");
    let (one, two) = (kubectl(&first), kubectl(&second));
    let holder = one.ok(HOLDER);
    assert!(one.ok(PAGE).contains("leader_election_master_status{name=\"kube-scheduler\"} 1\n"));
    assert!(two.fails(PAGE).contains("kube-scheduler has no pages"), "it waits");
    two.ok("create deployment web --image nginx");
    two.ok("rollout status deployment/web --timeout=60s");
    assert_eq!(two.ok(HOLDER), holder);
    first.kill();
    two.ok("scale deployment/web --replicas 2");
    two.ok("rollout status deployment/web --timeout=60s");
    assert_ne!(two.ok(HOLDER), holder);
    // Whoever ends in order gives it up, and nobody waits for its end.
    let third = start("0");
    let three = kubectl(&third);
    drop(second);
    three.until(HOLDER, |next| !next.is_empty() && next != holder);
    three.until(PAGE, |page| page.contains("leader_election_master_status{name=\"kube-scheduler\"} 1\n"));
    let transitions = HOLDER.replace("holderIdentity", "leaseTransitions");
    assert_eq!(three.ok(&transitions), "2");
}
