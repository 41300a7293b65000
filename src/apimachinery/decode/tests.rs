//! Bodies as they come, and what upstream says of them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::schema::Schemas;

fn definition(kind: &str) -> (&'static str, &'static str, Arc<Schema>) {
    let (group, version, name) = match kind {
        "Deployment" => ("apps", "v1", "io.k8s.api.apps.v1.Deployment"),
        "Secret" => ("", "v1", "io.k8s.api.core.v1.Secret"),
        "Service" => ("", "v1", "io.k8s.api.core.v1.Service"),
        _ => ("", "v1", "io.k8s.api.core.v1.Pod"),
    };
    (group, version, Schemas::builtin().get(name).expect(name))
}

fn decode_as(kind: &str, body: &str, format: BodyFormat) -> Result<Decoded, String> {
    let (group, version, schema) = definition(kind);
    let is_registered = |_: &str, version: &str, kind: &str| version == "v1" && kind != "Nothing";
    let target =
        DecodeTarget { group, version, kind, schema: &schema, typed: true, is_registered: &is_registered };
    decode(&target, body.as_bytes(), format).map_err(|error| error.to_string())
}

fn json_as(kind: &str, body: Value) -> Decoded {
    decode_as(kind, &body.to_string(), BodyFormat::Json).unwrap_or_else(|error| panic!("{body}: {error}"))
}

fn refused(kind: &str, body: &str) -> String {
    decode_as(kind, body, BodyFormat::Json).expect_err(body)
}

#[test]
fn the_form_of_a_body_is_what_its_content_type_says_in_any_letters() {
    for (content_type, format) in [
        ("", Some(BodyFormat::Json)),
        ("application/json", Some(BodyFormat::Json)),
        ("Application/JSON; charset=utf-8", Some(BodyFormat::Json)),
        ("application/YAML ;x=y", Some(BodyFormat::Yaml)),
        ("application/yaml ;x", None),
        ("application/vnd.kubernetes.Protobuf", Some(BodyFormat::Protobuf)),
        (";charset=utf-8", None),
        ("text/plain", None),
    ] {
        let headers = [(CONTENT_TYPE, content_type.parse().unwrap())].into_iter().collect();
        assert_eq!(BodyFormat::of(&headers), format, "{content_type}");
    }
    assert_eq!(BodyFormat::of(&HeaderMap::new()), Some(BodyFormat::Json));
    let odd = http::HeaderValue::from_bytes(b"application/json\xff").unwrap();
    assert_eq!(BodyFormat::of(&[(CONTENT_TYPE, odd)].into_iter().collect()), None);
}

#[test]
fn unknown_and_duplicate_fields_are_named_with_their_path_and_dropped() {
    let body = r#"{"kind":"Deployment","apiVersion":"apps/v1","unknown1":1,
        "metadata":{"name":"a","labels":{"x":"1","x":"2"},"unknownMeta":"foo"},
        "spec":{"unknownDupe":1,"unknownDupe":2,"paused":true,"paused":false,"replicas":1,
          "template":{"spec":{"containers":[{"name":"c","imagePullPolicy":"Always","imagePullPolicy":"Never",
            "unknownNested":"val","ports":[{"containerPort":80,"Protocol":"TCP"}]}]}}}}"#;
    let decoded = decode_as("Deployment", body, BodyFormat::Json).expect("decodes");
    assert_eq!(
        decoded.strict_errors,
        [
            r#"unknown field "unknown1""#,
            r#"duplicate field "metadata.labels.x""#,
            r#"unknown field "metadata.unknownMeta""#,
            r#"unknown field "spec.unknownDupe""#,
            r#"duplicate field "spec.paused""#,
            r#"duplicate field "spec.template.spec.containers[0].imagePullPolicy""#,
            r#"unknown field "spec.template.spec.containers[0].unknownNested""#,
            r#"unknown field "spec.template.spec.containers[0].ports[0].Protocol""#,
        ]
    );
    let container = &decoded.value["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        *container,
        json!({"name": "c", "imagePullPolicy": "Never", "ports": [{"containerPort": 80}]})
    );
    assert_eq!(decoded.value["metadata"], json!({"name": "a", "labels": {"x": "2"}}));
}

#[test]
fn a_strict_refusal_lists_every_error() {
    let (group, version, schema) = definition("Deployment");
    let kind = "Deployment";
    let target =
        DecodeTarget { group, version, kind, schema: &schema, typed: true, is_registered: &|_, _, _| true };
    let errors = [r#"unknown field "spec.foo""#.to_owned(), r#"duplicate field "spec.paused""#.to_owned()];
    assert_eq!(
        DecodeError::strict(&target, &errors).to_string(),
        "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \
         \"spec.foo\", duplicate field \"spec.paused\""
    );
}

#[test]
fn mistyped_values_are_refused_in_the_words_of_go() {
    let deployment = "Deployment in version \"v1\" cannot be handled as a Deployment: ";
    for (spec, error) in [
        (
            r#"{"replicas":"3"}"#,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            r#"{"replicas":1.5}"#,
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            r#"{"replicas":99999999999}"#,
            "json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            r#"{"paused":"yes"}"#,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            r#"[]"#,
            "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
        ),
        (
            r#"{"selector":{"matchLabels":{"a":1}}}"#,
            "json: cannot unmarshal number into Go struct field LabelSelector.spec.selector.matchLabels of type string",
        ),
        (
            r#"{"template":{"spec":{"containers":{"a":1}}}}"#,
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            r#"{"template":{"spec":{"containers":[{"env":[{"name":"A","value":1}]}]}}}"#,
            "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
        ),
        (
            r#"{"template":{"spec":{"restartPolicy":1}}}"#,
            "json: cannot unmarshal number into Go struct field PodSpec.spec.template.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            r#"{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            r#"{"strategy":{"rollingUpdate":{"maxSurge":true}}}"#,
            "json: cannot unmarshal bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            r#"{"template":{"metadata":{"creationTimestamp":"foo"}}}"#,
            "parsing time \"foo\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"foo\" as \"2006\"",
        ),
        (
            r#"{"template":{"metadata":{"creationTimestamp":"2020-13-01T00:00:00Z"}}}"#,
            "parsing time \"2020-13-01T00:00:00Z\": month out of range",
        ),
    ] {
        let body = format!(r#"{{"kind":"Deployment","apiVersion":"apps/v1","spec":{spec}}}"#);
        assert_eq!(refused("Deployment", &body), format!("{deployment}{error}"), "{spec}");
    }
    assert_eq!(
        refused("Secret", r#"{"data":{"a":"AAA*"}}"#),
        "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 3"
    );
}

#[test]
fn after_a_strategic_merge_patch_the_words_are_those_of_the_converter() {
    let (group, version, schema) = definition("Deployment");
    let is_registered = |_: &str, _: &str, _: &str| true;
    let kind = "Deployment";
    let target =
        DecodeTarget { group, version, kind, schema: &schema, typed: true, is_registered: &is_registered };
    for (spec, cause) in [
        (json!({"replicas": "2"}), "unrecognized type: int32"),
        (json!({"replicas": 1.5}), "cannot convert float64 to int32"),
        (json!({"paused": "x"}), "unrecognized type: bool"),
        (json!({"template": {"spec": {"restartPolicy": 1}}}), "cannot convert int64 to v1.RestartPolicy"),
        (json!({"template": {"spec": {"containers": {}}}}), "cannot restore slice from map"),
        (json!({"selector": {"matchLabels": "a"}}), "cannot restore map from string"),
        (json!([]), "cannot restore struct from: slice"),
    ] {
        let refused = decode_merged(&target, json!({"spec": spec})).expect_err("does not fit");
        assert_eq!(refused.cause(), cause);
    }
    let decoded = decode_merged(&target, json!({"spec": {"replicas": 2.0, "foo": 1}})).expect("fits");
    assert_eq!(decoded.value["spec"], json!({"replicas": 2}));
    assert_eq!(decoded.strict_errors, [r#"unknown field "spec.foo""#]);
}

#[test]
fn json_that_is_none_is_refused_in_the_words_of_go() {
    let unrecognized = "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: ";
    for (body, error) in [
        ("", "unexpected end of JSON input (<empty>)"),
        ("{", "unexpected end of JSON input ({)"),
        ("{a", "invalid character 'a' looking for beginning of object key string ({a)"),
        (r#"{"a" 1}"#, r#"invalid character '1' after object key ({"a" 1})"#),
        (r#"{"a":1 "b":2}"#, r#"invalid character '"' after object key:value pair ({"a":1 "b":2})"#),
        (r#"{"a":tru }"#, r#"invalid character ' ' in literal true (expecting 'e') ({"a":tru })"#),
        (r#"{"a":[1 2]}"#, r#"invalid character '2' after array element ({"a":[1 2]})"#),
        (r#"{}x"#, "invalid character 'x' after top-level value ({}x)"),
        ("kind: Pod", "invalid character 'k' looking for beginning of value (6b696e643a20506f64)"),
        (
            "[1]",
            r#"json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b315d)"#,
        ),
        (
            r#"{"kind":1}"#,
            r#"json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1})"#,
        ),
    ] {
        assert_eq!(refused("Pod", body), format!("{unrecognized}{error}"), "{body}");
    }
    let long = format!(r#"{{"metadata":{{"name":"{}"}}"#, "x".repeat(40));
    assert!(
        refused("Pod", &long)
            .ends_with(r#"unexpected end of JSON input ({"metadata":{"name":"xxxxxxxxx ...)"#)
    );
}

#[test]
fn a_body_of_another_kind_is_refused() {
    for (body, error) in [
        (
            r#"{"kind":"Service","apiVersion":"v1"}"#,
            r#"Service in version "v1" cannot be handled as a Pod: converting (v1.Service) to (core.Pod): unknown conversion"#,
        ),
        (
            r#"{"kind":"Nothing","apiVersion":"v1"}"#,
            r#"Nothing in version "v1" cannot be handled as a Pod: no kind "Nothing" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30""#,
        ),
        (
            r#"{"kind":"Pod","apiVersion":"v2"}"#,
            r#"Pod in version "v2" cannot be handled as a Pod: no kind "Pod" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30""#,
        ),
    ] {
        assert_eq!(refused("Pod", body), error);
    }
    let filled = json_as("Deployment", json!({"metadata": {"name": "a"}}));
    assert_eq!(
        filled.value,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}})
    );
}

#[test]
fn zero_values_go_as_a_typed_round_trip_would_have_them() {
    let decoded = json_as(
        "Deployment",
        json!({
            "metadata": {"labels": {}, "creationTimestamp": null, "annotations": {"a": null}, "generation": 0, "name": "a"},
            "spec": {
                "replicas": 0, "minReadySeconds": 0, "paused": false, "revisionHistoryLimit": null,
                "template": {"spec": {
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "initContainers": [],
                    "automountServiceAccountToken": false,
                    "hostNetwork": false,
                    "containers": [{"name": "c", "command": null, "env": [{"name": "A", "value": ""}]}],
                }},
            },
            "status": {},
        }),
    );
    assert_eq!(
        decoded.value,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"annotations": {"a": ""}, "name": "a"},
            "spec": {
                "replicas": 0,
                "template": {"spec": {
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "automountServiceAccountToken": false,
                    "containers": [{"name": "c", "env": [{"name": "A"}]}],
                }},
            },
            "status": {},
        })
    );
    assert_eq!(decoded.strict_errors, Vec::<String>::new());
}

#[test]
fn scalars_take_their_canonical_form() {
    let decoded = json_as(
        "Pod",
        json!({
            "metadata": {"creationTimestamp": "2026-01-02T03:04:05.678+01:00"},
            "spec": {"containers": [{"resources": {
                "limits": {"cpu": 1, "memory": "1024Mi", "x": 0.5},
                "requests": {"cpu": "1000m", "memory": null},
            }}]},
        }),
    );
    assert_eq!(decoded.value["metadata"]["creationTimestamp"], "2026-01-02T02:04:05Z");
    assert_eq!(
        decoded.value["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1", "memory": "1Gi", "x": "500m"}, "requests": {"cpu": "1", "memory": "0"}})
    );
    let ports =
        json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8081}]}});
    assert_eq!(json_as("Service", ports.clone()).value["spec"], ports["spec"]);
}

#[test]
fn yaml_is_read_as_go_reads_it() {
    let yaml = "
apiVersion: v1
kind: Pod
metadata:
  name: a
spec:
  hostNetwork: yes
  volumes:
  - name: s
    secret: {secretName: x, defaultMode: 0644}
  terminationGracePeriodSeconds: 1_0
  priority: 2.0
  nodeSelector:
    1: b
---
kind: Other
";
    let decoded = decode_as("Pod", yaml, BodyFormat::Yaml).expect("decodes");
    assert_eq!(
        decoded.value["spec"],
        json!({
            "hostNetwork": true, "nodeSelector": {"1": "b"}, "terminationGracePeriodSeconds": 10, "priority": 2,
            "volumes": [{"name": "s", "secret": {"secretName": "x", "defaultMode": 420}}],
        })
    );
    let anchors = "kind: Pod\nmetadata:\n  labels: &l {a: b}\n  annotations:\n    <<: *l\n    c: d\n";
    let decoded = decode_as("Pod", anchors, BodyFormat::Yaml).expect("decodes");
    assert_eq!(decoded.value["metadata"], json!({"labels": {"a": "b"}, "annotations": {"a": "b", "c": "d"}}));
}

#[test]
fn aliases_stand_for_no_more_than_is_allowed() {
    let bomb = |text: usize, times: usize| {
        format!("kind: Pod\nx: &x \"{}\"\nitems:\n{}", "a".repeat(text), "- *x\n".repeat(times))
    };
    let lists = format!("kind: Pod\nx: &x [{}]\nitems:\n{}", "1,".repeat(5_000), "- *x\n".repeat(500));
    let words =
        "the object provided is unrecognized (must be of type Pod): yaml: document contains excessive";
    for refused in [bomb(1_000_000, 10_000), bomb(100_000, 100_000), lists] {
        let refusal = decode_as("Pod", &refused, BodyFormat::Yaml).expect_err("too much");
        assert!(refusal.starts_with(words), "{refusal}");
    }
    // Three megabytes of aliases may be added, and a body without any may be as long as it likes.
    assert!(decode_as("Pod", &bomb(100_000, 30), BodyFormat::Yaml).is_ok());
    let items = format!("kind: Pod\nx: [{}]\n", "a,".repeat(200_000));
    assert!(decode_as("Pod", &items, BodyFormat::Yaml).is_ok());
}

#[test]
fn yaml_that_is_none_is_refused_and_duplicates_are_told_with_their_lines() {
    let unrecognized = "the object provided is unrecognized (must be of type Pod): ";
    for (body, error) in [
        (
            "kind: Pod\na: b: c\n",
            "yaml: line 2: mapping values are not allowed in this context (6b696e643a20506f640a613a20623a20630a)",
        ),
        (
            "kind: Pod\nmetadata:\n  name: a\n name: b\n",
            "yaml: line 3: did not find expected key (6b696e643a20506f640a6d65746164617461 ...)",
        ),
    ] {
        let refusal = decode_as("Pod", body, BodyFormat::Yaml).expect_err(body);
        assert!(refusal.starts_with(unrecognized), "{refusal}");
        let told = refusal.trim_start_matches(unrecognized).split(" (").next();
        assert_eq!(told, error.split(" (").next(), "{body}");
    }
    let twice = "kind: Pod\nspec:\n  hostNetwork: true\n  hostNetwork: false\n  nope: 1\nmetadata:\n  name: a\n  name: b\n";
    let decoded = decode_as("Pod", twice, BodyFormat::Yaml).expect("decodes");
    assert_eq!(
        decoded.strict_errors,
        [
            "yaml: unmarshal errors:\n  line 4: key \"hostNetwork\" already set in map\n  line 8: key \"name\" already set in map",
            "unknown field \"spec.nope\"",
        ]
    );
    assert_eq!(decoded.value["metadata"]["name"], "b");
}

#[test]
fn a_custom_resource_is_taken_as_it_is_but_for_its_metadata() {
    let schema = Schema::from_openapi(&json!({"type": "object", "properties": {"spec": {"type": "object"}}}));
    let target = DecodeTarget {
        group: "example.com",
        version: "v1",
        kind: "Widget",
        schema: &schema,
        typed: false,
        is_registered: &|_, _, _| false,
    };
    let body = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","foo":1},"spec":{"a":{},"a":[]}}"#;
    let decoded = decode(&target, body.as_bytes(), BodyFormat::Json).expect("decodes");
    assert_eq!(
        decoded.value,
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"a": []}})
    );
    assert_eq!(decoded.strict_errors, [r#"unknown field "metadata.foo""#, r#"duplicate field "spec.a""#]);
}
