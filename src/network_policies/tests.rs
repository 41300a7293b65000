//! Who may ask whom under which policy.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use network::{Passage, Protocol};
use serde_json::{Value, json};

use crate::judge::{Direction, PassageCase, PassageSide, PodIdentity};
use crate::policies::{Book, PassageSides, Residents, Who, judged};
use crate::policy::ReadPolicy;
use crate::verdict::Judgement;
use apimachinery::object::Object;
use client_go::indexer::Indexer;
use client_go::lister::Lister;

fn side(address: &str, pod: Option<(&str, &str)>) -> PassageSide {
    let labels = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    let pod = pod.map(|(namespace, app)| PodIdentity {
        namespace: namespace.into(),
        name: app.into(),
        labels: labels("app", app),
        namespace_labels: labels("team", namespace),
        ports: vec![("http".into(), 8080, Protocol::Tcp)],
    });
    PassageSide { address: address.parse().unwrap(), pod }
}

fn policy(mut spec: Value) -> ReadPolicy {
    if spec["podSelector"].is_null() {
        spec["podSelector"] = json!({});
    }
    let metadata = json!({"name": "own", "namespace": "one", "uid": "own"});
    ReadPolicy::of(&Object::from_value(&json!({"metadata": metadata, "spec": spec}), vec![]).unwrap())
}

/// What a policy in the namespace `one` says of somebody who asks a pod `web` there at a port.
fn ingress(rules: Value, from: &PassageSide, port: u16) -> Option<bool> {
    let web = side("10.244.1.2", Some(("one", "web")));
    let own = policy(json!({"policyTypes": ["Ingress"], "ingress": rules}));
    asked(Direction::Ingress, &own, from, &web, port)
}

fn asked(
    direction: Direction,
    policy: &ReadPolicy,
    from: &PassageSide,
    to: &PassageSide,
    port: u16,
) -> Option<bool> {
    let (asker, asked) = (SocketAddr::new(from.address, 40_000), SocketAddr::new(to.address, port));
    let passage = Passage { from: asker, to: asked, protocol: Protocol::Tcp };
    match (PassageCase { passage, from, to }).judged(direction, std::iter::once(policy)) {
        Ok(by) => by.map(|_| true),
        Err(_) => Some(false),
    }
}

#[test]
fn peers_are_pods_namespaces_and_addresses() {
    let friend = side("10.244.1.3", Some(("one", "client")));
    let stranger = side("10.244.1.4", Some(("two", "client")));
    let outside = side("192.0.2.9", None);
    let from = |peer: Value| json!([{"from": [peer]}]);
    let block = json!({"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.8/29"]}});
    let clients = json!({"matchLabels": {"app": "client"}});
    let of_two = json!({"matchLabels": {"team": "two"}});
    let both = json!({"namespaceSelector": of_two, "podSelector": {"matchLabels": {"app": "other"}}});
    for (rules, wanted) in [
        (json!([]), [false, false, false]),
        (json!([{}]), [true, true, true]),
        (from(json!({"podSelector": clients})), [true, false, false]),
        (from(json!({"namespaceSelector": {}})), [true, true, false]),
        (from(json!({"namespaceSelector": of_two})), [false, true, false]),
        (from(both), [false, false, false]),
        (from(block), [false, false, false]),
        (from(json!({"ipBlock": {"cidr": "192.0.2.0/24"}})), [false, false, true]),
        (from(json!({"ipBlock": {"cidr": "10.244.1.3/32"}})), [true, false, false]),
    ] {
        let said = [&friend, &stranger, &outside].map(|from| ingress(rules.clone(), from, 80).unwrap());
        assert_eq!(said, wanted, "{rules}");
    }
}

#[test]
fn ports_are_numbers_ranges_and_names_of_who_is_asked() {
    let friend = side("10.244.1.3", Some(("one", "client")));
    let at = |port: Value| json!([{"ports": [port]}]);
    for (rules, port, wanted) in [
        (at(json!({"port": 80})), 80, true),
        (at(json!({"port": 80})), 81, false),
        (at(json!({"port": 80, "endPort": 90})), 90, true),
        (at(json!({"port": 80, "endPort": 90})), 91, false),
        (at(json!({"port": "http"})), 8080, true),
        (at(json!({"port": "http"})), 80, false),
        (at(json!({"protocol": "UDP"})), 80, false),
        (at(json!({"protocol": "TCP"})), 80, true),
        (at(json!({"protocol": "SCTP"})), 80, false),
    ] {
        assert_eq!(ingress(rules.clone(), &friend, port), Some(wanted), "{rules} {port}");
    }
}

#[test]
fn a_policy_says_nothing_of_pods_and_directions_that_it_does_not_name() {
    let (web, client) =
        (side("10.244.1.2", Some(("one", "web"))), side("10.244.1.3", Some(("one", "client"))));
    let of_web = json!({"matchLabels": {"app": "web"}});
    let deny = policy(json!({"podSelector": of_web, "policyTypes": ["Ingress"]}));
    assert_eq!(asked(Direction::Ingress, &deny, &client, &web, 80), Some(false));
    assert_eq!(asked(Direction::Ingress, &deny, &web, &client, 80), None);
    assert_eq!(asked(Direction::Egress, &deny, &web, &client, 80), None);
    let egress = policy(json!({"policyTypes": ["Egress"], "egress": [
        {"to": [{"podSelector": of_web}], "ports": [{"port": "http"}]}]}));
    assert_eq!(asked(Direction::Egress, &egress, &client, &web, 8080), Some(true));
    assert_eq!(asked(Direction::Egress, &egress, &client, &web, 80), Some(false));
    assert_eq!(asked(Direction::Egress, &egress, &web, &client, 8080), Some(false));
    assert_eq!(asked(Direction::Ingress, &egress, &client, &web, 80), None);
}

/// Behind a port of a node: the pod asks, and it arrives in the node's name.
#[test]
fn who_is_passed_on_in_a_nodes_name_is_judged_as_himself_when_he_leaves() {
    let node = "172.18.0.2";
    let (pod, web) = (("one", "client"), ("two", "web"));
    let sides = |asker: Option<(&str, &str)>| PassageSides {
        asker: side(if asker.is_some() { "10.244.1.3" } else { node }, asker),
        from: side(node, None),
        to: side("10.244.1.2", Some(web)),
    };
    let passage = Passage {
        from: SocketAddr::new(node.parse().unwrap(), 40_000),
        to: "10.244.1.2:8080".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let own = policy(json!({"policyTypes": ["Egress"]}));
    let named = |namespace: &str, own: ReadPolicy| {
        Book::from([(namespace.to_owned(), [(own.name.clone(), Arc::new(own))].into())])
    };
    let leaving = named("one", own);
    assert_eq!(judged(&leaving, passage, &sides(Some(pod))), Judgement::KeptOut(vec!["one/own".into()]));
    assert_eq!(judged(&leaving, passage, &sides(None)), Judgement::Free);
    // What arrives is the node's: no selector of pods is him.
    let from_pods = json!([{"from": [{"namespaceSelector": {}}]}]);
    let arriving = named("two", policy(json!({"policyTypes": ["Ingress"], "ingress": from_pods})));
    assert_eq!(judged(&arriving, passage, &sides(Some(pod))), Judgement::KeptOut(vec!["two/own".into()]));
    let from_node = json!([{"from": [{"ipBlock": {"cidr": "172.18.0.0/16"}}]}]);
    let arriving = named("two", policy(json!({"policyTypes": ["Ingress"], "ingress": from_node})));
    assert_eq!(judged(&arriving, passage, &sides(Some(pod))), Judgement::Allowed(vec!["two/own".into()]));
}

/// A node with one pod, of which nobody was told yet.
struct OneResident(Arc<Object>);

impl Residents for OneResident {
    fn pod_at(&self, address: IpAddr) -> BoxFuture<'_, Option<Arc<Object>>> {
        let pod = (address == IpAddr::from([10, 244, 1, 2])).then(|| self.0.clone());
        Box::pin(std::future::ready(pod))
    }

    fn well_known(&self, _: IpAddr) -> Option<(String, BTreeMap<String, String>)> {
        None
    }
}

#[tokio::test]
async fn a_pod_is_somebody_as_soon_as_its_node_knows_it() {
    let nothing = || Lister::new(Arc::new(Indexer::new()));
    let who = Who { pods: nothing(), namespaces: nothing() };
    let metadata = json!({"name": "web", "namespace": "one", "uid": "web", "labels": {"app": "web"}});
    let pod = json!({"metadata": metadata, "spec": {"containers": []}});
    let node = OneResident(Arc::new(Object::from_value(&pod, vec![]).unwrap()));
    let side = async |address: IpAddr| who.side(address, who.pod(address, &node).await.as_deref(), &node);
    let identity = side([10, 244, 1, 2].into()).await.pod.unwrap();
    assert_eq!((&*identity.namespace, &*identity.name, &*identity.labels["app"]), ("one", "web", "web"));
    assert_eq!(side([10, 244, 1, 2].into()).await.shown(), "one/web");
    let nobody = side([10, 244, 1, 3].into()).await;
    assert!(nobody.pod.is_none());
    assert_eq!(nobody.shown(), "10.244.1.3");
}
