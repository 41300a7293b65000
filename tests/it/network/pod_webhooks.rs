//! Webhooks and conversion served from a pod: the test image of Kubernetes' own suite, behind a Service, with a
//! certificate from a Secret (`test/e2e/apimachinery/webhook.go`, `crd_conversion_webhook.go`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use kubarium::apimachinery::options::DeleteOptions;
use kubarium::apis::admissionregistration::webhook_configuration::{
    MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS,
};
use kubarium::apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::secret::SECRETS;
use kubarium::apis::core::service::SERVICES;
use kubarium::clock::Clock;
use kubarium::pki::Authority;
use serde_json::{Value, json};

use super::Net;

/// Where the suite mounts its certificate.
const CERTIFICATES: &str = "/webhook.local.config/certificates";

/// A server of the suite's image, deployed.
struct Deployed {
    net: Net,
    ca_bundle: String,
}

impl Deployed {
    async fn start(mode: &str) -> Deployed {
        let net = Net::start().await;
        let now = Clock::real().now();
        let authority = Authority::generate(now).unwrap();
        let identity = authority.server(&["hook.default.svc"], &[], now).unwrap();
        let data = json!({"tls.crt": STANDARD.encode(&identity.certificate_pem),
            "tls.key": STANDARD.encode(&identity.key_pem)});
        net.create(&SECRETS, json!({"metadata": {"name": "certificate"}, "data": data})).await;
        let args = json!([
            mode,
            format!("--tls-cert-file={CERTIFICATES}/tls.crt"),
            format!("--tls-private-key-file={CERTIFICATES}/tls.key"),
            "--alsologtostderr",
            "-v=4",
            "--port=8444"
        ]);
        let probe =
            json!({"httpGet": {"scheme": "HTTPS", "port": 8444, "path": "/readyz"}, "periodSeconds": 1});
        let container = json!({"name": "hook", "image": "registry.k8s.io/e2e-test-images/agnhost:2.53",
            "args": args, "readinessProbe": if mode == "webhook" { probe } else { Value::Null },
            "volumeMounts": [{"name": "certs", "readOnly": true, "mountPath": CERTIFICATES}]});
        let volume = json!({"name": "certs", "secret": {"secretName": "certificate"}});
        let labels = json!({"app": "hook"});
        let template =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [volume]}});
        let spec = json!({"selector": {"matchLabels": labels}, "template": template});
        net.create(&DEPLOYMENTS, json!({"metadata": {"name": "hook"}, "spec": spec})).await;
        let ports = json!([{"port": 8443, "targetPort": 8444}]);
        let spec = json!({"selector": labels, "ports": ports});
        net.create(&SERVICES, json!({"metadata": {"name": "hook"}, "spec": spec})).await;
        Deployed { net, ca_bundle: STANDARD.encode(authority.certificate_pem()) }
    }

    fn client_config(&self, path: &str) -> Value {
        let service = json!({"namespace": "default", "name": "hook", "port": 8443, "path": path});
        json!({"service": service, "caBundle": self.ca_bundle})
    }

    /// A webhook of a path for what bears the label `hook: NAME`.
    fn webhook(&self, name: &str, path: &str, rule: Value) -> Value {
        json!({
            "name": format!("{name}.k8s.io"), "rules": [rule], "clientConfig": self.client_config(path),
            "objectSelector": {"matchLabels": {"hook": name}},
            "sideEffects": "None", "admissionReviewVersions": ["v1", "v1beta1"]
        })
    }

    async fn validate(&self, name: &str, path: &str, rule: Value, extra: Value) {
        let mut webhook = self.webhook(name, path, rule);
        json_patch::merge(&mut webhook, &extra);
        let configuration = json!({"metadata": {"name": name}, "webhooks": [webhook]});
        self.net.client.create(&VALIDATING_WEBHOOK_CONFIGURATIONS, "", configuration).await.unwrap();
    }

    async fn mutate(&self, names: &[&str], path: &str, rule: Value) {
        let webhooks = names.iter().map(|name| {
            let mut webhook = self.webhook(name, path, rule.clone());
            webhook["objectSelector"] = json!({"matchLabels": {"hook": "mutated"}});
            webhook
        });
        let configuration = json!({"metadata": {"name": names[0]}, "webhooks": webhooks.collect::<Vec<_>>()});
        self.net.client.create(&MUTATING_WEBHOOK_CONFIGURATIONS, "", configuration).await.unwrap();
    }

    /// Waits until the server is behind its Service: what it denies is denied.
    async fn ready(&self) {
        self.validate("marker", "/always-deny", rule("", "configmaps", &["CREATE"]), json!({})).await;
        let net = &self.net;
        net.until(|| {
            async move {
                let said = refused(net, map("marker", json!({}))).await;
                let denied = "admission webhook \"marker.k8s.io\" denied the request: this webhook denies all requests";
                (said == denied).then_some(())
            }
            .boxed()
        })
        .await;
    }
}

fn rule(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!({"operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]})
}

fn map(hook: &str, data: Value) -> Value {
    json!({"metadata": {"generateName": "map-", "labels": {"hook": hook}}, "data": data})
}

async fn refused(net: &Net, map: Value) -> String {
    match net.client.create(&CONFIG_MAPS, "default", map).await {
        Ok(_) => "allowed".into(),
        Err(status) => status.message,
    }
}

/// Row: webhooks in pods - pods, config maps and definitions are denied
/// Row: webhooks in pods - one that is late or gone is judged by its failure policy
#[tokio::test(flavor = "multi_thread")]
async fn a_deployed_webhook_denies_what_it_judges() {
    let deployed = Deployed::start("webhook").await;
    deployed.ready().await;
    let net = &deployed.net;
    let operations = &["CREATE", "UPDATE", "DELETE"];
    deployed.validate("maps", "/configmaps", rule("", "configmaps", operations), json!({})).await;
    deployed.validate("pods", "/pods", rule("", "pods", &["CREATE"]), json!({})).await;
    let definitions = rule("apiextensions.k8s.io", "customresourcedefinitions", &["CREATE"]);
    deployed.validate("definitions", "/crd", definitions, json!({})).await;
    let unwanted = refused(net, map("maps", json!({"webhook-e2e-test": "webhook-disallow"}))).await;
    let denied =
        |name: &str, why: &str| format!("admission webhook \"{name}.k8s.io\" denied the request: {why}");
    assert_eq!(unwanted, denied("maps", "the configmap contains unwanted key and value"));
    let kept = map("maps", json!({"webhook-e2e-test": "webhook-nondeletable"}));
    let kept = net.create(&CONFIG_MAPS, kept).await["metadata"]["name"].as_str().unwrap().to_owned();
    let deleted = net.client.delete(&CONFIG_MAPS, "default", &kept, &DeleteOptions::default()).await;
    let why = "the configmap cannot be deleted because it contains unwanted key and value";
    assert_eq!(deleted.unwrap_err().message, denied("maps", why));
    let pod = |labels: Value, container: &str| {
        let container = json!({"name": container, "image": "nginx"});
        json!({"metadata": {"generateName": "pod-", "labels": labels}, "spec": {"containers": [container]}})
    };
    let labels = json!({"hook": "pods", "webhook-e2e-test": "webhook-disallow"});
    let status = net.client.create(&PODS, "default", pod(labels, "webhook-disallow")).await.unwrap_err();
    let both = "the pod contains unwanted label; the pod contains unwanted container name;";
    assert_eq!(status.message, denied("pods", both));
    net.create(&PODS, pod(json!({"hook": "pods"}), "main")).await;
    let labels = json!({"hook": "definitions", "webhook-e2e-test": "webhook-disallow"});
    let names = json!({"plural": "things", "kind": "Thing"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let spec = json!({"group": "own.example.com", "scope": "Cluster", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "things.own.example.com", "labels": labels}, "spec": spec});
    let status = net.client.create(&CUSTOM_RESOURCE_DEFINITIONS, "", definition).await.unwrap_err();
    assert_eq!(status.message, denied("definitions", "the crd contains unwanted label"));
    // What takes five seconds is not waited for; whether that matters the configuration says.
    for (name, policy, wanted) in
        [("late", "Fail", "context deadline exceeded"), ("ignored", "Ignore", "allowed")]
    {
        let extra = json!({"timeoutSeconds": 1, "failurePolicy": policy});
        let maps = rule("", "configmaps", &["CREATE"]);
        deployed.validate(name, "/always-allow-delay-5s", maps, extra).await;
        let said = refused(net, map(name, json!({}))).await;
        assert!(said.contains(wanted), "{said}");
    }
    net.client.delete(&DEPLOYMENTS, "default", "hook", &DeleteOptions::default()).await.unwrap();
    let gone = "no endpoints available for service \"hook\"";
    net.until(|| async { refused(net, map("maps", json!({}))).await.contains(gone).then_some(()) }.boxed())
        .await;
    deployed.net.cluster.stop().await;
}

/// Certificates of a server in a pod are looked at as scripts look at them.
#[tokio::test(flavor = "multi_thread")]
async fn a_pods_certificate_is_told() {
    let deployed = Deployed::start("webhook").await;
    deployed.ready().await;
    let script = "openssl s_client -connect hook.default.svc:8443 -CAfile /none </dev/null > /tmp/said 2>/dev/null; \
                  grep '^Verify return code' /tmp/said; openssl x509 -in /tmp/said -noout -ext subjectAltName";
    let (code, said) = deployed.net.ran("looks", script).await;
    let names = "X509v3 Subject Alternative Name: \n    DNS:hook.default.svc\n";
    assert_eq!(
        (code, &*said),
        (0, &*format!("Verify return code: 21 (unable to verify the first certificate)\n{names}"))
    );
    deployed.net.cluster.stop().await;
}

/// Row: webhooks in pods - config maps and pods are changed, one stage after the other
#[tokio::test(flavor = "multi_thread")]
async fn a_deployed_webhook_changes_what_is_made() {
    let deployed = Deployed::start("webhook").await;
    deployed.ready().await;
    let maps = rule("", "configmaps", &["CREATE"]);
    deployed.mutate(&["first", "second"], "/mutating-configmaps", maps).await;
    deployed.mutate(&["pods"], "/mutating-pods", rule("", "pods", &["CREATE"])).await;
    let net = &deployed.net;
    let made = net.create(&CONFIG_MAPS, map("mutated", json!({"mutation-start": "yes"}))).await;
    let all = json!({"mutation-start": "yes", "mutation-stage-1": "yes", "mutation-stage-2": "yes"});
    assert_eq!(made["data"], all);
    let container = json!({"name": "example", "image": "nginx"});
    let metadata = json!({"name": "webhook-to-be-mutated", "labels": {"hook": "mutated"}});
    let pod = net.create(&PODS, json!({"metadata": metadata, "spec": {"containers": [container]}})).await;
    let init = &pod["spec"]["initContainers"][0];
    // What it leaves out is filled in after it.
    assert_eq!(
        (&init["name"], &init["image"], &init["terminationMessagePolicy"]),
        (&"webhook-added-init-container".into(), &"webhook-added-image".into(), &"File".into())
    );
    deployed.net.cluster.stop().await;
}

/// Row: conversion webhooks in pods - objects and lists of two versions
#[tokio::test(flavor = "multi_thread")]
async fn a_deployed_conversion_webhook_converts() {
    let deployed = Deployed::start("crd-conversion-webhook").await;
    let net = &deployed.net;
    let version = |name: &str, is_stored: bool, properties: Value| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": properties}});
        json!({"name": name, "served": true, "storage": is_stored, "schema": schema})
    };
    let text = json!({"type": "string"});
    let versions = json!([
        version("v1", true, json!({"hostPort": text})),
        version("v2", false, json!({"host": text, "port": text}))
    ]);
    let webhook = json!({"clientConfig": deployed.client_config("/crdconvert"),
        "conversionReviewVersions": ["v1", "v1beta1"]});
    let names = json!({"plural": "e2e-addresses", "kind": "E2eAddress"});
    let spec = json!({"group": "stable.example.com", "scope": "Namespaced", "names": names, "versions": versions,
        "conversion": {"strategy": "Webhook", "webhook": webhook}});
    let definition = json!({"metadata": {"name": "e2e-addresses.stable.example.com"}, "spec": spec});
    net.client.create(&CUSTOM_RESOURCE_DEFINITIONS, "", definition).await.unwrap();
    let send = async |method: &str, version: &str, name: &str, body: Value| -> Value {
        let path = format!("/apis/stable.example.com/{version}/namespaces/default/e2e-addresses{name}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request =
            http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        let response = net.client.raw(request.body(axum::body::Body::from(body)).unwrap()).await;
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&body).unwrap_or_default()
    };
    let object = |version: &str, name: &str, more: Value| {
        let mut object = json!({"apiVersion": format!("stable.example.com/{version}"), "kind": "E2eAddress",
            "metadata": {"name": name}});
        json_patch::merge(&mut object, &more);
        object
    };
    let old = object("v1", "old", json!({"hostPort": "localhost:8080"}));
    net.until(|| {
        async { (send("POST", "v1", "", old.clone()).await["kind"] == "E2eAddress").then_some(()) }.boxed()
    })
    .await;
    let split = |found: &Value| found["host"] == "localhost" && found["port"] == "8080";
    net.until(|| async { split(&send("GET", "v2", "/old", Value::Null).await).then_some(()) }.boxed()).await;
    let new = object("v2", "new", json!({"host": "example.com", "port": "443"}));
    assert_eq!(send("POST", "v2", "", new).await["host"], "example.com");
    assert_eq!(send("GET", "v1", "/new", Value::Null).await["hostPort"], "example.com:443");
    let listed = send("GET", "v2", "", Value::Null).await;
    let ports: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["port"]).collect();
    assert_eq!(ports, ["443", "8080"]);
    let wrong = object("v1", "wrong", json!({"hostPort": "nothing"}));
    send("POST", "v1", "", wrong).await;
    let said = send("GET", "v2", "/wrong", Value::Null).await;
    assert!(said["message"].as_str().unwrap().contains("invalid hostPort value `nothing`"), "{said}");
    deployed.net.cluster.stop().await;
}
