//! Who has acted when, as the audit logs of all servers tell: of the controllers of several clusters, and of
//! their schedulers, those of one at a time.

use std::collections::BTreeMap;

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
        check_revisions(&written(servers, component), component);
    }
}

/// One write of a component that its server has told the revision of.
struct Written {
    revision: u64,
    server: usize,
    /// Of its Lease: who holds it from then on.
    holder: Option<String>,
    what: String,
}

fn written(servers: &Servers, component: &str) -> Vec<Written> {
    let mut all = Vec::new();
    for (server, log) in servers.logs().iter().enumerate() {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.extend(events.filter_map(|event| write_of(&event, component, server)));
    }
    all.sort_by_key(|written| written.revision);
    all
}

fn write_of(event: &Value, component: &str, server: usize) -> Option<Written> {
    let (about, answer) = (&event["objectRef"], &event["responseObject"]);
    let code = event["responseStatus"]["code"].as_u64()?;
    let revision = answer["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
    let is_lease = about["resource"] == "leases" && about["name"] == component;
    let is_relevant = is_lease || is_of_leader(event, component);
    let holder = is_lease.then(|| answer["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned());
    // What changes nothing is answered with a revision of somebody else's.
    let before = event["requestObject"]["metadata"]["resourceVersion"].as_str();
    let is_new = event["verb"] == "create"
        || before.is_some_and(|before| answer["metadata"]["resourceVersion"] != before);
    let what = format!("{} {}", event["verb"], about);
    (code < 300 && is_new && is_relevant).then_some(Written { revision, server, holder, what })
}

/// Each write of a component was made by the server of whoever held the Lease at its revision.
fn check_revisions(all: &[Written], component: &str) {
    let mut servers_of = BTreeMap::new();
    for written in all {
        if let Some(holder) = written.holder.as_ref().filter(|holder| !holder.is_empty()) {
            let server = servers_of.entry(holder).or_insert(written.server);
            assert_eq!(*server, written.server, "{component}: two call themselves {holder}");
        }
    }
    let (mut holder, mut checked) = (None, 0);
    for written in all {
        if let Some(next) = &written.holder {
            holder = servers_of.get(next).copied();
        } else if let Some(server) = holder {
            let Written { revision, what, .. } = written;
            assert_eq!(
                server, written.server,
                "{component}: {what} at {revision} is not by who held the Lease"
            );
            checked += 1;
        }
    }
    // What the scheduler writes most, bindings, is answered without a revision.
    assert!(checked > 0 || component == "kube-scheduler", "{component} has told no revision");
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
