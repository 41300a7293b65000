//! The client to webhooks: who is reached, who is believed, and what is said when it fails.

use std::sync::Arc;
use std::time::Duration;

use kubarium::apis::scheme::Scheme;
use kubarium::apiserver::registry::Registry;
use kubarium::apiserver::request::RequestContext;
use kubarium::apiserver::storage::Storage;
use kubarium::apiserver::webhook::{ClientConfig, ServiceResolver, WebhookClient};
use kubarium::clock::Clock;
use kubarium::entropy::Entropy;
use kubarium::etcd::{Kv, Options};
use serde_json::{Value, json};

use crate::support::webhook::{Reply, Webhook};

struct World {
    registry: Registry,
    scheme: Arc<Scheme>,
    clock: Clock,
}

impl World {
    fn new() -> World {
        let (clock, scheme) = (Clock::real(), Arc::new(Scheme::builtin()));
        let kv = Kv::open(Options::default(), clock.clone()).unwrap();
        let storage = Storage::new(kv, clock.clone(), Entropy::seeded(1));
        let registry = Registry::new(storage, scheme.clone(), clock.clone(), Entropy::seeded(2));
        World { registry, scheme, clock }
    }

    async fn create(&self, group: &str, version: &str, plural: &str, object: Value) {
        let kind = self.scheme.resource(group, version, plural).unwrap();
        let mut object = object;
        (kind.defaults)(&mut object);
        self.registry.create(&RequestContext::default(), &kind, "default", object, &()).await.unwrap();
    }

    fn client(&self, client_config: &Value) -> WebhookClient {
        let resolver = ServiceResolver::new(&self.registry, &Entropy::seeded(3));
        WebhookClient::new(ClientConfig::from_tree(client_config).ok().unwrap(), &resolver, &self.clock)
    }

    /// The answer as text, or the error with the port taken out.
    async fn ask(&self, client_config: &Value, port: u16, milliseconds: u64) -> String {
        let client = self.client(client_config);
        let answer = client.call(&json!({"hello": 1}), Duration::from_millis(milliseconds)).await;
        let text = answer.map_or_else(|error| error.to_string(), |tree| tree.to_string());
        text.replace(&port.to_string(), "PORT")
    }
}

#[tokio::test]
async fn a_url_is_asked_and_what_fails_is_said_in_upstreams_words() {
    let world = World::new();
    let webhook = Webhook::start(|asked| match asked.path.split('?').next().unwrap() {
        "/ok" => Reply::Json(asked.body.clone()),
        "/slow" => Reply::Never,
        "/garbage" => Reply::Raw(200, "garbage".into()),
        "/empty" => Reply::Raw(200, String::new()),
        "/huge" => Reply::Raw(200, "x".repeat(4 << 20)),
        "/broken" => Reply::Raw(500, "boom".into()),
        _ => Reply::Raw(404, "404 page not found".into()),
    })
    .await;
    let other = Webhook::start(|_| Reply::Never).await;
    let post = |path: &str, time: &str| format!("Post \"https://127.0.0.1:PORT{path}?timeout={time}\": ");
    let cases = [
        ("/ok", 10_000, json!({"hello": 1}).to_string()),
        ("/slow", 100, post("/slow", "100ms") + "context deadline exceeded"),
        (
            "/garbage",
            10_000,
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type \
             struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }"
                .into(),
        ),
        ("/empty", 10_000, "0-length response with status code: 200 and content type: ".into()),
        ("/huge", 10_000, post("/huge", "10s") + "the response is larger than 3145728 bytes"),
        (
            "/broken",
            10_000,
            "an error on the server (\"boom\") has prevented the request from succeeding".into(),
        ),
        ("/gone", 10_000, "the server could not find the requested resource".into()),
    ];
    for (path, milliseconds, wanted) in cases {
        let config = json!({"url": webhook.url(path), "caBundle": webhook.ca_bundle()});
        assert_eq!(world.ask(&config, webhook.port, milliseconds).await, wanted, "{path}");
    }
    let untrusted = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    for config in [
        json!({"url": webhook.url("/ok"), "caBundle": other.ca_bundle()}),
        json!({"url": webhook.url("/ok")}),
    ] {
        assert_eq!(world.ask(&config, webhook.port, 10_000).await, post("/ok", "10s") + untrusted);
    }
    let config = json!({"url": "https://127.0.0.1:1/", "caBundle": webhook.ca_bundle()});
    let wanted =
        "Post \"https://127.0.0.1:1/?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!(world.ask(&config, webhook.port, 10_000).await, wanted);
    let config = json!({"url": "https://nobody.invalid/", "caBundle": webhook.ca_bundle()});
    let text = world.ask(&config, webhook.port, 10_000).await;
    assert!(text.ends_with("dial tcp: lookup nobody.invalid: no such host"), "{text}");
}

#[tokio::test]
async fn connections_are_used_again() {
    let world = World::new();
    let webhook = Webhook::start(|asked| Reply::Json(asked.body.clone())).await;
    let client = world.client(&json!({"url": webhook.url("/"), "caBundle": webhook.ca_bundle()}));
    for _ in 0..5 {
        client.call(&json!({}), Duration::from_secs(10)).await.unwrap();
    }
    assert_eq!((webhook.asked().len(), webhook.connections()), (5, 1));
    assert_eq!(webhook.asked()[0].headers["user-agent"], "kube-apiserver");
}

#[tokio::test]
async fn services_are_reached_through_their_endpoints() {
    let world = World::new();
    let webhook =
        Webhook::named(&["hook.default.svc"], |asked| Reply::Json(json!({"path": asked.path}))).await;
    let config = |name: &str, port: u16| {
        json!({"caBundle": webhook.ca_bundle(),
            "service": {"namespace": "default", "name": name, "path": "/check", "port": port}})
    };
    let ports = json!([{"name": "https", "port": 443, "targetPort": 9443}]);
    for (name, kind) in [("hook", "ExternalName"), ("lonely", "ClusterIP"), ("outside", "ExternalName")] {
        let mut spec = json!({"type": kind, "ports": ports});
        if kind == "ExternalName" {
            spec["externalName"] = json!("localhost");
        }
        world.create("", "v1", "services", json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    let slice = json!({"metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": webhook.port, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["127.0.0.2"], "conditions": {"ready": false}},
            {"addresses": ["127.0.0.1"], "conditions": {"ready": true}}]});
    let kind = world.scheme.resource("discovery.k8s.io", "v1", "endpointslices").unwrap();
    // Validation keeps loopback addresses out of endpoints: this one is put in as a controller of ours would.
    let refused =
        world.registry.create(&RequestContext::default(), &kind, "default", slice, &()).await.unwrap_err();
    assert!(refused.message.contains("may not be in the loopback range"), "{refused}");
    let post =
        |name: &str, port: u16| format!("Post \"https://{name}.default.svc:{port}/check?timeout=10s\": ");
    let cases = [
        ("gone", 443, post("gone", 443) + "service \"gone\" not found"),
        ("lonely", 443, post("lonely", 443) + "no endpoints available for service \"lonely\""),
        ("lonely", 8443, post("lonely", 8443) + "no service port 8443 found for service \"lonely\""),
        (
            "outside",
            webhook.port,
            "Post \"https://outside.default.svc:PORT/check?timeout=10s\": tls: failed to verify certificate: \
             x509: certificate is valid for hook.default.svc, 127.0.0.1, not outside.default.svc"
                .into(),
        ),
    ];
    for (name, port, wanted) in cases {
        assert_eq!(world.ask(&config(name, port), webhook.port, 10_000).await, wanted, "{name}");
    }
    let answer = world.ask(&config("hook", webhook.port), webhook.port, 10_000).await;
    assert_eq!(answer, r#"{"path":"/check?timeout=10s"}"#);
}
