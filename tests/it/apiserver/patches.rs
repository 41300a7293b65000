//! JSON, merge and strategic merge patches: what they may not do, and what `fieldValidation` finds in them.

use super::*;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Media type, patch of Deployment `d`, code, how the message ends.
const REFUSED: &[(&str, &str, u16, &str)] = &[
    (
        JSON,
        r#"[{"op":"test","path":"/spec/replicas","value":9}]"#,
        422,
        "the server rejected our request due to an error in our request",
    ),
    (
        JSON,
        r#"[{"op":"remove","path":"/spec/nothing"}]"#,
        422,
        "the server rejected our request due to an error in our request",
    ),
    (
        JSON,
        r#"{"op":"test"}"#,
        400,
        "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    ),
    (
        JSON,
        r#"[{"op":"replace","path":"/spec/replicas","value":"x"}]"#,
        422,
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (JSON, r#"[{"op":"replace","path":"/kind","value":"Pod"}]"#, 422, ""),
    (
        JSON,
        r#"[{"op":"replace","path":"/metadata/name","value":"e"}]"#,
        400,
        "the name of the object (e) does not match the name on the URL (d)",
    ),
    (
        MERGE,
        r#"{"metadata":{"namespace":"other"}}"#,
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    (
        MERGE,
        r#"{"metadata":{"uid":"other"}}"#,
        422,
        "metadata.uid: Invalid value: \"other\": field is immutable",
    ),
    (
        MERGE,
        r#"{"metadata":{"resourceVersion":"1"}}"#,
        409,
        "the object has been modified; please apply your changes to the latest version and try again",
    ),
    (MERGE, r#"[]"#, 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    (
        STRATEGIC,
        r#"{"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}}"#,
        500,
        "map: map[image:x] does not contain declared merge key: name",
    ),
    (STRATEGIC, r#"{"spec":{"nothing":{"a":1}}}"#, 200, ""),
    (
        STRATEGIC,
        r#"{"spec":{"template":{"$patch":"explode"}}}"#,
        500,
        "unknown patch type: explode in map: map[$patch:explode]",
    ),
];

#[tokio::test]
async fn patches_are_refused_in_upstreams_words() {
    let server = Server::start().await;
    server.create(DEPLOYMENTS, deployment("d")).await;
    let path = format!("{DEPLOYMENTS}/d");
    let before = server.get(&path).await;
    for (media_type, patch, code, message) in REFUSED {
        let answer = server.patch(&path, media_type, patch).await;
        let (found, _, text) = answer.status();
        assert!(found == *code && text.ends_with(message), "{patch}: {}", answer.text);
    }
    assert_eq!(server.get(&path).await, before);
    let many = vec![r#"{"op":"test","path":"/kind","value":"Deployment"}"#; 10_001].join(",");
    let answer = server.patch(&path, JSON, &format!("[{many}]")).await;
    let text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(answer.status(), (413, "RequestEntityTooLarge".into(), text.into()));
}

#[tokio::test]
async fn unknown_and_duplicate_fields_of_a_patch_are_ignored_told_or_refused() {
    let server = Server::start().await;
    server.create(DEPLOYMENTS, deployment("d")).await;
    let found = [
        (
            JSON,
            r#"[{"op":"add","path":"/spec/foo","value":1,"bar":2},{"op":"replace","path":"/spec/replicas","value":2,"value":3}]"#,
            vec![
                r#"json patch unknown field "[0].bar""#,
                r#"json patch duplicate field "[1].value""#,
                r#"unknown field "spec.foo""#,
            ],
        ),
        (
            MERGE,
            r#"{"spec":{"foo":1,"replicas":2,"replicas":3}}"#,
            vec![r#"duplicate field "spec.replicas""#, r#"unknown field "spec.foo""#],
        ),
        (
            STRATEGIC,
            r#"{"spec":{"replicas":2,"replicas":3},"metadata":{"labels":{"a":"b"}}}"#,
            vec![r#"duplicate field "spec.replicas""#],
        ),
    ];
    for (media_type, patch, errors) in found {
        let path = |validation: &str| format!("{DEPLOYMENTS}/d?fieldValidation={validation}&dryRun=All");
        let refused = server.patch(&path("Strict"), media_type, patch).await;
        let expected = format!("strict decoding error: {}", errors.join(", "));
        assert!(refused.code == 422 && refused.status().2.ends_with(&expected), "{}", refused.text);
        let warned = server.patch(&path("Warn"), media_type, patch).await;
        let warnings: Vec<String> = errors.iter().map(|error| format!("299 - {}", json!(error))).collect();
        assert_eq!((warned.code, warned.warnings()), (200, warnings));
        assert_eq!(warned.json()["spec"]["replicas"], 3);
        let ignored = server.patch(&path("Ignore"), media_type, patch).await;
        assert_eq!((ignored.code, ignored.warnings()), (200, vec![]));
    }
}
