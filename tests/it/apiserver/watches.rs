//! Watches as lines of JSON.

use super::*;

/// The first `count` events of a watch.
pub(crate) async fn events(server: &Server, path: &str, accept: &str, count: usize) -> Vec<Value> {
    let mut watching = Watching::start(server, path, accept).await;
    let mut events = vec![];
    while events.len() < count {
        events.push(watching.next().await);
    }
    events
}

/// A watch that is read event by event.
pub(crate) struct Watching {
    body: Body,
    text: String,
}

impl Watching {
    pub(crate) async fn start(server: &Server, path: &str, accept: &str) -> Watching {
        let mut request = request(&format!("GET {path}"), &[("accept", accept)], String::new());
        request.extensions_mut().insert(InProcessUser(server.user.clone()));
        let response = server.send(request).await;
        assert_eq!(response.status(), 200);
        Watching { body: response.into_body(), text: String::new() }
    }

    pub(crate) async fn next(&mut self) -> Value {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let event = serde_json::from_str(line).expect("a line is an event");
                self.text = rest.to_owned();
                return event;
            }
            let frame = self.body.frame().await.expect("the watch goes on").expect("memory");
            self.text += &String::from_utf8_lossy(frame.data_ref().expect("data"));
        }
    }
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_watch_starts_where_a_list_ended() {
    let server = Server::start().await;
    let revision = server.get(CONFIG_MAPS).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    server.create(CONFIG_MAPS, config_map("a")).await;
    server.patch(&format!("{CONFIG_MAPS}/a"), "application/merge-patch+json", r#"{"data":{"k":"w"}}"#).await;
    server.call(&format!("DELETE {CONFIG_MAPS}/a"), &Value::Null).await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={revision}");
    let events = events(&server, &path, "application/json", 3).await;
    assert_eq!(types(&events), ["ADDED", "MODIFIED", "DELETED"]);
    assert_eq!(
        (&events[1]["object"]["kind"], &events[1]["object"]["data"]["k"]),
        (&json!("ConfigMap"), &json!("w"))
    );
}

#[tokio::test]
async fn a_watch_list_ends_with_a_bookmark() {
    let server = Server::start().await;
    server.create(CONFIG_MAPS, config_map("a")).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    );
    let events = events(&server, &path, "application/json", 2).await;
    assert_eq!(types(&events), ["ADDED", "BOOKMARK"]);
    assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn a_table_is_watched_with_its_columns_once() {
    let server = Server::start().await;
    for name in ["a", "b"] {
        server.create(CONFIG_MAPS, config_map(name)).await;
    }
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let events = events(&server, &format!("{CONFIG_MAPS}?watch=1"), accept, 2).await;
    assert_eq!(events[0]["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(events[1]["object"]["columnDefinitions"], Value::Null);
    assert_eq!(events[1]["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn a_watch_ends_when_the_client_said() {
    let server = Server::start().await;
    let answer = server.call(&format!("GET {CONFIG_MAPS}?watch=1&timeoutSeconds=1"), &Value::Null).await;
    assert_eq!((answer.code, answer.text.as_str()), (200, ""));
}
