//! EndpointSlices of Endpoints that somebody else writes.

use kubarium::apis::core::endpoints::ENDPOINTS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE};

const OF_OUTSIDE: &str = "kubernetes.io/service-name=outside";

#[tokio::test]
async fn slices_mirror_what_others_write() {
    let fixture = Fixture::start().await;
    let service = json!({"metadata": {"name": "outside"}, "spec": {"ports": [{"port": 80}]}});
    fixture.create(&SERVICES, NAMESPACE, service).await;
    let subset = |ip: &str| json!([{"addresses": [{"ip": ip}], "ports": [{"port": 8080}]}]);
    let endpoints =
        json!({"metadata": {"name": "outside", "labels": {"team": "a"}}, "subsets": subset("10.9.8.7")});
    fixture.create(&ENDPOINTS, NAMESPACE, endpoints).await;
    let mirrored = |ip: &'static str| {
        let fixture = &fixture;
        move || async move {
            let slices = fixture.list(&ENDPOINT_SLICES, OF_OUTSIDE).await;
            let is_it = |slice: &Value| slice["endpoints"][0]["addresses"][0] == ip;
            (slices.len() == 1 && is_it(&slices[0])).then(|| slices[0].clone())
        }
    };
    let slice = fixture.eventually("a mirror", mirrored("10.9.8.7")).await;
    let labels = &slice["metadata"]["labels"];
    assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], "endpointslicemirroring-controller.k8s.io");
    assert_eq!((&labels["team"], &slice["ports"][0]["port"]), (&json!("a"), &json!(8080)));
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Endpoints");
    let mut changed = fixture.get(&ENDPOINTS, "outside").await.unwrap();
    changed["subsets"] = subset("10.9.8.8");
    fixture.client.update(&ENDPOINTS, NAMESPACE, "outside", changed).await.unwrap();
    fixture.eventually("the new address", mirrored("10.9.8.8")).await;
    fixture.delete(&ENDPOINTS, "outside", "Background").await;
    let none = || async { fixture.list(&ENDPOINT_SLICES, OF_OUTSIDE).await.is_empty().then_some(()) };
    fixture.eventually("no mirror", none).await;
}
