//! Who has acted when, as the audit logs of all servers tell: of the controllers of several clusters, and of
//! their schedulers, those of one at a time.

use super::*;

/// One write of a component: when, and by the how manieth server that was started.
type Act = (String, usize);

/// Whoever acts after another has won an election first.
pub(super) fn check(servers: &Servers, etcd: &EtcdOfThree) {
    for component in ["kube-controller-manager", "kube-scheduler"] {
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
    }
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
fn is_of_leader(event: &Value, component: &str) -> bool {
    let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
    let user = event["user"]["username"].as_str().unwrap_or_default();
    let is_its = match component {
        "kube-scheduler" => user == "system:kube-scheduler",
        _ => {
            user.starts_with("system:serviceaccount:kube-system:") || user == "system:kube-controller-manager"
        }
    };
    is_its && !matches!(resource, "leases" | "events" | "selfsubjectreviews")
}
