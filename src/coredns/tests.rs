//! What is answered to which name.

use std::sync::Arc;

use network::dns::{DnsMessage, RecordData, RecordType, ResponseCode};
use serde_json::{Value, json};

use crate::server::{NameServer, addresses_of_service, addresses_with_names, service_of_slice};
use apimachinery::object::Object;
use client_go::indexer::{IndexFunc, Indexer};
use client_go::lister::Lister;

fn lister(indices: &[(&str, IndexFunc)], objects: &[Value]) -> Lister {
    let indexer = Indexer::new();
    indices.iter().for_each(|(name, function)| indexer.add_index(name, *function));
    for object in objects {
        let object = Object::from_value(object, vec![]).unwrap();
        indexer.update(Arc::new(object));
    }
    Lister::new(Arc::new(indexer))
}

fn service(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec})
}

fn server() -> NameServer {
    let http = json!({"name": "http", "port": 80, "protocol": "TCP"});
    let ports = json!([http, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    let both = json!(["10.96.0.7", "fd00::7"]);
    let services = [
        service("web", json!({"clusterIP": "10.96.0.7", "clusterIPs": both, "ports": ports})),
        service("db", json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": [ports[0]]})),
        service("empty", json!({"clusterIP": "None"})),
        service("out", json!({"type": "ExternalName", "externalName": "example.com"})),
        service("in", json!({"type": "ExternalName", "externalName": "web.default.svc.cluster.local"})),
        service("loop", json!({"type": "ExternalName", "externalName": "loop.default.svc.cluster.local"})),
    ];
    let slice = json!({
        "metadata": {"name": "db-1", "namespace": "default", "uid": "db",
            "labels": {"kubernetes.io/service-name": "db"}},
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": ["10.244.1.2"], "hostname": "db-0", "conditions": {"ready": true}},
            {"addresses": ["10.244.1.3"], "conditions": {}},
            {"addresses": ["10.244.1.4"], "hostname": "db-2", "conditions": {"ready": false}},
        ],
    });
    let namespace = json!({"metadata": {"name": "default", "uid": "default"}});
    NameServer::over(
        lister(&[("address", addresses_of_service)], &services),
        lister(&[("service", service_of_slice), ("address", addresses_with_names)], &[slice]),
        lister(&[], &[namespace]),
    )
}

fn ask(name: &str, kind: RecordType) -> DnsMessage {
    server().answer(&DnsMessage::ask(1, name, kind))
}

fn said(message: &DnsMessage) -> Vec<String> {
    let texts = message.answers.iter().map(|record| match &record.data {
        RecordData::V4(address) => address.to_string(),
        RecordData::V6(address) => address.to_string(),
        RecordData::Alias(name) => format!("alias {name}"),
        RecordData::Name(name) => name.clone(),
        RecordData::Place(priority, weight, port, host) => format!("{priority} {weight} {port} {host}"),
        RecordData::Text(text) => text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect()
}

#[test]
fn names_have_what_coredns_says() {
    use RecordType as T;
    let cases: &[(&str, RecordType, &[&str])] = &[
        ("web.default.svc.cluster.local", T::A, &["10.96.0.7"]),
        ("WEB.default.svc.Cluster.Local", T::A, &["10.96.0.7"]),
        ("web.default.svc.cluster.local", T::AAAA, &["fd00::7"]),
        ("_http._tcp.web.default.svc.cluster.local", T::SRV, &["0 100 80 web.default.svc.cluster.local"]),
        (
            "web.default.svc.cluster.local",
            T::SRV,
            &["0 50 80 web.default.svc.cluster.local", "0 50 53 web.default.svc.cluster.local"],
        ),
        ("db.default.svc.cluster.local", T::A, &["10.244.1.2", "10.244.1.3"]),
        ("db-0.db.default.svc.cluster.local", T::A, &["10.244.1.2"]),
        ("10-244-1-3.db.default.svc.cluster.local", T::A, &["10.244.1.3"]),
        (
            "_http._tcp.db.default.svc.cluster.local",
            T::SRV,
            &[
                "0 50 8080 db-0.db.default.svc.cluster.local",
                "0 50 8080 10-244-1-3.db.default.svc.cluster.local",
            ],
        ),
        ("out.default.svc.cluster.local", T::A, &["alias example.com"]),
        ("in.default.svc.cluster.local", T::A, &["alias web.default.svc.cluster.local", "10.96.0.7"]),
        ("10-1-2-3.default.pod.cluster.local", T::A, &["10.1.2.3"]),
        ("dns-version.cluster.local", T::TXT, &["1.1.0"]),
        ("7.0.96.10.in-addr.arpa", T::PTR, &["web.default.svc.cluster.local"]),
        ("2.1.244.10.in-addr.arpa", T::PTR, &["db-0.db.default.svc.cluster.local"]),
    ];
    for (name, kind, wanted) in cases {
        let answer = ask(name, *kind);
        assert_eq!(said(&answer), *wanted, "{name} {kind:?}");
        assert_eq!(answer.outcome, ResponseCode::NO_ERROR, "{name}");
        assert!(answer.answers.iter().all(|record| record.ttl == 30));
    }
    let first = &ask("WEB.default.svc.Cluster.Local", T::A).answers[0].name;
    assert_eq!(first, "WEB.default.svc.Cluster.Local");
}

#[test]
fn a_name_without_data_is_there_and_another_is_not() {
    use RecordType as T;
    for (name, kind, outcome) in [
        ("db.default.svc.cluster.local", T::AAAA, ResponseCode::NO_ERROR),
        ("default.svc.cluster.local", T::A, ResponseCode::NO_ERROR),
        ("svc.cluster.local", T::A, ResponseCode::NO_ERROR),
        ("none.svc.cluster.local", T::A, ResponseCode::NO_NAME),
        ("none.default.svc.cluster.local", T::A, ResponseCode::NO_NAME),
        ("empty.default.svc.cluster.local", T::A, ResponseCode::NO_NAME),
        ("db-2.db.default.svc.cluster.local", T::A, ResponseCode::NO_NAME),
        ("_none._tcp.web.default.svc.cluster.local", T::SRV, ResponseCode::NO_NAME),
        ("10-1-2-3.none.pod.cluster.local", T::A, ResponseCode::NO_NAME),
        ("a-b.default.pod.cluster.local", T::A, ResponseCode::NO_NAME),
        ("9.9.9.9.in-addr.arpa", T::PTR, ResponseCode::NO_NAME),
    ] {
        let answer = ask(name, kind);
        assert_eq!((answer.outcome, answer.answers.len()), (outcome, 0), "{name} {kind:?}");
        assert_eq!(answer.authorities[0].data.kind(), T::SOA, "{name}");
    }
    // Others' names are nobody's.
    let other = ask("example.com", T::A);
    assert_eq!((other.outcome, other.authorities.len()), (ResponseCode::NO_NAME, 0));
}

#[test]
fn names_that_lead_to_themselves_end() {
    assert_eq!(ask("loop.default.svc.cluster.local", RecordType::A).answers.len(), 9);
}
