//! Known servers: they listen where they are told, and say what they were told.

use std::net::SocketAddr;

use serde_json::json;

use super::Net;

#[tokio::test(flavor = "multi_thread")]
async fn servers_listen_where_their_arguments_and_variables_say() {
    let net = Net::start().await;
    let from = net.pod("client-1", json!({"image": "busybox", "command": ["sleep", "9999"]})).await;
    let whoami = json!({"image": "traefik/whoami", "args": ["--port=8081", "--name", "joe"]});
    let whoami = net.pod("whoami-1", whoami).await;
    let said = net.get(from, SocketAddr::new(whoami, 8081), "/").await.unwrap();
    assert!(said.starts_with("Name: joe\nHostname: whoami-1\n"), "{said}");
    assert_eq!(net.get(from, SocketAddr::new(whoami, 80), "/").await, None);
    assert!(net.log("whoami-1").await.ends_with(" Starting up on port 8081\n"));
    // The variable is known when the container starts, and not before.
    let env = json!([{"name": "OWN", "value": "8085"}, {"name": "PORT", "value": "$(OWN)"}]);
    let hello = json!({"image": "gcr.io/google-samples/hello-app:2.0", "env": env});
    let hello = net.pod("hello-1", hello).await;
    let said = net.get(from, SocketAddr::new(hello, 8085), "/").await.unwrap();
    assert!(said.contains("Version: 2.0.0\n"), "{said}");
    assert_eq!(net.get(from, SocketAddr::new(hello, 8080), "/").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_asked_with_its_password_and_headers_are_shown_as_they_are_sent() {
    let net = Net::start().await;
    let redis = json!({"image": "redis:7", "args": ["--port", "6380", "--requirepass", "pw"]});
    let redis = net.pod("redis-1", redis).await;
    let web = net.pod("web-1", json!({"image": "nginx:1.27"})).await;
    let ask = |command: &str| format!("redis-cli -h {redis} -p 6380 {command}");
    let asked = ["ping", "-a pw rpush l a b", "-a pw lrange l 0 -1", "-a pw expire l 100", "-a pw ttl l"];
    let asked = asked.map(ask).join("; ");
    let script = format!(
        "{asked}; curl -sI http://{web}/ | grep -E '^(Server|Content-Type|ETag):' | sort; sleep 9999"
    );
    net.pod("client-1", json!({"image": "redis:7", "command": ["sh", "-c", script]})).await;
    let log = net
        .until(|| Box::pin(async { Some(net.log("client-1").await).filter(|log| log.contains("Server")) }));
    let log = log.await;
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (tag, others) = (lines[7], [&lines[..7], &lines[8..]].concat());
    assert!(tag.starts_with("ETag: \""), "{log}");
    let wanted = [
        "NOAUTH Authentication required.",
        "2",
        "a",
        "b",
        "1",
        "100",
        "Content-Type: text/html",
        "Server: nginx/1.27.5",
    ];
    assert_eq!(others, wanted);
}
