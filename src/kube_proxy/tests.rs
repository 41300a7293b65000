//! Where passages lead: every rule of kube-proxy with a Service that has it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use network::{Obstacle, Passage, Protocol, Route};
use serde_json::{Value, json};
use sync::RwLock;

use crate::proxier::{Proxier, Whereabouts};
use crate::tables::Tables;
use apimachinery::object::Object;
use client_go::indexer::Indexer;
use client_go::lister::Lister;
use clock::Clock;
use entropy::Entropy;

/// On node-1.
const POD: &str = "10.244.1.9";
const NODE: &str = "172.18.0.2";
const OUTSIDE: &str = "192.0.2.1";

struct TwoNodes;

impl Whereabouts for TwoNodes {
    fn node_of(&self, address: IpAddr) -> Option<Arc<str>> {
        let text = address.to_string();
        let is_on = |node: u8| {
            text.starts_with(&format!("10.244.{node}.")) || text == format!("172.18.0.{}", node + 1)
        };
        (1..=2).find(|node| is_on(*node)).map(|node| format!("node-{node}").into())
    }

    fn address_of(&self, node: &str, _like: IpAddr) -> Option<IpAddr> {
        let number: u8 = node.strip_prefix("node-")?.parse().ok()?;
        format!("172.18.0.{}", number + 1).parse().ok()
    }
}

struct Cluster {
    tables: Arc<RwLock<Tables>>,
    proxier: Proxier,
    clock: Clock,
}

fn object(value: Value) -> Object {
    Object::from_value(&value, vec![]).unwrap()
}

impl Cluster {
    fn new() -> Cluster {
        let tables = Arc::<RwLock<Tables>>::default();
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let indexer = Arc::new(Indexer::new());
        for (name, zone) in [("node-1", "a"), ("node-2", "b")] {
            let labels = json!({"topology.kubernetes.io/zone": zone});
            let node = object(json!({"metadata": {"name": name, "uid": name, "labels": labels}}));
            indexer.update(Arc::new(node));
        }
        let (placement, entropy) = (Arc::new(TwoNodes), Entropy::seeded(7));
        let proxier = Proxier::of(tables.clone(), Lister::new(indexer), placement, (&clock, &entropy));
        Cluster { tables, proxier, clock }
    }

    /// The Service `web` with these beside its address 10.96.0.7 and its port 80.
    fn with(spec: Value, endpoints: Value) -> Cluster {
        let cluster = Cluster::new();
        cluster.service("web", "10.96.0.7", spec);
        cluster.slice("web", endpoints);
        cluster
    }

    fn service(&self, name: &str, address: &str, more: Value) {
        let port = json!({"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"});
        let mut spec = json!({"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address],
            "ports": [port]});
        let status = more["status"].clone();
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let metadata = json!({"name": name, "namespace": "default", "uid": name});
        let status = if status.is_null() { json!({}) } else { status };
        let service = json!({"metadata": metadata, "spec": spec, "status": status});
        self.tables.write().put_service(&object(service));
    }

    fn slice(&self, service: &str, endpoints: Value) {
        let metadata = json!({"name": format!("{service}-1"), "namespace": "default", "uid": service,
            "labels": {"kubernetes.io/service-name": service}});
        let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
        let slice = json!({"metadata": metadata, "endpoints": endpoints, "ports": ports});
        self.tables.write().put_slice(&object(slice));
    }

    fn ask(&self, from: &str, to: &str) -> Route {
        let from = SocketAddr::new(from.parse().unwrap(), 40_000);
        self.proxier.route(Passage { from, to: to.parse().unwrap(), protocol: Protocol::Tcp })
    }

    /// All whom somebody reaches, and in whose name.
    fn reached(&self, from: &str, to: &str) -> BTreeSet<(String, String)> {
        (0..64)
            .map(|_| match self.ask(from, to) {
                Route::To { to, from } => (to.to_string(), from.to_string()),
                other => panic!("{from} {to}: {other:?}"),
            })
            .collect()
    }

    fn reaches(&self, from: &str, to: &str, wanted: &[(&str, &str)]) {
        let wanted = wanted.iter().map(|(to, from)| (format!("{to}:8080"), (*from).to_owned())).collect();
        assert_eq!(self.reached(from, to), wanted, "{from} {to}");
    }
}

fn endpoint(address: &str, node: &str, more: Value) -> Value {
    let mut endpoint = json!({"addresses": [address], "nodeName": node, "conditions": {"ready": true}});
    for (key, value) in more.as_object().unwrap() {
        endpoint[key] = value.clone();
    }
    endpoint
}

fn one_each() -> Value {
    json!([endpoint("10.244.1.2", "node-1", json!({})), endpoint("10.244.2.2", "node-2", json!({}))])
}

const DROPPED: Route = Route::Nowhere(Obstacle::TimedOut);
const REJECTED: Route = Route::Nowhere(Obstacle::Refused);

#[test]
fn an_address_of_a_service_leads_to_its_ready_endpoints() {
    let unready = endpoint("10.244.2.3", "node-2", json!({"conditions": {"ready": false}}));
    let endpoints = json!([one_each()[0], one_each()[1], unready]);
    let cluster = Cluster::with(json!({"externalIPs": ["192.0.2.80"]}), endpoints);
    cluster.reaches(POD, "10.96.0.7:80", &[("10.244.1.2", POD), ("10.244.2.2", POD)]);
    // Whoever is no pod of the cluster is asked for in the name of a node.
    cluster.reaches(POD, "192.0.2.80:80", &[("10.244.1.2", NODE), ("10.244.2.2", NODE)]);
    cluster.reaches(POD, "172.18.0.3:30080", &[("10.244.1.2", "172.18.0.3"), ("10.244.2.2", "172.18.0.3")]);
    assert_eq!(cluster.ask(POD, "10.96.0.7:81"), DROPPED);
    assert_eq!(cluster.ask(POD, "10.244.1.2:8080"), Route::Direct);
    assert_eq!(cluster.ask(POD, "172.18.0.3:30081"), Route::Direct);
}

#[test]
fn who_reaches_himself_is_asked_in_the_name_of_his_node() {
    let cluster = Cluster::with(json!({}), json!([one_each()[0]]));
    cluster.reaches("10.244.1.2", "10.96.0.7:80", &[("10.244.1.2", NODE)]);
}

#[test]
fn without_endpoints_it_is_refused_and_without_local_ones_dropped() {
    let local = json!({"internalTrafficPolicy": "Local", "externalTrafficPolicy": "Local"});
    assert_eq!(Cluster::with(json!({}), json!([])).ask(POD, "10.96.0.7:80"), REJECTED);
    assert_eq!(Cluster::with(local.clone(), json!([])).ask(POD, "10.96.0.7:80"), REJECTED);
    let cluster = Cluster::with(local, json!([one_each()[1]]));
    assert_eq!(cluster.ask(POD, "10.96.0.7:80"), DROPPED);
    cluster.reaches("10.244.2.9", "10.96.0.7:80", &[("10.244.2.2", "10.244.2.9")]);
    // From outside, and from another node, a node passes on to its own only, and says who asks; who is on it
    // reaches all.
    assert_eq!(cluster.ask(OUTSIDE, "172.18.0.2:30080"), DROPPED);
    assert_eq!(cluster.ask("10.244.2.9", "172.18.0.2:30080"), DROPPED);
    cluster.reaches(OUTSIDE, "172.18.0.3:30080", &[("10.244.2.2", OUTSIDE)]);
    cluster.reaches(POD, "172.18.0.2:30080", &[("10.244.2.2", POD)]);
}

#[test]
fn who_ends_still_serves_where_nobody_else_does() {
    let conditions = json!({"conditions": {"ready": false, "serving": true, "terminating": true}});
    let ending = endpoint("10.244.1.3", "node-1", conditions);
    let cluster = Cluster::with(json!({}), json!([one_each()[1], ending]));
    cluster.reaches(POD, "10.96.0.7:80", &[("10.244.2.2", POD)]);
    let cluster = Cluster::with(json!({}), json!([ending]));
    cluster.reaches(POD, "10.96.0.7:80", &[("10.244.1.3", POD)]);
}

#[test]
fn what_another_proxy_looks_after_is_left_to_it() {
    for label in ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"] {
        let labelled = |metadata: Value| {
            let mut metadata = metadata;
            metadata["labels"][label] = "".into();
            metadata
        };
        let cluster = Cluster::with(json!({}), one_each());
        let slice = json!({"name": "web-1", "namespace": "default", "uid": "web",
            "labels": {"kubernetes.io/service-name": "web"}});
        cluster.tables.write().put_slice(&object(json!({"metadata": labelled(slice)})));
        assert_eq!(cluster.ask(POD, "10.96.0.7:80"), REJECTED, "a slice, {label}");
        let service = json!({"name": "web", "namespace": "default", "uid": "web"});
        let spec = json!({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ports": [{"port": 80}]});
        cluster.tables.write().put_service(&object(json!({"metadata": labelled(service), "spec": spec})));
        assert!(
            cluster.tables.read().at("10.96.0.7".parse().unwrap(), 80, Protocol::Tcp).is_none(),
            "{label}"
        );
    }
}

#[test]
fn hints_keep_traffic_in_its_zone_and_on_its_node() {
    let zone = |name: &str| json!({"hints": {"forZones": [{"name": name}]}});
    let node = |name: &str| json!({"hints": {"forNodes": [{"name": name}]}});
    let two = |first: Value, second: Value| {
        json!([endpoint("10.244.1.2", "node-1", first), endpoint("10.244.2.2", "node-2", second)])
    };
    for hints in [two(zone("a"), zone("b")), two(node("node-1"), node("node-2"))] {
        let cluster = Cluster::with(json!({}), hints);
        cluster.reaches(POD, "10.96.0.7:80", &[("10.244.1.2", POD)]);
        cluster.reaches("10.244.2.9", "10.96.0.7:80", &[("10.244.2.2", "10.244.2.9")]);
    }
    // One without hints, or none for here: they count for nobody.
    for hints in [two(zone("a"), json!({})), two(zone("b"), zone("b"))] {
        let cluster = Cluster::with(json!({}), hints);
        cluster.reaches(POD, "10.96.0.7:80", &[("10.244.1.2", POD), ("10.244.2.2", POD)]);
    }
}

#[test]
fn somebody_is_sent_to_the_same_endpoint_until_his_time_is_over() {
    let affinity = json!({"sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}}});
    let cluster = Cluster::with(affinity, one_each());
    let first = cluster.reached(POD, "10.96.0.7:80");
    assert_eq!(first.len(), 1);
    let others: BTreeSet<_> =
        (20..60).flat_map(|last| cluster.reached(&format!("10.244.1.{last}"), "10.96.0.7:80")).collect();
    assert!(others.iter().map(|(to, _)| to).collect::<BTreeSet<_>>().len() == 2);
    let later: BTreeSet<_> = (0..40)
        .flat_map(|_| {
            cluster.clock.advance(Duration::from_secs(10));
            cluster.reached(POD, "10.96.0.7:80")
        })
        .collect();
    assert_eq!(later.len(), 2);
    // The endpoint that he was sent to is gone.
    cluster.slice("web", json!([endpoint("10.244.2.7", "node-2", json!({}))]));
    cluster.reaches(POD, "10.96.0.7:80", &[("10.244.2.7", POD)]);
}

#[test]
fn a_load_balancer_takes_traffic_from_its_ranges() {
    let ingress = |more: Value| json!({"loadBalancer": {"ingress": [more]}});
    let spec = |status: Value| {
        let ranges = ["192.0.2.0/28"];
        json!({"type": "LoadBalancer", "loadBalancerSourceRanges": ranges, "status": status})
    };
    let cluster = Cluster::with(spec(ingress(json!({"ip": "198.51.100.5"}))), json!([one_each()[0]]));
    assert!(matches!(cluster.ask(OUTSIDE, "198.51.100.5:80"), Route::To { .. }));
    assert_eq!(cluster.ask("192.0.2.99", "198.51.100.5:80"), DROPPED);
    let proxied = ingress(json!({"ip": "198.51.100.5", "ipMode": "Proxy"}));
    let cluster = Cluster::with(spec(proxied), one_each());
    assert_eq!(cluster.ask(OUTSIDE, "198.51.100.5:80"), Route::Direct);
}

#[test]
fn what_has_no_address_is_not_proxied() {
    for spec in [
        json!({"clusterIP": "None", "clusterIPs": ["None"]}),
        json!({"type": "ExternalName", "externalName": "example.com", "clusterIP": "", "clusterIPs": []}),
    ] {
        let cluster = Cluster::with(spec, one_each());
        assert_eq!(cluster.ask(POD, "172.18.0.2:30080"), Route::Direct);
    }
    let sctp = json!([{"name": "http", "port": 80, "protocol": "SCTP"}]);
    let cluster = Cluster::with(json!({"ports": sctp}), one_each());
    assert_eq!(cluster.ask(POD, "10.96.0.7:80"), DROPPED);
}

#[test]
fn a_service_that_goes_or_moves_leaves_nothing() {
    let cluster = Cluster::with(json!({}), one_each());
    cluster.service("other", "10.96.0.8", json!({"externalIPs": ["192.0.2.80"]}));
    cluster.service("web", "10.96.0.9", json!({"externalIPs": ["192.0.2.80"]}));
    assert_eq!(cluster.ask(POD, "10.96.0.7:80"), Route::Direct);
    assert!(matches!(cluster.ask(POD, "10.96.0.9:80"), Route::To { .. }));
    // What two want is the other's when one of them goes.
    let other = json!({"metadata": {"name": "other", "namespace": "default", "uid": "other"}});
    cluster.tables.write().remove_service(&object(other));
    assert!(matches!(cluster.ask(POD, "192.0.2.80:80"), Route::To { .. }));
    let web = json!({"metadata": {"name": "web", "namespace": "default", "uid": "web"}});
    cluster.tables.write().remove_service(&object(web));
    assert_eq!(cluster.ask(POD, "192.0.2.80:80"), Route::Direct);
    assert_eq!(cluster.ask(POD, "172.18.0.2:30080"), Route::Direct);
}

#[test]
fn an_address_is_its_services_whoever_else_names_it() {
    let cluster = Cluster::with(json!({}), json!([one_each()[0]]));
    let taken =
        json!({"externalIPs": ["10.96.0.7"], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]});
    // By name it comes first, and it is the later one.
    cluster.service("attacker", "10.96.0.8", taken);
    cluster.slice("attacker", json!([one_each()[1]]));
    cluster.reaches(POD, "10.96.0.7:80", &[("10.244.1.2", POD)]);
    let attacker = json!({"metadata": {"name": "attacker", "namespace": "default", "uid": "attacker"}});
    cluster.tables.write().remove_service(&object(attacker));
    cluster.reaches(POD, "10.96.0.7:80", &[("10.244.1.2", POD)]);
    assert_eq!(cluster.ask(POD, "10.96.0.8:80"), Route::Direct);
}

#[test]
fn a_node_says_whether_it_has_endpoints() {
    let spec =
        json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30_333});
    let cluster = Cluster::with(spec, json!([one_each()[0]]));
    let (code, body) = cluster.proxier.health_check("node-1", 30_333).unwrap();
    assert_eq!(code, 200);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["service"], json!({"namespace": "default", "name": "web"}));
    assert_eq!(body["localEndpoints"], 1);
    assert_eq!(cluster.proxier.health_check("node-2", 30_333).unwrap().0, 503);
    assert_eq!(cluster.proxier.health_check("node-1", 30_334), None);
}
