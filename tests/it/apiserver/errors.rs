//! What is refused, and in which words.

use super::*;

/// Blocks: the request with its body or, behind `@`, its media type and body; then code, reason, message.
const REFUSED: &str = r#"
GET /api/v1/namespaces/default/configmaps/x
404 NotFound configmaps "x" not found

GET /apis/apps/v1/namespaces/default/deployments/x
404 NotFound deployments.apps "x" not found

GET /api/v1/namespaces/default/nothings
404 NotFound the server could not find the requested resource

GET /api/v1/namespaces/default/nodes
404 NotFound the server could not find the requested resource

GET /api/v1/namespaces/default/configmaps/a/status
404 NotFound the server could not find the requested resource

POST /api/v1/configmaps {}
405 MethodNotAllowed the server does not allow this method on the requested resource

POST /api/v1/namespaces/default/configmaps/a {}
405 MethodNotAllowed the server does not allow this method on the requested resource

POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a"}}
409 AlreadyExists configmaps "a" already exists

POST /api/v1/namespaces/nowhere/configmaps {"metadata":{"name":"a"}}
404 NotFound namespaces "nowhere" not found

POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"a","namespace":"b"}}
400 BadRequest the namespace of the provided object does not match the namespace sent on the request

PUT /api/v1/namespaces/default/configmaps/a {"metadata":{"name":"b"}}
400 BadRequest the name of the object (b) does not match the name on the URL (a)

POST /api/v1/namespaces/default/pods {"apiVersion":"apps/v1","kind":"Deployment"}
400 BadRequest Deployment in version "v1" cannot be handled as a Pod: converting (v1.Deployment) to
(core.Pod): unknown conversion

GET /api/v1/pods?labelSelector=a%20b
400 BadRequest unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt

GET /api/v1/pods?fieldSelector=spec.colour%3Dred
400 BadRequest field label not supported: spec.colour

GET /api/v1/pods?limit=x
400 BadRequest strconv.ParseInt: parsing "x": invalid syntax

GET /api/v1/pods?timeout=soon
400 BadRequest invalid timeout specified in the request URL - time: invalid duration "soon"

POST /api/v1/namespaces/default/configmaps?dryRun=x {"metadata":{"name":"z"}}
422 Invalid CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported
values: "All"

DELETE /api/v1/namespaces/default/configmaps/a?propagationPolicy=Slow
422 Invalid DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Slow": supported
values: "Foreground", "Background", "Orphan", "nil"

DELETE /api/v1/namespaces/default
403 Forbidden namespaces "default" is forbidden: this namespace may not be deleted

POST /api/v1/namespaces/default/configmaps @text/plain x
415 UnsupportedMediaType the body of the request was in an unknown format - accepted media types include:
application/json, application/yaml, application/vnd.kubernetes.protobuf

PATCH /apis/apps/v1/namespaces/default/deployments/d @application/json {}
415 UnsupportedMediaType 415: Unsupported Media Type

PATCH /apis/apps/v1/namespaces/default/deployments/d @application/apply-patch+yaml {}
422 Invalid PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch

PATCH /apis/apps/v1/namespaces/default/deployments/x @application/merge-patch+json {}
404 NotFound deployments.apps "x" not found

PATCH /apis/apps/v1/namespaces/default/deployments/d @application/json-patch+json [{"op":"remove","path":"/"}]
422 Invalid the server rejected our request due to an error in our request

PATCH /apis/apps/v1/namespaces/default/deployments/d @application/merge-patch+json {"metadata":{"name":"e"}}
400 BadRequest the name of the object (e) does not match the name on the URL (d)
"#;

/// The same with only the beginning of the message.
const REFUSED_SOMEHOW: &str = r#"
POST /api/v1/namespaces/default/configmaps {
400 BadRequest the object provided is unrecognized (must be of type ConfigMap)

POST /api/v1/namespaces/default/configmaps []
400 BadRequest the object provided is unrecognized (must be of type ConfigMap)

POST /api/v1/namespaces/default/configmaps {"data":{"k":1}}
400 BadRequest ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into

POST /api/v1/namespaces/default/configmaps @application/yaml a: [
400 BadRequest the object provided is unrecognized (must be of type ConfigMap)

PATCH /apis/apps/v1/namespaces/default/deployments/d @application/merge-patch+json {
400 BadRequest error decoding patch:

PATCH /apis/apps/v1/namespaces/default/deployments/d @application/merge-patch+json {"spec":{"replicas":"x"}}
422 Invalid  "" is invalid: patch: Invalid value: "{
"#;

/// Request line, media type, body; then code, reason and message.
fn cases(table: &str) -> Vec<(String, String, String, u16, String, String)> {
    let case = |block: &str| {
        let (request, answer) = block.trim().split_once('\n').expect("a request and an answer");
        let mut parts = request.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let line = format!("{} {}", next(), next());
        let (media_type, body) = match next() {
            rest if rest.starts_with('@') => rest[1..].split_once(' ').expect("a media type and a body"),
            body => ("application/json", body),
        };
        let answer = answer.replace('\n', " ");
        let mut parts = answer.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let (code, reason) = (next().parse().expect("a code"), next().to_owned());
        (line, media_type.to_owned(), body.to_owned(), code, reason, next().to_owned())
    };
    table.split("\n\n").map(case).collect()
}

#[tokio::test]
async fn bad_requests_are_answered_in_upstreams_words() {
    let server = Server::start().await;
    server.create(CONFIG_MAPS, config_map("a")).await;
    server.create(DEPLOYMENTS, deployment("d")).await;
    for (line, media_type, body, code, reason, message) in cases(REFUSED) {
        let answer = server.call_with(&line, &[("content-type", &media_type)], body.as_str()).await;
        assert_eq!(answer.status(), (code, reason, message), "{line} {body}: {}", answer.text);
    }
    for (line, media_type, body, code, reason, message) in cases(REFUSED_SOMEHOW) {
        let answer = server.call_with(&line, &[("content-type", &media_type)], body.as_str()).await;
        let (found_code, found_reason, text) = answer.status();
        assert_eq!((found_code, found_reason), (code, reason), "{line} {body}: {}", answer.text);
        assert!(text.starts_with(&message), "{line} {body}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_body_has_a_limit_and_an_answer_a_form() {
    let server = Server::start().await;
    let huge = format!("{{\"data\":{{\"k\":\"{}\"}}}}", "x".repeat(3 * 1024 * 1024));
    let json = [("content-type", "application/json")];
    let answer = server.call_with(&format!("POST {CONFIG_MAPS}"), &json, huge).await;
    let text = "Request entity too large: limit is 3145728";
    assert_eq!(answer.status(), (413, "RequestEntityTooLarge".into(), text.into()));
    let refused = server.get_as(CONFIG_MAPS, "text/plain").await;
    let text = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
        application/vnd.kubernetes.protobuf, application/json;stream=watch, \
        application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(refused.status(), (406, "NotAcceptable".into(), text.into()));
}

#[tokio::test]
async fn a_405_names_what_is_allowed() {
    let server = Server::start().await;
    let answer = server.call("DELETE /api/v1/configmaps", &Value::Null).await;
    assert_eq!((answer.code, answer.headers["allow"].to_str().unwrap()), (405, "GET"));
    let answer = server.call(&format!("PUT {CONFIG_MAPS}"), &json!({})).await;
    assert_eq!(answer.headers["allow"].to_str().unwrap(), "GET, POST, DELETE");
}

#[tokio::test]
async fn streams_that_are_asked_for_without_an_upgrade_or_that_lead_nowhere_are_refused() {
    let server = Server::start().await;
    let mut placed = pod("p");
    placed["spec"]["nodeName"] = json!("n");
    server.create(PODS, placed).await;
    for stream in ["exec?command=ls", "attach", "portforward"] {
        let answer = server.call(&format!("POST {PODS}/p/{stream}"), &Value::Null).await;
        let (reason, message) = ("BadRequest", "Upgrade request required");
        assert_eq!(
            (answer.status().1, answer.status().2),
            (reason.to_owned(), message.to_owned()),
            "{stream}"
        );
    }
    // Under the old path of watches there is nothing below an object: it would be allowed as a watch.
    let old = PODS.replace("/api/v1/", "/api/v1/watch/");
    for stream in ["exec", "portforward", "proxy/x", "log", "eviction", "binding", "status"] {
        let answer = server.call(&format!("GET {old}/p/{stream}"), &Value::Null).await;
        assert_eq!(answer.code, 404, "{stream}");
    }
    assert_eq!(server.call(&format!("GET {PODS}/x/exec"), &Value::Null).await.code, 404);
}
