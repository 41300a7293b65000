//! Who has acted when, as the audit logs of all servers tell: of the controllers of several clusters, and of
//! their schedulers, those of one at a time.

use std::collections::BTreeMap;

use super::audit::Written;
use super::*;

const SCHEDULER: &str = "kube-scheduler";

/// One write of a component: when, and by the how manieth server that was started.
type Act = (String, usize);

/// Whoever acts after another has won an election first.
pub(super) fn check(servers: &Servers, etcd: &EtcdOfThree) {
    for component in ["kube-controller-manager", SCHEDULER] {
        let acts = acts(servers, component);
        assert!(!acts.is_empty(), "{component} has done nothing");
        let lease = format!("/registry/leases/kube-system/{component}");
        let stored = etcd.ask_any(&["get", &lease, "--print-value-only"]);
        let lease: Value = serde_json::from_str(stored.trim()).unwrap();
        let elections = lease["spec"]["leaseTransitions"].as_u64().unwrap();
        let told: Vec<&Act> =
            acts.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| &pair[1]).collect();
        let changes = told.len();
        assert!(
            changes as u64 <= elections,
            "{component}: {elections} elections, and {changes} changes: {told:?}"
        );
        check_revisions(&audit::written(servers, component), component);
    }
}

/// Each write of a component was made by the server of whoever held the Lease at its revision, or at one of
/// those that it may have.
pub(in crate::etcd_store) fn check_revisions(all: &[Written], component: &str) {
    let (mut servers_of, mut holders) = (BTreeMap::new(), Vec::new());
    for written in all {
        let Some(holder) = &written.holder else { continue };
        if holder.is_empty() {
            holders.push((written.from, None));
            continue;
        }
        let server = *servers_of.entry(holder).or_insert(written.server);
        assert_eq!(server, written.server, "{component}: two call themselves {holder}");
        holders.push((written.from, Some(server)));
    }
    let mut checked = [0; 2];
    for Written { from, to, server, what, .. } in all.iter().filter(|written| written.holder.is_none()) {
        let first = holders.partition_point(|(revision, _)| revision <= from).saturating_sub(1);
        let mut possible = holders[first..].iter().take_while(|(revision, _)| revision <= to).peekable();
        // Nobody is known to hold it, or somebody has just given it up.
        if possible.peek().is_none_or(|(revision, holder)| revision > from || holder.is_none()) {
            continue;
        }
        assert!(
            possible.any(|(_, holder)| *holder == Some(*server)),
            "{component}: {what} at {from} to {to} is not by who held the Lease"
        );
        checked[usize::from(from < to)] += 1;
    }
    let [exactly, between] = checked;
    eprintln!("{component}: {exactly} writes at their revision and {between} between two are its leader's");
    // The scheduler binds, and does little else.
    assert!(between > 0 && (exactly > 0 || component == SCHEDULER), "{component}: {checked:?}");
}

fn acts(servers: &Servers, component: &str) -> Vec<Act> {
    let mut acts = Vec::new();
    for (server, log) in servers.logs().iter().enumerate() {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let of_component = events.filter(|event| is_of_leader(event, component));
        acts.extend(of_component.map(|event| (event["requestReceivedTimestamp"].to_string(), server)));
    }
    acts.sort();
    acts
}

/// Candidates write their Lease, too, and tell of it.
pub(super) fn is_of_leader(event: &Value, component: &str) -> bool {
    let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
    let user = event["user"]["username"].as_str().unwrap_or_default();
    let is_its = match component {
        SCHEDULER => user == "system:kube-scheduler",
        _ => {
            user.starts_with("system:serviceaccount:kube-system:") || user == "system:kube-controller-manager"
        }
    };
    is_its && !matches!(resource, "leases" | "events" | "selfsubjectreviews")
}

#[test]
fn who_acts_without_the_lease_is_found_out() {
    let at = |second: u64| format!("2026-01-01T00:00:{second:02}.000000Z");
    let event = |server: usize, second: u64, [verb, resource, sub]: [&str; 3], object: Value| {
        let about = json!({"resource": resource, "subresource": sub, "name": object["metadata"]["name"]});
        let before = json!({"metadata": {"resourceVersion": object["before"]}});
        let event = json!({
            "requestReceivedTimestamp": at(second), "stageTimestamp": at(second), "verb": verb,
            "objectRef": about, "user": {"username": "system:kube-scheduler"}, "requestObject": before,
            "responseStatus": {"code": 200}, "responseObject": object,
        });
        (event, server)
    };
    let lease = |server: usize, second: u64, revision: u64| {
        let object = json!({"metadata": {"name": SCHEDULER, "resourceVersion": revision.to_string()},
            "before": "1", "spec": {"holderIdentity": format!("server-{server}")}});
        event(server, second, ["update", "leases", ""], object)
    };
    let patch = |server: usize, second: u64, revision: u64| {
        let object = json!({"metadata": {"name": "p", "resourceVersion": revision.to_string()}});
        event(server, second, ["patch", "pods", "status"], object)
    };
    let binding = |server: usize, second: u64| {
        event(server, second, ["create", "pods", "binding"], json!({"metadata": {"name": "p"}}))
    };
    let is_found_out = |more: (Value, usize)| {
        let led = [
            lease(0, 1, 10),
            binding(0, 2),
            lease(0, 3, 20),
            lease(1, 20, 30),
            binding(1, 22),
            lease(1, 24, 40),
        ];
        let all = audit::written_in(led.into_iter().chain([more]), SCHEDULER);
        std::panic::catch_unwind(|| check_revisions(&all, SCHEDULER)).is_err()
    };
    for (more, expected) in [
        (binding(1, 2), true),
        (binding(0, 22), true),
        // Perhaps before the other had it.
        (binding(0, 20), false),
        (patch(0, 2, 15), false),
        (patch(1, 2, 15), true),
        (patch(0, 22, 35), true),
        // What was there before is no write.
        (patch(0, 22, 15), false),
    ] {
        assert_eq!(is_found_out(more.clone()), expected, "{more:?}");
    }
}
