//! Flags of upstream's components that say where addresses come from, how long things last, and which certificate
//! is shown.

use std::fs;
use std::time::Duration;

use kubarium::apimachinery::status::Status;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::networking::ip_address::IP_ADDRESSES;
use kubarium::apis::networking::port_range::PortRange;
use kubarium::clock::Clock;
use kubarium::cluster::Components;
use kubarium::controllers::cidr_set::ClusterCidrs;
use kubarium::{Cluster, Config};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::support::{Kubectl, Up, kubectls, texts};

fn bare() -> Config {
    Config::new().components(Components::NONE)
}

async fn node_port(cluster: &Cluster, name: &str, port: Value) -> Result<u64, Status> {
    let ports = json!([{"port": 80, "nodePort": port}]);
    let service = json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}});
    let created = cluster.client().create(&SERVICES, "default", service).await?;
    Ok(created.to_value()["spec"]["ports"][0]["nodePort"].as_u64().unwrap())
}

#[tokio::test]
async fn services_take_their_ports_from_the_range() {
    let mut config = bare();
    config.apiserver.services.service_node_port_range = PortRange::parse("7000-7019").unwrap();
    let cluster = Cluster::start(config).await.unwrap();
    let drawn = node_port(&cluster, "drawn", Value::Null).await.unwrap();
    assert!((7016..=7019).contains(&drawn), "{drawn}");
    assert_eq!(node_port(&cluster, "chosen", json!(7001)).await.unwrap(), 7001);
    let refused = node_port(&cluster, "outside", json!(30_000)).await.unwrap_err().to_string();
    let why = "provided port is not in the valid range. The range of valid ports is 7000-7019";
    assert!(refused.contains(why), "{refused}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_services_held_before_is_looked_at_when_a_data_dir_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let config = || bare().data_dir(folder.path()).unsafe_no_fsync(true);
    let cluster = Cluster::start(config()).await.unwrap();
    node_port(&cluster, "web", json!(30_007)).await.unwrap();
    let service = cluster.client().get(&SERVICES, "default", "web").await.unwrap().to_value();
    let ip = service["spec"]["clusterIP"].as_str().unwrap();
    cluster.client().delete(&IP_ADDRESSES, "", ip, &Default::default()).await.unwrap();
    cluster.stop().await;
    let mut narrow = config();
    narrow.apiserver.services.service_node_port_range = PortRange::parse("7000-7019").unwrap();
    let cluster = Cluster::start(narrow).await.unwrap();
    let wanted = [
        format!("Cluster IP [IPv4]: {ip} is not allocated; repairing"),
        "Port 30007 is not within the port range 7000-7019; please recreate service".to_owned(),
    ];
    for message in wanted {
        let told = async || {
            let events = cluster.client().list(&EVENTS, "default", &Default::default()).await.unwrap();
            events.items.iter().any(|event| event.to_value()["message"] == message)
        };
        while !told().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    cluster.client().get(&IP_ADDRESSES, "", ip).await.unwrap();
    cluster.stop().await;
}

#[tokio::test]
async fn events_last_as_long_as_the_flag_says() {
    let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000));
    let mut config = bare().clock(clock.clone());
    config.apiserver.event_ttl = Duration::from_secs(10 * 60);
    let cluster = Cluster::start(config).await.unwrap();
    let client = cluster.client();
    let involved = json!({"kind": "Pod", "name": "p", "namespace": "default"});
    let event = json!({"metadata": {"name": "e"}, "involvedObject": involved, "reason": "R", "message": "m"});
    client.create(&EVENTS, "default", event).await.unwrap();
    client.create(&CONFIG_MAPS, "default", json!({"metadata": {"name": "stays"}})).await.unwrap();
    clock.advance(Duration::from_secs(9 * 60));
    client.get(&EVENTS, "default", "e").await.unwrap();
    // Leases that end together are shared for a while: a twentieth of their time at most.
    clock.advance(Duration::from_secs(2 * 60));
    while client.get(&EVENTS, "default", "e").await.is_ok() {
        assert!(clock.elapsed() < Duration::from_secs(30 * 60), "it lasts as if nothing were said");
        clock.advance(Duration::from_secs(10));
        tokio::task::yield_now().await;
    }
    client.get(&CONFIG_MAPS, "default", "stays").await.unwrap();
    cluster.stop().await;
}

fn with_cidr(cidr: &str, mask: u32, nodes: u32) -> Config {
    let kubelets = Components::NONE.kubelets(true);
    let mut config = Config::new().nodes(nodes).components(kubelets);
    config.controller_manager.cluster_cidr = ClusterCidrs::parse(cidr).ok();
    config.controller_manager.node_cidr_mask_size = Some(mask);
    config
}

#[tokio::test]
async fn nodes_have_parts_of_the_range_of_pods() {
    let cluster = Cluster::start(with_cidr("10.7.0.0/23", 24, 2)).await.unwrap();
    for (node, cidr) in [("node-1", "10.7.0.0/24"), ("node-2", "10.7.1.0/24")] {
        let node = cluster.client().get(&NODES, "", node).await.unwrap().to_value();
        assert_eq!(node["spec"]["podCIDR"], cidr);
        assert_eq!(node["spec"]["podCIDRs"], json!([cidr]));
    }
    cluster.stop().await;
    let refused = Cluster::start(with_cidr("10.7.0.0/23", 24, 3)).await.err().unwrap().to_string();
    assert!(refused.starts_with("CIDR allocation failed") && refused.contains("has 2 of"), "{refused}");
    let refused = Cluster::start(with_cidr("10.7.0.0/24", 16, 1)).await.err().unwrap().to_string();
    assert!(refused.contains("--cluster-cidr mask size must be less than or equal to"), "{refused}");
}

/// The arguments of a self-signed certificate for these names.
fn own_certificate(folder: &std::path::Path, names: &[&str]) -> [String; 4] {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let (cert_file, key_file) = (folder.join("tls.crt"), folder.join("tls.key"));
    fs::write(&cert_file, certificate.pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let shown = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    ["--tls-cert-file".into(), shown(&cert_file), "--tls-private-key-file".into(), shown(&key_file)]
}

#[test]
fn a_certificate_of_ones_own_is_shown_and_the_kubeconfig_trusts_it() {
    let folder = tempfile::tempdir().unwrap();
    let flags = own_certificate(folder.path(), &["127.0.0.1", "api.example.com"]);
    let mut arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
    arguments.push("--apiserver-only");
    let up = Up::start_with(&arguments);
    let kubectl = Kubectl::new(kubectls().last().unwrap(), &up);
    kubectl.ok("create configmap trusted");
    assert!(!up.log().contains("will refuse it"), "{}", up.log());
    // The command line's own client, too.
    let (out, err) = texts(&up.kubarium(&["trace", "configmap/trusted"]));
    assert!(out.contains("trusted"), "{out}{err}");
}

#[test]
fn a_certificate_for_other_names_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let flags = own_certificate(folder.path(), &["api.example.com"]);
    let mut arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
    arguments.push("--apiserver-only");
    let up = Up::start_with(&arguments);
    let said = "is for api.example.com, and not for 127.0.0.1";
    assert!(up.log().contains(said), "{}", up.log());
}
