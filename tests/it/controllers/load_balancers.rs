//! Services of type LoadBalancer have addresses of the range that somebody gives.

use kubarium::apis::core::service::SERVICES;
use kubarium::apis::networking::service_ranges::ServiceRanges;
use kubarium::cluster::{Components, Config};
use kubarium::controllers::load_balancer_ranges::LoadBalancerRanges;
use kubarium::controllers::options::ControllerManagerOptions;
use serde_json::{Value, json};

use super::support::*;

/// Addresses 192.0.2.0 to 192.0.2.1.
async fn fixture() -> Fixture {
    fixture_of("192.0.2.0/31", "10.96.0.0/16").await
}

async fn fixture_of(ranges: &str, services: &str) -> Fixture {
    let mut options = ControllerManagerOptions::default();
    options.load_balancer_range = LoadBalancerRanges::parse(ranges).ok();
    let mut config = Config::new().components(Components::NONE.controllers(true));
    config.apiserver.services.service_cluster_ip_range = ServiceRanges::parse(services).unwrap();
    Fixture::start_configured(config.controller_manager(options)).await
}

fn balancer(name: &str, more: Value) -> Value {
    let ports = json!([{"name": "http", "port": 80}, {"name": "https", "port": 443}]);
    let mut spec = json!({"type": "LoadBalancer", "ports": ports});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn ingress(fixture: &Fixture, name: &str) -> Value {
    fixture.get(&SERVICES, name).await.unwrap()["status"]["loadBalancer"]["ingress"].clone()
}

/// What keeps a Service until its load balancer is gone.
async fn finalizers(fixture: &Fixture, name: &str) -> Value {
    fixture.get(&SERVICES, name).await.unwrap()["metadata"]["finalizers"].clone()
}

async fn has(fixture: &Fixture, name: &str, address: &str) {
    let wanted = json!([{"ip": address, "ipMode": "VIP"}]);
    let look = || async { (ingress(fixture, name).await == wanted).then_some(()) };
    fixture.eventually(&format!("{name} has {address}"), look).await;
}

#[tokio::test]
async fn a_load_balancer_has_the_lowest_free_address_of_the_range_until_it_goes() {
    let fixture = fixture().await;
    let create = async |name: &str, more: Value| {
        fixture.create(&SERVICES, NAMESPACE, balancer(name, more)).await;
    };
    create("first", json!({})).await;
    has(&fixture, "first", "192.0.2.0").await;
    assert_eq!(finalizers(&fixture, "first").await, json!(["service.kubernetes.io/load-balancer-cleanup"]));
    create("second", json!({})).await;
    has(&fixture, "second", "192.0.2.1").await;
    create("third", json!({})).await;
    let none = "Error syncing load balancer: failed to ensure load balancer: no address of \
                --load-balancer-range 192.0.2.0/31 is free; delete a Service, or choose a larger range";
    fixture.told("SyncLoadBalancerFailed", none).await;
    create("of-others", json!({"loadBalancerClass": "example.com/other"})).await;
    fixture.delete(&SERVICES, "second", "Background").await;
    has(&fixture, "third", "192.0.2.1").await;
    fixture.gone(&SERVICES, "second").await;
    fixture.patch(&SERVICES, "first", json!({"spec": {"type": "ClusterIP"}})).await;
    let look = || async {
        let is_free = finalizers(&fixture, "first").await.is_null();
        (is_free && ingress(&fixture, "first").await.is_null()).then_some(())
    };
    fixture.eventually("first has none, and may go", look).await;
    create("fourth", json!({})).await;
    has(&fixture, "fourth", "192.0.2.0").await;
    assert_eq!(ingress(&fixture, "of-others").await, Value::Null);
    assert_eq!(finalizers(&fixture, "of-others").await, Value::Null);
    for reason in
        ["EnsuringLoadBalancer", "EnsuredLoadBalancer", "DeletingLoadBalancer", "DeletedLoadBalancer"]
    {
        assert_eq!(fixture.events(reason).await.len(), 1, "{reason}");
    }
    fixture.cluster.stop().await;
}

/// One that has both families has an address of each, the one that it names and the lowest of the other.
#[tokio::test]
async fn a_load_balancer_of_both_families_has_an_address_of_each() {
    let fixture = fixture_of("192.0.2.0/31,fd00::8/127", "10.96.0.0/16,fd00:10:96::/112").await;
    for (name, more, wanted) in [
        ("both", json!({"ipFamilyPolicy": "RequireDualStack"}), &["192.0.2.0", "fd00::8"][..]),
        ("one", json!({"ipFamilies": ["IPv6"]}), &["fd00::9"]),
        ("plain", json!({}), &["192.0.2.1"]),
    ] {
        fixture.create(&SERVICES, NAMESPACE, balancer(name, more)).await;
        let wanted: Vec<Value> = wanted.iter().map(|ip| json!({"ip": ip, "ipMode": "VIP"})).collect();
        let look = || async { (ingress(&fixture, name).await == json!(wanted)).then_some(()) };
        fixture.eventually(&format!("{name} has {wanted:?}"), look).await;
    }
    fixture.cluster.stop().await;
}

#[tokio::test]
async fn a_load_balancer_may_name_its_address() {
    let fixture = fixture().await;
    let create = async |name: &str, address: &str| {
        let service = balancer(name, json!({"loadBalancerIP": address}));
        fixture.create(&SERVICES, NAMESPACE, service).await;
    };
    create("first", "192.0.2.1").await;
    has(&fixture, "first", "192.0.2.1").await;
    let failed = |why: &str| format!("Error syncing load balancer: failed to ensure load balancer: {why}");
    create("second", "192.0.2.1").await;
    let taken = failed("loadBalancerIP 192.0.2.1 is already that of Service test/first");
    fixture.told("SyncLoadBalancerFailed", &taken).await;
    create("third", "198.51.100.1").await;
    let outside = failed("loadBalancerIP 198.51.100.1 is not in --load-balancer-range 192.0.2.0/31");
    fixture.told("SyncLoadBalancerFailed", &outside).await;
    fixture.delete(&SERVICES, "first", "Background").await;
    has(&fixture, "second", "192.0.2.1").await;
    fixture.cluster.stop().await;
}
