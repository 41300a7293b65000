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

use crate::support::webhook::{Asked, Reply, Webhook};

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

/// What was asked: method, path, and whether there was a body.
fn story(webhook: &Webhook) -> Vec<String> {
    let told = |asked: &Asked| {
        let body = if asked.body.is_null() { "without" } else { "with" };
        format!("{} {} {body}", asked.method, asked.path)
    };
    webhook.asked().iter().map(told).collect()
}

#[tokio::test]
async fn paths_are_cleaned_before_they_are_asked() {
    let world = World::new();
    for (path, sent) in [("//failing", "/failing"), ("/p/", "/p"), ("/a/../b", "/b"), ("", "/")] {
        let webhook = Webhook::start(|asked| Reply::Json(asked.body.clone())).await;
        let config = json!({"url": webhook.url(path), "caBundle": webhook.ca_bundle()});
        assert_eq!(world.ask(&config, webhook.port, 10_000).await, json!({"hello": 1}).to_string());
        assert_eq!(story(&webhook), [format!("POST {sent}?timeout=10s with")], "{path}");
    }
}

#[tokio::test]
async fn redirects_are_followed_as_gos_client_does() {
    let world = World::new();
    for (code, then) in [
        (301, "GET /final without"),
        (302, "GET /final without"),
        (303, "GET /final without"),
        (307, "POST /final with"),
        (308, "POST /final with"),
    ] {
        let webhook = Webhook::start(move |asked| match asked.path.as_str() {
            "/final" => Reply::Json(json!({"it": "counts"})),
            _ => Reply::Redirect(code, "../final".into()),
        })
        .await;
        let config = json!({"url": webhook.url("/a/b"), "caBundle": webhook.ca_bundle()});
        assert_eq!(world.ask(&config, webhook.port, 10_000).await, r#"{"it":"counts"}"#, "{code}");
        assert_eq!(story(&webhook), ["POST /a/b?timeout=10s with", then], "{code}");
        assert_eq!(webhook.connections(), 1, "the redirect's body is read, so that its connection serves");
        let headers = &webhook.asked()[1].headers;
        assert_eq!(headers["referer"], webhook.url("/a/b?timeout=10s"));
        assert_eq!(headers.contains_key("content-type"), code > 303);
    }
}

#[tokio::test]
async fn redirects_that_lead_nowhere_are_told_in_gos_words() {
    let world = World::new();
    let webhook = Webhook::start(|asked| match asked.path.split('?').next().unwrap() {
        "/circle" => Reply::Redirect(307, "/circle".into()),
        "/lost" => Reply::Redirect(302, "https://[".into()),
        "/nowhere" => Reply::Redirect(307, String::new()),
        "/gone" => Reply::Redirect(307, "https://127.0.0.1:1/x".into()),
        "/late" => Reply::Redirect(307, "/never".into()),
        "/never" => Reply::Never,
        _ => Reply::Redirect(303, "gopher://127.0.0.1/".into()),
    })
    .await;
    for (path, milliseconds, wanted) in [
        ("/circle", 10_000, "Post \"/circle\": stopped after 10 redirects"),
        (
            "/lost",
            10_000,
            "Post \"https://127.0.0.1:PORT/lost?timeout=10s\": failed to parse Location header \"https://[\": \
             invalid IPv6 address",
        ),
        (
            "/nowhere",
            10_000,
            "the server responded with the status code 307 but did not return more information",
        ),
        (
            "/gone",
            10_000,
            "Post \"https://127.0.0.1:1/x\": dial tcp 127.0.0.1:1: connect: connection refused",
        ),
        ("/late", 300, "Post \"https://127.0.0.1:PORT/never\": context deadline exceeded"),
        ("/other", 10_000, "Post \"gopher://127.0.0.1/\": unsupported protocol scheme \"gopher\""),
    ] {
        let before = webhook.asked().len();
        let config = json!({"url": webhook.url(path), "caBundle": webhook.ca_bundle()});
        assert_eq!(world.ask(&config, webhook.port, milliseconds).await, wanted, "{path}");
        assert_eq!(
            webhook.asked().len() - before,
            if path == "/circle" { 11 } else { 1 + usize::from(path == "/late") }
        );
    }
}

#[tokio::test]
async fn no_credentials_go_to_another_host() {
    let world = World::new();
    let webhook = Webhook::start(|asked| match asked.path.split('?').next().unwrap() {
        "/final" => Reply::Json(json!({})),
        "/away" => Reply::Redirect(307, format!("https://localhost:{}/back", port_of(asked))),
        "/back" => Reply::Redirect(307, format!("https://127.0.0.1:{}/final", port_of(asked))),
        _ => Reply::Redirect(307, "/final".into()),
    })
    .await;
    let resolver = ServiceResolver::new(&world.registry, &Entropy::seeded(3));
    for (path, is_shown) in [("/here", &[true, true][..]), ("/away", &[true, false, false])] {
        let config = json!({"url": webhook.url(path), "caBundle": webhook.ca_bundle()});
        let mut config = ClientConfig::from_tree(&config).ok().unwrap();
        config.authorization = Some("Bearer secret".into());
        let client = WebhookClient::new(config, &resolver, &world.clock);
        let before = webhook.asked().len();
        client.call(&json!({}), Duration::from_secs(10)).await.unwrap();
        let asked = webhook.asked().split_off(before);
        let shown: Vec<bool> =
            asked.iter().map(|asked| asked.headers.contains_key("authorization")).collect();
        assert_eq!(shown, is_shown, "{path}");
    }
}

fn port_of(asked: &Asked) -> String {
    let host = asked.headers["host"].to_str().unwrap();
    host.rsplit_once(':').unwrap().1.to_owned()
}

/// Behind a Service's name is what its endpoints are; behind any other name is what the system says.
#[tokio::test]
async fn a_service_may_send_its_callers_elsewhere() {
    let world = World::new();
    let elsewhere =
        Webhook::named(&["hook.default.svc"], |asked| Reply::Json(json!({"path": asked.path}))).await;
    let place = elsewhere.url("/final");
    let webhook = Webhook::named(&["hook.default.svc"], move |asked| match asked.path.as_str() {
        "/check?timeout=10s" => Reply::Redirect(307, "/near".into()),
        "/near" => Reply::Redirect(307, place.clone()),
        _ => Reply::Raw(404, String::new()),
    })
    .await;
    let spec = json!({"type": "ExternalName", "externalName": "localhost",
        "ports": [{"name": "https", "port": webhook.port}]});
    world.create("", "v1", "services", json!({"metadata": {"name": "hook"}, "spec": spec})).await;
    let both = format!("{}\n{}", webhook.authority, elsewhere.authority);
    let bundle = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, both);
    let config = json!({"caBundle": bundle,
        "service": {"namespace": "default", "name": "hook", "path": "/check/", "port": webhook.port}});
    let answer = world.ask(&config, webhook.port, 10_000).await;
    assert_eq!(answer, r#"{"path":"/final"}"#);
    assert_eq!(story(&webhook), ["POST /check?timeout=10s with", "POST /near with"]);
}
