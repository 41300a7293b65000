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

const MANAGER_PAGE: &str = "get --raw /kubarium/v1/components/metrics?name=kube-controller-manager";
const REPLICAS: &str = "get deployment web -o jsonpath={.status.replicas}";

/// Whoever was stopped in the middle of its life, and goes on when another leads, does nothing of what it sees
/// then.
#[test]
fn a_leader_that_was_paused_does_nothing_once_another_leads() {
    let (etcd, keys) = (RealEtcd::start(), tempfile::tempdir().unwrap());
    let policy = keys.path().join("policy");
    std::fs::write(&policy, chaos::servers::POLICY).unwrap();
    let log = |at: usize| keys.path().join(format!("audit-{at}"));
    let start = |at: usize| {
        let (policy, log) = (policy.display().to_string(), log(at).display().to_string());
        let audit = ["--nodes", "0", "--audit-policy-file", &policy, "--audit-log-path", &log];
        server(&etcd, &keys, &[&TIMES[..], &audit].concat())
    };
    let servers = [start(0), start(1)];
    let kubectls = [kubectl(&servers[0]), kubectl(&servers[1])];
    kubectls[0].ok("create deployment web --image nginx --replicas 4");
    for round in 0..4 {
        // Of the scheduler another may be the leader for a moment longer.
        let leads = |kubectl: &Kubectl| kubectl.run(MANAGER_PAGE).status.success();
        let leader = usize::from(eventually("one to lead", || kubectls.iter().position(leads)) == 1);
        let (paused, other) = (&kubectls[leader], &kubectls[1 - leader]);
        other.until(REPLICAS, |count| count == "4");
        let holder = other.ok(HOLDER);
        servers[leader].signal("-STOP");
        other.until(HOLDER, |next| !next.is_empty() && next != holder);
        other.ok("scale deployment/web --replicas 1");
        other.until(REPLICAS, |count| count == "1");
        // The new one is at it when the old one wakes, and sees it.
        other.ok("scale deployment/web --replicas 20");
        servers[leader].signal("-CONT");
        other.until(REPLICAS, |count| count == "20");
        other.ok("scale deployment/web --replicas 4");
        eventually("it to notice", || (!leads(paused)).then_some(()));
        eprintln!("round {round}: server {leader} was paused");
    }
    drop(servers);
    let component = "kube-controller-manager";
    let logged = (0..2).flat_map(|at| chaos::audit::events_in(&log(at)).map(move |event| (event, at)));
    chaos::leaders::check_revisions(&chaos::audit::written_in(logged, component), component);
}
