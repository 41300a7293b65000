//! Bodies in protobuf, as typed clients send them: what becomes of them, and what is said of broken ones.

use super::*;

const HEADERS: [(&str, &str); 2] = [
    ("content-type", "application/vnd.kubernetes.protobuf"),
    ("accept", "application/vnd.kubernetes.protobuf,application/json"),
];

/// A text or message of less than 128 bytes.
fn field(number: u8, content: &str) -> String {
    format!("{}{}{content}", char::from(number << 3 | 2), char::from(content.len() as u8))
}

fn body(api_version: &str, kind: &str, message: &str) -> String {
    format!("k8s\0{}{}", field(1, &(field(1, api_version) + &field(2, kind))), field(2, message))
}

#[tokio::test]
async fn an_object_in_protobuf_is_answered_in_json() {
    let server = Server::start().await;
    let entry = field(1, "k") + &field(2, "v");
    let config_map = body("v1", "ConfigMap", &(field(1, &field(1, "a")) + &field(2, &entry)));
    let created = server.call_with(&format!("POST {CONFIG_MAPS}"), &HEADERS, config_map).await;
    assert_eq!((created.code, &created.json()["data"]), (201, &json!({"k": "v"})));
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await, created.json());
}

#[tokio::test]
async fn options_of_a_delete_may_be_protobuf() {
    let server = Server::start().await;
    let uid = server.create(CONFIG_MAPS, config_map("a")).await["metadata"]["uid"].clone();
    let delete = async |uid: &str| {
        let options = body("v1", "DeleteOptions", &field(2, &field(1, uid)));
        server.call_with(&format!("DELETE {CONFIG_MAPS}/a"), &HEADERS, options).await.code
    };
    assert_eq!(delete("other").await, 409);
    assert_eq!(delete(uid.as_str().unwrap()).await, 200);
}

#[tokio::test]
async fn what_is_broken_is_a_bad_request() {
    let server = Server::start().await;
    let refused = async |body: &str| {
        let (code, reason, text) =
            server.call_with(&format!("POST {CONFIG_MAPS}"), &HEADERS, body).await.status();
        assert_eq!((code, reason.as_str()), (400, "BadRequest"));
        text
    };
    let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    assert_eq!(
        refused("{}").await,
        format!("the object provided is unrecognized (must be of type ConfigMap): {prefix} ({{}})")
    );
    assert_eq!(
        refused(&body("v1", "ConfigMap", "\x0a\x05")).await,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF"
    );
    assert_eq!(
        refused(&body("v1", "Nothing", "")).await,
        "Nothing in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nothing\" is registered for \
         version \"v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    );
}
