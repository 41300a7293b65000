//! The aggregated server of Kubernetes' own suite in a pod, behind an APIService, as
//! `test/e2e/apimachinery/aggregator.go` deploys it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use http_body_util::BodyExt;
use kubarium::apis::apiregistration::api_service::API_SERVICES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::secret::SECRETS;
use kubarium::apis::core::service::SERVICES;
use kubarium::apis::rbac::role_binding::{CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS};
use kubarium::clock::Clock;
use kubarium::pki::Authority;
use kubarium::{Cluster, Config, Listen};
use serde_json::{Value, json};

use super::Net;

const CERTIFICATES: &str = "/apiserver.local.config/certificates";
const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";

/// A cluster that can be reached from outside, or cannot: aggregated servers are told whom to believe.
async fn start(config: Config) -> Net {
    let cluster = Cluster::start(config.nodes(2)).await.unwrap();
    let client = cluster.client();
    Net { cluster, client }
}

/// Its account may ask who is who, and read whom to believe.
async fn allow(net: &Net) {
    let subjects = json!([{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]);
    let role =
        |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let delegates = json!({"metadata": {"name": "wardler:auth-delegator"}, "subjects": subjects,
        "roleRef": role("ClusterRole", "system:auth-delegator")});
    net.client.create(&CLUSTER_ROLE_BINDINGS, "", delegates).await.unwrap();
    let reads = json!({"metadata": {"name": "wardler-auth-reader"}, "subjects": subjects,
        "roleRef": role("Role", "extension-apiserver-authentication-reader")});
    net.client.create(&ROLE_BINDINGS, "kube-system", reads).await.unwrap();
}

/// The sample server and the etcd beside it.
async fn deploy(net: &Net) {
    allow(net).await;
    let now = Clock::real().now();
    let authority = Authority::generate(now).unwrap();
    let identity = authority.server(&["sample-api.default.svc"], &[], now).unwrap();
    let data = json!({"tls.crt": STANDARD.encode(&identity.certificate_pem),
        "tls.key": STANDARD.encode(&identity.key_pem)});
    net.create(&SECRETS, json!({"metadata": {"name": "sample-apiserver-secret"}, "data": data})).await;
    let args = json!([
        "--etcd-servers=http://127.0.0.1:2379",
        format!("--tls-cert-file={CERTIFICATES}/tls.crt"),
        format!("--tls-private-key-file={CERTIFICATES}/tls.key"),
        "--audit-log-path=-"
    ]);
    let mounts = json!([{"name": "certs", "readOnly": true, "mountPath": CERTIFICATES}]);
    let server = json!({"name": "sample-apiserver", "args": args, "volumeMounts": mounts,
        "image": "registry.k8s.io/e2e-test-images/sample-apiserver:1.29.2"});
    let etcd = json!({"name": "etcd", "image": "registry.k8s.io/etcd:3.6.5-0",
        "command": ["/usr/local/bin/etcd", "--listen-client-urls", "http://127.0.0.1:2379"]});
    let volumes = json!([{"name": "certs", "secret": {"secretName": "sample-apiserver-secret"}}]);
    let labels = json!({"apiserver": "true"});
    let spec = json!({"containers": [server, etcd], "volumes": volumes});
    net.create(&PODS, json!({"metadata": {"name": "sample", "labels": labels}, "spec": spec})).await;
    let spec = json!({"selector": labels, "ports": [{"port": 7443, "targetPort": 443}]});
    net.create(&SERVICES, json!({"metadata": {"name": "sample-api"}, "spec": spec})).await;
    let service = json!({"namespace": "default", "name": "sample-api", "port": 7443});
    let spec = json!({"service": service, "group": "wardle.example.com", "version": "v1alpha1",
        "caBundle": STANDARD.encode(authority.certificate_pem()), "groupPriorityMinimum": 2000,
        "versionPriority": 200});
    let registered = json!({"metadata": {"name": "v1alpha1.wardle.example.com"}, "spec": spec});
    net.client.create(&API_SERVICES, "", registered).await.unwrap();
}

async fn asked(net: &Net, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(axum::body::Body::from(body.to_owned())).unwrap();
    let response = net.client.raw(request).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_apiserver_is_asked_through_its_api_service() {
    let net = start(Config::new()).await;
    deploy(&net).await;
    net.until(|| async { (asked(&net, "GET", FLUNDERS, "").await.0 == 200).then_some(()) }.boxed()).await;
    let (_, resources) = asked(&net, "GET", "/apis/wardle.example.com/v1alpha1", "").await;
    assert_eq!(resources["resources"][1]["name"], "flunders");
    let flunder = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"labels": {"sample-label": "true"}, "name": "rest-flunder", "namespace": "default"}});
    let (code, made) = asked(&net, "POST", FLUNDERS, &flunder.to_string()).await;
    assert_eq!((code, &made["metadata"]["name"]), (201, &json!("rest-flunder")), "{made}");
    let count = async || {
        let (_, list) = asked(&net, "GET", FLUNDERS, "").await;
        (list["kind"].clone(), list["items"].as_array().map(Vec::len))
    };
    assert_eq!(count().await, (json!("FlunderList"), Some(1)));
    let one = format!("{FLUNDERS}/rest-flunder");
    assert_eq!(asked(&net, "DELETE", &one, "").await.0, 200);
    assert_eq!(asked(&net, "GET", &one, "").await.1["reason"], "NotFound");
    assert_eq!(count().await, (json!("FlunderList"), Some(0)));
    let fischer = json!({"metadata": {"name": "strict"}, "disallowedFlunders": ["rest-flunder"]});
    let fischers = "/apis/wardle.example.com/v1alpha1/fischers";
    assert_eq!(asked(&net, "POST", fischers, &fischer.to_string()).await.0, 201);
    assert_eq!(asked(&net, "POST", FLUNDERS, &flunder.to_string()).await.0, 403);
    net.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_past_the_aggregator_is_asked_who_he_is() {
    let net = start(Config::new().listen(Listen::loopback())).await;
    deploy(&net).await;
    net.until(|| async { (asked(&net, "GET", FLUNDERS, "").await.0 == 200).then_some(()) }.boxed()).await;
    let asks = format!(
        "ask() {{ curl -sk \"$@\" https://sample-api.default.svc:7443$path; echo; }}; path={FLUNDERS}; \
         ask -H 'X-Remote-User: admin' -H 'X-Remote-Group: system:masters'; ask -H 'Authorization: Bearer none'; \
         ask -H \"Authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)\"; path=/healthz; ask"
    );
    let container = json!({"name": "main", "image": "nginx:1.27", "command": ["sh", "-c", asks]});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    net.create(&PODS, json!({"metadata": {"name": "direct"}, "spec": spec})).await;
    assert_eq!(net.ended("direct").await, 0);
    let log = net.log("direct").await;
    let lines: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    let refused: Vec<(Value, Value)> = lines[..3]
        .iter()
        .map(|line| {
            let status: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{log}"));
            (status["code"].clone(), status["message"].clone())
        })
        .collect();
    let cannot =
        "cannot list resource \"flunders\" in API group \"wardle.example.com\" in the namespace \"default\"";
    // What a header says is nothing without the certificate of the front proxy.
    let anonymous = format!("forbidden: User \"system:anonymous\" {cannot}");
    let account = format!("forbidden: User \"system:serviceaccount:default:default\" {cannot}");
    let wanted = [(403, anonymous), (401, "Unauthorized".to_owned()), (403, account)];
    assert_eq!(refused, wanted.map(|(code, why)| (json!(code), json!(why))));
    assert_eq!(lines[3], "ok");
    net.cluster.stop().await;
}
