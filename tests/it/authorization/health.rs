//! What the server says of its own health: what upstream's server lists, and nothing that hangs on roles which
//! users may delete.

use kubarium::{Listen, Snapshot};

use super::*;
use crate::apiserver::Server;

#[tokio::test]
async fn a_server_stays_ready_when_a_binding_that_it_started_with_is_deleted() {
    let cluster = start().await;
    let client = cluster.client();
    let scheduler = "system:kube-scheduler";
    let may_bind =
        async || review(&client, scheduler, &[], "create pods/binding default").await["allowed"] == true;
    assert!(may_bind().await);
    client.delete(&CLUSTER_ROLE_BINDINGS, "", scheduler, &Default::default()).await.unwrap();
    // The authorizer hears of it a moment later.
    while may_bind().await {
        tokio::task::yield_now().await;
    }
    let server = Server::of(&cluster);
    for path in ["healthz", "livez", "readyz", "readyz/poststarthook/rbac/bootstrap-roles"] {
        let answer = server.call(&format!("GET /{path}"), &Value::Null).await;
        assert_eq!((answer.code, answer.text.as_str()), (200, "ok"), "{path}");
    }
    cluster.stop().await;
}

/// The lines of `/livez?verbose` of upstream's server as kubeadm starts it, but for the hook of
/// `UnknownVersionInteroperabilityProxy`, which is not built.
const LIVE: &str = "\
[+]ping ok
[+]log ok
[+]etcd ok
[+]poststarthook/start-apiserver-admission-initializer ok
[+]poststarthook/generic-apiserver-start-informers ok
[+]poststarthook/priority-and-fairness-config-consumer ok
[+]poststarthook/priority-and-fairness-filter ok
[+]poststarthook/storage-object-count-tracker-hook ok
[+]poststarthook/start-apiextensions-informers ok
[+]poststarthook/start-apiextensions-controllers ok
[+]poststarthook/crd-informer-synced ok
[+]poststarthook/start-system-namespaces-controller ok
[+]poststarthook/start-cluster-authentication-info-controller ok
[+]poststarthook/start-kube-apiserver-identity-lease-controller ok
[+]poststarthook/start-kube-apiserver-identity-lease-garbage-collector ok
[+]poststarthook/start-legacy-token-tracking-controller ok
[+]poststarthook/start-service-ip-repair-controllers ok
[+]poststarthook/rbac/bootstrap-roles ok
[+]poststarthook/scheduling/bootstrap-system-priority-classes ok
[+]poststarthook/priority-and-fairness-config-producer ok
[+]poststarthook/bootstrap-controller ok
[+]poststarthook/start-kubernetes-service-cidr-controller ok
[+]poststarthook/aggregator-reload-proxy-client-cert ok
[+]poststarthook/start-kube-aggregator-informers ok
[+]poststarthook/apiservice-status-local-available-controller ok
[+]poststarthook/apiservice-status-remote-available-controller ok
[+]poststarthook/apiservice-registration-controller ok
[+]poststarthook/apiservice-discovery-controller ok
[+]poststarthook/kube-apiserver-autoregistration ok
[+]autoregister-completion ok
[+]poststarthook/apiservice-openapi-controller ok
[+]poststarthook/apiservice-openapiv3-controller ok
";

#[tokio::test]
async fn the_checks_of_a_started_server_are_upstreams() {
    let cluster = start_with(Config::default().listen(Listen::loopback())).await;
    let server = Server::of(&cluster);
    let text = async |path: &str| server.call(&format!("GET {path}"), &Value::Null).await.text;
    assert_eq!(text("/livez?verbose").await, format!("{LIVE}livez check passed\n"));
    assert_eq!(text("/healthz?verbose").await, format!("{LIVE}healthz check passed\n"));
    let ready = LIVE.replace("[+]etcd ok\n", "[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n");
    assert_eq!(text("/readyz?verbose").await, format!("{ready}[+]shutdown ok\nreadyz check passed\n"));
    let hook = "poststarthook/scheduling/bootstrap-system-priority-classes";
    assert_eq!(text(&format!("/livez/{hook}")).await, "ok");
    let excluded = text(&format!("/livez?verbose&exclude={hook}")).await;
    assert!(excluded.contains(&format!("[+]{hook} excluded: ok\n")), "{excluded}");
    let snapshot = cluster.snapshot().unwrap();
    cluster.stop().await;

    shows_no_hooks_of_what_it_does_not_do(snapshot).await;
}

/// What only shows a snapshot makes and looks after nothing.
async fn shows_no_hooks_of_what_it_does_not_do(snapshot: Snapshot) {
    let mut config = Config::default().snapshot(snapshot);
    config.read_only = true;
    let shown = Cluster::start(config.components(Components::NONE)).await.unwrap();
    let lines = Server::of(&shown).call("GET /livez?verbose", &Value::Null).await.text;
    assert!(lines.ends_with("livez check passed\n") && !lines.contains("bootstrap-controller"), "{lines}");
    shown.stop().await;
}
