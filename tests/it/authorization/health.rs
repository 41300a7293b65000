//! What the server says of its own health does not hang on roles that users may delete.

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
