//! What the scheduler decides and says: nodes, pods on them and a pod that wants a place, in; words out.

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::SchedulingFailure;
use super::fixtures::{node, object};
use super::framework::pod_info::PodInfo;
use super::schedule_one::tests::{decide_on, scheduler};
use super::scheduler::Scheduler;
use apis::policy::pod_disruption_budget::POD_DISRUPTION_BUDGETS;

fn pod(name: &str, spec: Value, status: Value) -> Arc<PodInfo> {
    let metadata = json!({"name": name, "namespace": "default", "uid": name});
    Arc::new(PodInfo::new(object(json!({"metadata": metadata, "spec": spec, "status": status}))))
}

fn asks(cpu: &str) -> Value {
    json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]})
}

fn with(mut spec: Value, more: Value) -> Value {
    json_patch::merge(&mut spec, &more);
    spec
}

/// The node that is chosen, or what is said.
fn decide(nodes: &[(&str, Value)], pods: &[Value], wants: Value) -> Result<String, SchedulingFailure> {
    let scheduler = scheduler();
    for (name, changes) in nodes {
        scheduler.parts.cache.set_node(&node(name, changes.clone()));
    }
    for (index, spec) in pods.iter().enumerate() {
        scheduler.parts.cache.add_pod(pod(&format!("old-{index}"), spec.clone(), json!({})));
    }
    decide_on(&scheduler, pod("new", wants, json!({})))
}

/// Nodes, pods on them, a pod that wants a place, and what is said of it.
type Case = (Vec<(&'static str, Value)>, Vec<Value>, Value, String);

const NO_CLAIMS: &str = "no new claims to deallocate, preemption: 0/";

fn cases_of_nodes() -> Vec<Case> {
    let cordoned = || json!({"spec": {"unschedulable": true}});
    let tainted = || json!({"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}});
    let labelled = || json!({"metadata": {"labels": {"disk": "ssd"}}});
    let full = |node: &str, cpu: &str| with(asks(cpu), json!({"nodeName": node}));
    vec![
        (vec![], vec![], asks("1"), "no nodes available to schedule pods".into()),
        (
            vec![("a", cordoned()), ("b", json!({})), ("c", json!({}))],
            vec![full("b", "4"), full("c", "3500m")],
            asks("1"),
            format!(
                "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. {NO_CLAIMS}3 \
                 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims \
                 found for incoming pod."
            ),
        ),
        (
            vec![("a", json!({})), ("b", json!({})), ("c", json!({}))],
            vec![],
            asks("5"),
            format!(
                "0/3 nodes are available: 3 Insufficient cpu. {NO_CLAIMS}3 nodes are available: 3 Preemption \
                 is not helpful for scheduling."
            ),
        ),
        (
            vec![("a", tainted()), ("b", labelled())],
            vec![],
            with(asks("1"), json!({"nodeSelector": {"disk": "hdd"}})),
            format!(
                "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had \
                 untolerated taint(s). {NO_CLAIMS}2 nodes are available: 2 Preemption is not helpful for \
                 scheduling."
            ),
        ),
    ]
}

fn cases_of_pods() -> Vec<Case> {
    let cordoned = || json!({"spec": {"unschedulable": true}});
    let full = |node: &str, cpu: &str| with(asks(cpu), json!({"nodeName": node}));
    let port = || json!({"containers": [{"ports": [{"hostPort": 80, "protocol": "TCP"}]}]});
    let by_name = |names: &[&str]| {
        let field = json!({"key": "metadata.name", "operator": "In", "values": names});
        let required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    };
    vec![
        (
            vec![("a", json!({}))],
            vec![with(port(), json!({"nodeName": "a"}))],
            port(),
            format!(
                "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. \
                 {NO_CLAIMS}1 nodes are available: 1 No preemption victims found for incoming pod."
            ),
        ),
        (
            vec![("a", json!({"status": {"allocatable": {"pods": "1", "memory": "1Gi"}}}))],
            vec![json!({"nodeName": "a", "containers": [{"resources": {"requests": {"memory": "1Gi"}}}]})],
            json!({"containers": [{"resources": {"requests": {"memory": "1Mi", "x.io/gpu": "1"}}}]}),
            format!(
                "0/1 nodes are available: 1 Insufficient memory, 1 Insufficient x.io/gpu, 1 Too many pods. \
                 {NO_CLAIMS}1 nodes are available: 1 Preemption is not helpful for scheduling."
            ),
        ),
        (
            vec![("a", json!({})), ("b", cordoned()), ("c", json!({}))],
            vec![],
            with(asks("1"), by_name(&["b"])),
            format!(
                "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) \
                 [NodeAffinity]. {NO_CLAIMS}3 nodes are available: 3 Preemption is not helpful for \
                 scheduling."
            ),
        ),
        (
            vec![("a", json!({}))],
            vec![full("a", "4")],
            with(asks("1"), json!({"preemptionPolicy": "Never", "priority": 10})),
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not \
             eligible due to preemptionPolicy=Never."
                .into(),
        ),
    ]
}

#[tokio::test]
async fn what_is_said_of_pods_that_fit_nowhere() {
    for (nodes, pods, wants, said) in cases_of_nodes().into_iter().chain(cases_of_pods()) {
        let failure = decide(&nodes, &pods, wants).unwrap_err();
        assert_eq!(failure.message, said);
        assert_eq!(failure.reason, "Unschedulable");
        assert!(!failure.plugins.is_empty());
    }
}

#[tokio::test]
async fn the_node_that_suits_best_is_chosen() {
    let label = |key: &str| json!({"metadata": {"labels": {key: "yes"}}});
    let prefers = |key: &str| {
        let term = json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
        let preferred = json!([{"weight": 50, "preference": term}]);
        json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}})
    };
    let soft = json!({"spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}});
    let on = |node: &str, cpu: &str| with(asks(cpu), json!({"nodeName": node}));
    let cases = vec![
        (vec![("a", json!({})), ("b", json!({}))], vec![on("a", "2")], asks("1"), "b"),
        (vec![("a", json!({})), ("b", label("ssd"))], vec![], with(asks("1"), prefers("ssd")), "b"),
        (vec![("a", soft), ("b", json!({}))], vec![on("b", "1")], asks("1"), "b"),
        (vec![("a", json!({})), ("b", json!({}))], vec![], with(asks("1"), json!({"nodeName": "b"})), "b"),
    ];
    for (nodes, pods, wants, expected) in cases {
        assert_eq!(decide(&nodes, &pods, wants.clone()).unwrap(), expected, "{wants}");
    }
}

#[tokio::test]
async fn room_is_made_where_it_hurts_least() {
    let on = |node: &str, cpu: &str, priority: i64| {
        with(asks(cpu), json!({"nodeName": node, "priority": priority}))
    };
    let nodes = [("a", json!({})), ("b", json!({})), ("c", json!({}))];
    let pods = [on("a", "4", 5), on("b", "2", 1), on("b", "2", 2), on("c", "4", 100)];
    let failure = decide(&nodes, &pods, with(asks("2"), json!({"priority": 50}))).unwrap_err();
    let preemption = failure.preemption.unwrap();
    assert_eq!(preemption.nominated_node.as_deref(), Some("b"));
    let victims: Vec<&str> = preemption.victims.iter().map(|victim| victim.uid()).collect();
    assert_eq!(victims, ["old-1"], "the less important one is enough");
    assert_eq!(failure.message, "0/3 nodes are available: 3 Insufficient cpu.");
}

#[tokio::test]
async fn budgets_are_broken_last() {
    let budget = |allowed: i64| {
        object(json!({
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        }))
    };
    for (allowed, expected) in [(1, "web"), (0, "plain")] {
        let scheduler = scheduler();
        let budgets = scheduler.parts.context.informers.informer(&POD_DISRUPTION_BUDGETS);
        budgets.indexer().update(budget(allowed));
        for name in ["a", "b"] {
            scheduler.parts.cache.set_node(&node(name, json!({})));
        }
        web(&scheduler, "web", "a", with(asks("4"), json!({"priority": 1})));
        let plain = with(asks("4"), json!({"priority": 2, "nodeName": "b"}));
        scheduler.parts.cache.add_pod(pod("plain", plain, json!({})));
        let wants = pod("new", with(asks("2"), json!({"priority": 50})), json!({}));
        let preemption = decide_on(&scheduler, wants).unwrap_err().preemption.unwrap();
        assert_eq!(preemption.victims[0].uid(), expected, "{allowed} disruptions are allowed");
    }
}

#[tokio::test]
async fn equal_pods_spread_over_equal_nodes() {
    let scheduler = scheduler();
    for name in ["a", "b", "c", "d"] {
        scheduler.parts.cache.set_node(&node(name, json!({})));
    }
    for index in 0..12 {
        attempt(&scheduler, pod(&format!("p{index}"), asks("500m"), json!({}))).unwrap();
    }
    let snapshot = scheduler.parts.cache.snapshot();
    assert!(snapshot.iter().all(|node| node.pods.len() == 3), "{snapshot:?}");
}

/// A pod of the app `web` on a node.
fn web(scheduler: &Scheduler, name: &str, node: &str, spec: Value) {
    scheduler.parts.cache.add_pod(labelled(name, with(spec, json!({"nodeName": node}))));
}

fn labelled(name: &str, spec: Value) -> Arc<PodInfo> {
    let metadata = json!({"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}});
    Arc::new(PodInfo::new(object(json!({"metadata": metadata, "spec": spec}))))
}

fn attempt(scheduler: &Scheduler, pod: Arc<PodInfo>) -> Result<String, String> {
    decide_on(scheduler, pod).map_err(|failure| failure.message)
}

fn zones(scheduler: &Scheduler, nodes: &[(&str, &str)]) {
    for (name, zone) in nodes {
        let labels = json!({"metadata": {"labels": {"zone": zone}}});
        scheduler.parts.cache.set_node(&node(name, labels));
    }
}

fn near(kind: &str, topology_key: &str) -> Value {
    let term = json!({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": topology_key});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    with(asks("100m"), json!({"affinity": {kind: required}}))
}

#[tokio::test]
async fn pods_that_avoid_each_other_go_to_different_nodes() {
    let scheduler = scheduler();
    zones(&scheduler, &[("a", "1"), ("b", "1")]);
    let spec = near("podAntiAffinity", "kubernetes.io/hostname");
    let mut chosen = vec![];
    for name in ["web-0", "web-1"] {
        chosen.push(attempt(&scheduler, labelled(name, spec.clone())).unwrap());
    }
    chosen.sort();
    assert_eq!(chosen, ["a", "b"]);
    let said = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. no new claims to \
                deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming \
                pod.";
    assert_eq!(attempt(&scheduler, labelled("web-2", spec)).unwrap_err(), said);
    let said = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules. no new \
                claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for \
                incoming pod.";
    assert_eq!(attempt(&scheduler, labelled("plain", asks("100m"))).unwrap_err(), said);
}

#[tokio::test]
async fn pods_that_want_each_other_go_together() {
    let scheduler = scheduler();
    zones(&scheduler, &[("a", "1"), ("b", "2")]);
    let spec = near("podAffinity", "zone");
    let first = attempt(&scheduler, labelled("web-0", spec.clone())).unwrap();
    for name in ["web-1", "web-2", "web-3"] {
        assert_eq!(attempt(&scheduler, labelled(name, spec.clone())).unwrap(), first);
    }
    let said = attempt(&scheduler, pod("stranger", near("podAffinity", "rack"), json!({}))).unwrap_err();
    assert!(
        said.starts_with("0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
        "{said}"
    );
}

#[tokio::test]
async fn pods_are_spread_over_zones() {
    let scheduler = scheduler();
    zones(&scheduler, &[("a", "1"), ("b", "1"), ("c", "2")]);
    let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}});
    let spec = with(asks("100m"), json!({"topologySpreadConstraints": [constraint]}));
    web(&scheduler, "web-0", "a", json!({}));
    assert_eq!(attempt(&scheduler, labelled("web-1", spec.clone())).unwrap(), "c");
    web(&scheduler, "web-2", "b", json!({}));
    assert_eq!(attempt(&scheduler, labelled("web-3", spec.clone())).unwrap(), "c");
    web(&scheduler, "web-4", "c", json!({}));
    for node in ["a", "b"] {
        let full = with(asks("4"), json!({"nodeName": node}));
        scheduler.parts.cache.add_pod(pod(&format!("full-{node}"), full, json!({})));
    }
    let said = attempt(&scheduler, labelled("web-5", spec)).unwrap_err();
    let expected = "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, \
                    2 Insufficient cpu.";
    assert!(said.starts_with(expected), "{said}");
}
