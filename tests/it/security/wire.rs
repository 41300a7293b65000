//! Attacks on the socket itself: strangers' certificates, requests that never end, headers that never fit.

use std::net::SocketAddr;

use kubarium::cluster::{Access, Components, Listen};
use kubarium::{Cluster, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::support::wire::Target;

pub(crate) async fn listening() -> (Cluster, Access) {
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listen = Listen::tls(address);
    let config = Config::new().nodes(0).components(Components::NONE).listen(listen);
    let cluster = Cluster::start(config).await.unwrap();
    let access = cluster.access().unwrap();
    (cluster, access)
}

fn target(access: &Access, identity: Option<(&str, &str)>) -> Target {
    let identity = identity.map(|(certificate, key)| [certificate.into(), key.into()]);
    Target::new(&access.server, access.authority_pem.as_ref().unwrap().as_bytes(), identity)
}

pub(crate) fn admin(access: &Access) -> Target {
    let identity = access.identity.as_ref().unwrap();
    target(access, Some((&identity.certificate_pem, &identity.key_pem)))
}

#[tokio::test]
async fn a_strangers_certificate_is_answered_and_not_believed() {
    let (cluster, access) = listening().await;
    let stranger = Authority::generate(cluster.clock().now()).unwrap();
    let identity = stranger.client("kubernetes-admin", "system:masters", cluster.clock().now()).unwrap();
    let cases = [
        (admin(&access), 200),
        (target(&access, Some((&identity.certificate_pem, &identity.key_pem))), 401),
        (target(&access, None), 403),
    ];
    for (target, code) in cases {
        let mut wire = target.http1().await.unwrap();
        assert_eq!(wire.get("/api/v1/nodes").await.unwrap().code, code);
        let mut wire = target.http2().await.unwrap();
        assert_eq!(wire.get("/api/v1/nodes").await.unwrap().code, code);
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_token_works_over_the_socket_and_a_certificate_beats_a_wrong_one() {
    let (cluster, access) = listening().await;
    let mut wire = admin(&access).http1().await.unwrap();
    let account = json!({"metadata": {"name": "builder", "namespace": "default"}});
    wire.send(http::Method::POST, ACCOUNTS, &account).await.unwrap();
    let made = wire.send(http::Method::POST, &format!("{ACCOUNTS}/builder/token"), &json!({})).await.unwrap();
    let token = made.json()["status"]["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let mut stranger = target(&access, None).http2().await.unwrap();
    let refused = stranger.get_with("/api/v1/nodes", &[("authorization", &bearer)]).await.unwrap();
    assert_eq!(refused.code, 403);
    assert!(refused.json()["message"].as_str().unwrap().contains("system:serviceaccount:default:builder"));
    assert_eq!(wire.get_with("/api/v1/nodes", &[("authorization", "Bearer wrong")]).await.unwrap().code, 200);
    cluster.stop().await;
}

#[tokio::test]
async fn whoever_is_to_join_reads_where_the_cluster_is() {
    let (cluster, access) = listening().await;
    let mut stranger = target(&access, None).http1().await.unwrap();
    let path = "/api/v1/namespaces/kube-public/configmaps";
    let info = stranger.get(&format!("{path}/cluster-info")).await.unwrap();
    assert_eq!(info.code, 200);
    let text = info.json()["data"]["kubeconfig"].as_str().unwrap().to_owned();
    let authority = STANDARD.encode(access.authority_pem.as_ref().unwrap());
    for line in
        [format!("    certificate-authority-data: {authority}"), format!("    server: {}", access.server)]
    {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("users: null\n"), "no credentials: {text}");
    assert_eq!(stranger.get(path).await.unwrap().code, 403);
    assert_eq!(stranger.get(&format!("{path}/other")).await.unwrap().code, 403);
    cluster.stop().await;
}

#[tokio::test]
async fn the_story_of_a_request_tells_who_acts_as_whom() {
    let (cluster, access) = listening().await;
    let mut wire = admin(&access).http1().await.unwrap();
    let path = "/api/v1/namespaces/default/configmaps";
    for (user, name, code) in [("jane", "one", 403), ("joe", "two", 403)] {
        let map = json!({"metadata": {"name": name}});
        let headers = [("impersonate-user", user)];
        let path = format!("{path}/{name}");
        let body = Some(("application/json", map.to_string().into()));
        let answer = wire.open_with(http::Method::PUT, &path, &headers, body).await.unwrap();
        assert_eq!(answer.status(), code, "{user}");
        drop(answer);
        let trace = cluster.flow().trace("configmaps", "default", name).render();
        let words = format!("kubernetes-admin acts as {user}");
        let flat = trace.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&words) && flat.contains("refused with 403"), "{words:?} is not in\n{trace}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn requests_that_never_end_hold_nobody_up() {
    let (cluster, access) = listening().await;
    let mut half = Vec::new();
    for _ in 0..50 {
        let mut stream = target(&access, None).connect().await.unwrap();
        stream
            .write_all(b"POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{")
            .await
            .unwrap();
        half.push(stream);
        let mut stream = target(&access, None).connect().await.unwrap();
        stream.write_all(b"GET /api/v1/nodes HTTP/1.1\r\nhost:").await.unwrap();
        half.push(stream);
    }
    assert_eq!(admin(&access).http1().await.unwrap().get("/api/v1/nodes").await.unwrap().code, 200);
    drop(half);
    cluster.stop().await;
}

#[tokio::test]
async fn broken_requests_end_only_their_own_connection() {
    let (cluster, access) = listening().await;
    let huge = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "a".repeat(2 << 20));
    let many = format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(5000));
    let smuggled = "POST /api/v1/nodes HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/secrets HTTP/1.1\r\nhost: a\r\n\r\n";
    let folded = "GET /api/v1/nodes HTTP/1.1\r\nhost: a\r\nx: y\r\n impersonate-user: admin\r\n\r\n";
    let cases = [
        &*huge,
        &many,
        smuggled,
        folded,
        "GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n",
        "\0\0\0\0",
        "PRI * HTTP/2.0\r\n\r\n",
    ];
    for text in cases {
        let mut stream = target(&access, None).connect().await.unwrap();
        // A server that hangs up while we still send is as good as one that answers.
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.shutdown().await;
        let mut answer = vec![0; 16];
        let read = stream.read(&mut answer).await.unwrap_or(0);
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(!answer.starts_with("HTTP/1.1 2"), "{:?}: {answer}", &text[..text.len().min(60)]);
    }
    assert_eq!(admin(&access).http1().await.unwrap().get("/api/v1/nodes").await.unwrap().code, 200);
    cluster.stop().await;
}

#[tokio::test]
async fn the_story_of_a_refusal_tells_what_each_authenticator_said() {
    let (cluster, access) = listening().await;
    let mut stream = target(&access, None).connect().await.unwrap();
    let line = "DELETE /api/v1/namespaces/default/configmaps/c HTTP/1.1";
    let request = format!("{line}\r\nhost: a\r\nauthorization: Bearer wr0ng\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("invalid bearer token"), "{answer}");
    let trace = cluster.flow().trace("configmaps", "default", "c").render();
    for words in [
        "not authenticated (X509: no opinion;",
        "BearerToken: invalid bearer token;",
        "ServiceAccount: no opinion;",
        "refused with 401: Unauthorized",
    ] {
        assert!(trace.contains(words), "{words:?} is not in\n{trace}");
    }
    assert!(!trace.contains("wr0ng"), "{trace}");
    cluster.stop().await;
}
