//! Names of Services and pods, as a program in a pod finds them.

use futures::FutureExt;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::network::resolver::{NameError, ResolvConf};
use serde_json::json;

use super::Net;

const OF_A_POD: &str = "search default.svc.cluster.local svc.cluster.local cluster.local\n\
                        nameserver 10.96.0.10\noptions ndots:5\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_finds_services_and_pods_by_their_names() {
    let net = Net::start().await;
    let pod = net.pod("web-0", json!({"image": "nginx"})).await;
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"},
        "ports": [{"port": 80}]}});
    let service = net.create(&SERVICES, service).await;
    let headless = json!({"metadata": {"name": "all"}, "spec": {"clusterIP": "None",
        "selector": {"app": "web"}, "ports": [{"port": 80}]}});
    net.create(&SERVICES, headless).await;
    let container = json!({"name": "main", "image": "nginx"});
    let spec = json!({"hostname": "named", "subdomain": "all-others", "containers": [container]});
    let labels = json!({"app": "other"});
    net.create(&PODS, json!({"metadata": {"name": "other-0", "labels": labels}, "spec": spec})).await;
    let named = net.address("other-0").await;
    let spec = json!({"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]});
    net.create(&SERVICES, json!({"metadata": {"name": "all-others"}, "spec": spec})).await;
    let spec = json!({"type": "ExternalName", "externalName": "web.default.svc.cluster.local"});
    net.create(&SERVICES, json!({"metadata": {"name": "alias"}, "spec": spec})).await;
    let address = service["spec"]["clusterIP"].as_str().unwrap().parse().unwrap();
    let (network, conf) = (net.cluster.network(), ResolvConf::parse(OF_A_POD));
    let dashed = pod.to_string().replace('.', "-");
    let names = [
        ("web".to_owned(), address),
        ("web.default".to_owned(), address),
        ("web.default.svc.cluster.local.".to_owned(), address),
        ("all".to_owned(), pod),
        (format!("{dashed}.all"), pod),
        ("alias".to_owned(), address),
        ("named.all-others.default.svc.cluster.local".to_owned(), named),
        (format!("{dashed}.default.pod.cluster.local"), pod),
    ];
    for (name, wanted) in names {
        let (network, conf, name) = (&network, &conf, &name);
        // The server hears of Services a moment later than who made them.
        net.until(|| {
            let found = network.resolve(pod, conf, name);
            found.map(|found| (found == Ok(vec![wanted])).then_some(())).boxed()
        })
        .await;
    }
    assert_eq!(network.resolve(pod, &conf, "none").await, Err(NameError::NoName));
    assert_eq!(network.resolve(pod, &conf, "example.com").await, Err(NameError::NoName));
    let found = network.resolve(pod, &conf, "kubernetes.default.svc").await;
    assert_eq!(found, Ok(vec!["10.96.0.1".parse().unwrap()]));
    net.cluster.stop().await;
}

/// Two names that lead to each other, and one that leads to itself: nobody follows them for ever.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_lead_in_a_circle_have_no_address() {
    let net = Net::start().await;
    let client = net.pod("client", json!({"image": "nginx"})).await;
    for (name, other) in [("one", "two"), ("two", "one"), ("own", "own")] {
        let target = format!("{other}.default.svc.cluster.local");
        let spec = json!({"type": "ExternalName", "externalName": target});
        net.create(&SERVICES, json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    let conf = ResolvConf::parse("nameserver 10.96.0.10\noptions timeout:5 attempts:1\n");
    for name in ["one", "own"] {
        let asked = format!("{name}.default.svc.cluster.local.");
        let found = net.cluster.network().resolve(client, &conf, &asked).await;
        assert!(found.is_err(), "{name}: {found:?}");
    }
    net.cluster.stop().await;
}
