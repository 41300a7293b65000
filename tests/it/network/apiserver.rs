//! The apiserver reaches servers in pods: webhooks, conversion, other APIs.

use futures::FutureExt;
use kubarium::apimachinery::options::PatchType;
use kubarium::apis::admissionregistration::webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATIONS;
use kubarium::apis::apiregistration::api_service::API_SERVICES;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use kubarium::kubelet::container_runtime::declared::forward::PodForwarding;
use kubarium::kubelet::container_runtime::own_listeners::OwnListeners;
use kubarium::{Cluster, Config};
use serde_json::{Value, json};

use super::Net;
use crate::support::webhook::{Asked, Reply, Webhook};

/// A cluster whose pods may lead to this machine's loopback.
async fn net() -> Net {
    let config = Config::new().nodes(2).listeners(OwnListeners::new(PodForwarding::Loopback));
    let cluster = Cluster::start(config).await.unwrap();
    let client = cluster.client();
    Net { cluster, client }
}

impl Net {
    /// A Service whose one pod forwards its port 8443 to a real server, once it has that endpoint.
    async fn service_of(&self, name: &str, webhook: &Webhook) -> Value {
        let annotations = json!({"kubarium.dev/forward.8443": format!("127.0.0.1:{}", webhook.port)});
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": name}, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": "example.com/webhook"}]}
        });
        self.create(&PODS, pod).await;
        self.address(name).await;
        let ports = json!([{"port": 443, "targetPort": 8443}]);
        let service =
            json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports}});
        let service = self.create(&SERVICES, service).await;
        self.until(|| {
            async {
                let slices = self.client.list(&ENDPOINT_SLICES, "default", &Default::default()).await.ok()?;
                let slices = slices.items.iter().filter(|slice| slice.metadata.name.starts_with(name));
                let has_ready = |slice: Value| slice["endpoints"][0]["conditions"]["ready"] == true;
                slices.map(|slice| slice.to_value()).any(has_ready).then_some(())
            }
            .boxed()
        })
        .await;
        service
    }

    /// A webhook for ConfigMaps labelled `app: NAME` behind a Service's port.
    async fn validate_at(&self, name: &str, port: u16, ca_bundle: String) {
        let service = json!({"namespace": "default", "name": name, "port": port, "path": "/check"});
        let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"]});
        let hook = json!({
            "name": format!("{name}.example.com"), "rules": [rule],
            "clientConfig": {"service": service, "caBundle": ca_bundle},
            "objectSelector": {"matchLabels": {"app": name}},
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 20
        });
        let configuration = json!({"metadata": {"name": name}, "webhooks": [hook]});
        self.client.create(&VALIDATING_WEBHOOK_CONFIGURATIONS, "", configuration).await.unwrap();
    }

    /// What is said to a new ConfigMap that a webhook is asked about.
    async fn refused(&self, app: &str) -> String {
        let map = json!({"metadata": {"generateName": "a-", "labels": {"app": app}}});
        match self.client.create(&CONFIG_MAPS, "default", map).await {
            Ok(_) => "allowed".into(),
            Err(status) => status.message,
        }
    }
}

fn never(asked: &Asked) -> Reply {
    let response =
        json!({"uid": asked.body["request"]["uid"], "allowed": false, "status": {"message": "never"}});
    Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

/// So often a webhook is asked.
const ASKED: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_behind_a_simulated_pod_is_asked_over_tls() {
    let (net, webhook) = (net().await, Webhook::named(&["hook.default.svc"], never).await);
    net.service_of("hook", &webhook).await;
    net.validate_at("hook", 443, webhook.ca_bundle()).await;
    let says = "admission webhook \"hook.example.com\" denied the request: never";
    for _ in 0..ASKED {
        assert_eq!(net.refused("hook").await, says);
    }
    assert_eq!(net.refused("other").await, "allowed");
    let asked = webhook.asked();
    assert_eq!(asked.len(), ASKED);
    assert!(asked.iter().all(|asked| asked.path == "/check?timeout=20s"), "{asked:?}");
    // An answer may be read a moment before its connection is free again, but hardly ever each one.
    let connections = webhook.connections();
    assert!(connections < ASKED, "{connections}: one is used again");
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_the_apiserver_from_a_pod_is_said_in_upstreams_words() {
    let (net, stranger) = (net().await, Webhook::named(&["other.default.svc"], never).await);
    let service = net.service_of("hook", &stranger).await;
    let address = service["spec"]["clusterIP"].as_str().unwrap();
    let failed = |why: &str| {
        format!(
            "Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: \
             Post \"https://hook.default.svc:443/check?timeout=20s\": {why}"
        )
    };
    net.validate_at("hook", 443, stranger.ca_bundle()).await;
    let name = "tls: failed to verify certificate: x509: certificate is valid for other.default.svc, \
                127.0.0.1, not hook.default.svc";
    assert_eq!(net.refused("hook").await, failed(name));
    let ports = json!({"spec": {"ports": [{"port": 443, "targetPort": 9999}]}});
    net.client.patch(&SERVICES, "default", "hook", PatchType::Merge, &ports).await.unwrap();
    let refused = failed(&format!("dial tcp {address}:443: connect: connection refused"));
    net.until(|| async { (net.refused("hook").await == refused).then_some(()) }.boxed()).await;
    net.client.delete(&PODS, "default", "hook", &Default::default()).await.unwrap();
    let nobody = failed("no endpoints available for service \"hook\"");
    net.until(|| async { (net.refused("hook").await == nobody).then_some(()) }.boxed()).await;
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_api_server_behind_a_simulated_pod_is_available() {
    let things = json!({"name": "things", "singularName": "thing", "namespaced": false, "kind": "Thing",
        "verbs": ["list"]});
    let serves = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "remote.example.com/v1",
        "resources": [things]});
    let answer = move |asked: &Asked| match &*asked.path {
        "/apis/remote.example.com/v1" => Reply::Json(serves.clone()),
        path => Reply::Json(json!({"kind": "ThingList", "path": path})),
    };
    let (net, other) = (net().await, Webhook::named(&["other.default.svc"], answer).await);
    net.service_of("other", &other).await;
    let service = json!({"namespace": "default", "name": "other", "port": 443});
    let spec = json!({"group": "remote.example.com", "version": "v1", "groupPriorityMinimum": 2000,
        "versionPriority": 15, "service": service, "caBundle": other.ca_bundle()});
    let api_service = json!({"metadata": {"name": "v1.remote.example.com"}, "spec": spec});
    net.client.create(&API_SERVICES, "", api_service).await.unwrap();
    let things = "/apis/remote.example.com/v1/things";
    let request = http::Request::get(things).body(axum::body::Body::empty()).unwrap();
    let response = net.client.raw(request).await;
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["path"], things);
    let available = net.client.get(&API_SERVICES, "", "v1.remote.example.com").await.unwrap().to_value();
    assert_eq!(available["status"]["conditions"][0]["reason"], "Passed", "{available}");
    net.cluster.stop().await;
}
