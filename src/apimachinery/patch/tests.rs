//! Patches and what upstream makes of them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::schema::Schemas;

fn schema(name: &str) -> Arc<Schema> {
    Schemas::builtin().get(name).expect(name)
}

fn patched(patch_type: PatchType, original: Value, patch: Value) -> Result<Value, PatchError> {
    let schema = schema("io.k8s.api.core.v1.Pod");
    apply(&schema, patch_type, original, patch.to_string().as_bytes()).map(|patched| patched.value)
}

fn strategic(original: Value, patch: Value) -> Value {
    patched(PatchType::StrategicMerge, original, patch.clone())
        .unwrap_or_else(|error| panic!("{patch}: {error}"))
}

#[test]
fn a_merge_patch_replaces_merges_and_removes() {
    let original = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
    let patch = json!({"a": null, "b": {"c": null, "x": {"y": null, "z": 1}}, "e": [3]});
    let result = patched(PatchType::Merge, original, patch).expect("applies");
    assert_eq!(result, json!({"b": {"d": 3, "x": {"z": 1}}, "e": [3]}));
}

#[test]
fn a_patch_that_is_none_is_refused() {
    let schema = schema("io.k8s.api.core.v1.Pod");
    for (patch_type, body, error) in [
        (
            PatchType::Merge,
            "[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (PatchType::Merge, "{", "error decoding patch: unexpected end of JSON input"),
        (
            PatchType::StrategicMerge,
            "1",
            "json: cannot unmarshal number into Go value of type map[string]interface {}",
        ),
        (
            PatchType::Json,
            "{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            PatchType::Json,
            r#"[{"op":1}]"#,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ] {
        let refused = apply(&schema, patch_type, json!({}), body.as_bytes()).expect_err(body);
        assert_eq!(refused, PatchError::BadRequest(error.into()));
    }
}

#[test]
fn duplicate_and_unknown_fields_of_a_patch_are_strict_errors() {
    let schema = schema("io.k8s.api.core.v1.Pod");
    for (patch_type, body, errors) in [
        (PatchType::Merge, r#"{"spec":{"a":1,"a":2}}"#, vec![r#"duplicate field "spec.a""#]),
        (PatchType::StrategicMerge, r#"{"spec":{"a":1,"a":2}}"#, vec![r#"duplicate field "spec.a""#]),
        (
            PatchType::Json,
            r#"[{"op":"add","path":"/a","value":{"b":1,"b":2},"foo":1}]"#,
            vec![r#"json patch duplicate field "[0].value.b""#, r#"json patch unknown field "[0].foo""#],
        ),
    ] {
        let patched = apply(&schema, patch_type, json!({}), body.as_bytes()).expect(body);
        assert_eq!(patched.strict_errors, errors);
    }
}

#[test]
fn json_patch_operations() {
    let original = json!({"a": {"b": [1, 2, 3]}, "c": "d", "e/f": 1});
    for (operations, result) in [
        (
            json!([{"op": "add", "path": "/x", "value": 1}, {"op": "remove", "path": "/a"}, {"op": "remove", "path": "/e~1f"}]),
            json!({"c": "d", "x": 1}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/-", "value": 4}, {"op": "add", "path": "/a/b/0", "value": 0}]),
            json!({"a": {"b": [0, 1, 2, 3, 4]}, "c": "d", "e/f": 1}),
        ),
        (
            json!([{"op": "remove", "path": "/a/b/-1"}, {"op": "replace", "path": "/a/b/0", "value": null}]),
            json!({"a": {"b": [null, 2]}, "c": "d", "e/f": 1}),
        ),
        (
            json!([{"op": "move", "from": "/c", "path": "/a/c"}, {"op": "copy", "from": "/a/b/1", "path": "/n"}]),
            json!({"a": {"b": [1, 2, 3], "c": "d"}, "e/f": 1, "n": 2}),
        ),
        (
            json!([{"op": "test", "path": "/c", "value": "d"}, {"op": "test", "path": "/none", "value": null}, {"op": "add", "path": "/new", "value": 1}]),
            json!({"a": {"b": [1, 2, 3]}, "c": "d", "e/f": 1, "new": 1}),
        ),
    ] {
        assert_eq!(
            patched(PatchType::Json, original.clone(), operations.clone()),
            Ok(result),
            "{operations}"
        );
    }
    for operations in [
        json!([{"op": "test", "path": "/c", "value": "x"}]),
        json!([{"op": "remove", "path": "/none"}]),
        json!([{"op": "add", "path": "/none/x", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/4", "value": 1}]),
        json!([{"op": "add", "path": "", "value": 1}]),
        json!([{"op": "replace", "path": "/none", "value": 1}]),
        json!([{"op": "copy", "from": "/none", "path": "/a"}]),
        json!([{"op": "nothing", "path": "/a"}]),
    ] {
        let refused = patched(PatchType::Json, original.clone(), operations.clone());
        assert!(matches!(refused, Err(PatchError::Unprocessable(_))), "{operations}: {refused:?}");
    }
    let many = vec![json!({"op": "test", "path": "/c", "value": "d"}); 10_001];
    let refused = patched(PatchType::Json, original, Value::Array(many));
    let error = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(refused, Err(PatchError::RequestEntityTooLarge(error.into())));
}

#[test]
fn a_patch_from_elsewhere_is_looked_at_first() {
    for (body, wanted) in [
        ("[]", Ok(0)),
        (r#"[{"op":"remove","path":"/a"}]"#, Ok(1)),
        ("{}", Err("json: cannot unmarshal object into Go value of type jsonpatch.Patch")),
        ("[1]", Err("json: cannot unmarshal number into Go value of type jsonpatch.Operation")),
        ("{[", Err("invalid character '[' looking for beginning of object key string")),
        (
            r#"[{"op":"frob","path":"/a"}]"#,
            Err(r#"invalid operation {"op":"frob","path":"/a"}: unsupported operation"#),
        ),
        (
            r#"[{"op":"copy"}]"#,
            Err(r#"invalid operation {"op":"copy"}: failed to decode 'from': missing value"#),
        ),
    ] {
        assert_eq!(check_json_patch(body.as_bytes()), wanted.map_err(BadJsonPatch::from), "{body}");
    }
}

#[test]
fn keyed_lists_merge_by_their_key_and_keep_the_order_of_the_patch() {
    let containers = |list: Value| json!({"spec": {"containers": list}});
    let live = containers(
        json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c", "image": "1"}]),
    );
    for (patch, result) in [
        (
            json!({"containers": [{"name": "b", "image": "2"}]}),
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "1"}]),
        ),
        (
            json!({"containers": [{"name": "d"}]}),
            json!([{"name": "d"}, {"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c", "image": "1"}]),
        ),
        (
            json!({"containers": [{"name": "b", "$patch": "delete"}]}),
            json!([{"name": "a", "image": "1"}, {"name": "c", "image": "1"}]),
        ),
        (json!({"containers": [{"$patch": "replace"}, {"name": "x"}]}), json!([{"name": "x"}])),
        (
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "a", "image": "2"}]}),
            json!([{"name": "b", "image": "1"}, {"name": "c", "image": "1"}, {"name": "a", "image": "2"}]),
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}),
            json!([{"name": "c", "image": "1"}, {"name": "b", "image": "1"}, {"name": "a", "image": "1"}]),
        ),
        (
            json!({"containers": [{"name": "a", "image": null}]}),
            json!([{"name": "a"}, {"name": "b", "image": "1"}, {"name": "c", "image": "1"}]),
        ),
    ] {
        assert_eq!(strategic(live.clone(), json!({"spec": patch})), containers(result), "{patch}");
    }
}

#[test]
fn primitive_lists_merge_as_sets() {
    let live = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    for (patch, result) in [
        (json!({"finalizers": ["c", "d"]}), json!(["a", "b", "c", "d"])),
        (json!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}), json!(["a", "c"])),
        (
            json!({"$setElementOrder/finalizers": ["d", "a"], "finalizers": ["d"]}),
            json!(["d", "a", "b", "c"]),
        ),
        (json!({"finalizers": null}), Value::Null),
    ] {
        let merged = strategic(live.clone(), json!({"metadata": patch}));
        assert_eq!(merged["metadata"].get("finalizers").cloned().unwrap_or_default(), result, "{patch}");
    }
}

#[test]
fn directives_of_objects() {
    let live = json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}], "securityContext": {"runAsUser": 1, "fsGroup": 2}, "tolerations": [{"key": "a"}]}});
    for (patch, result) in [
        (json!({"securityContext": {"$patch": "replace", "runAsUser": 3}}), json!({"runAsUser": 3})),
        (json!({"securityContext": {"$patch": "delete"}}), json!({})),
        (json!({"securityContext": {"$retainKeys": ["fsGroup"]}}), json!({"fsGroup": 2})),
        (json!({"securityContext": {"runAsUser": null}}), json!({"fsGroup": 2})),
    ] {
        assert_eq!(
            strategic(live.clone(), json!({"spec": patch}))["spec"]["securityContext"],
            result,
            "{patch}"
        );
    }
    let volume = json!({"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]});
    let merged = strategic(live.clone(), json!({"spec": volume}));
    assert_eq!(merged["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    let merged = strategic(live, json!({"spec": {"tolerations": [{"key": "b"}]}}));
    assert_eq!(merged["spec"]["tolerations"], json!([{"key": "b"}]));
}

#[test]
fn what_upstream_refuses_is_refused_in_its_words() {
    let live = json!({"metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "a"}], "securityContext": {"fsGroup": 1}}});
    for (patch, error) in [
        (json!({"spec": {"containers": [{"image": "x"}]}}), PatchError::Internal("map: map[image:x] does not contain declared merge key: name".into())),
        (json!({"spec": {"securityContext": {"$patch": "nothing"}}}), PatchError::Internal("unknown patch type: nothing in map: map[$patch:nothing]".into())),
        (json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}), PatchError::Internal("merging lists cannot yet be specified in the patch".into())),
        (json!({"spec": {"securityContext": {"$retainKeys": ["a"], "fsGroup": 2}}}), PatchError::BadRequest("invalid patch format of retainKeys".into())),
        (json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}}), PatchError::BadRequest("invalid patch format of primitive list".into())),
        (json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}), PatchError::Internal("The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n".into())),
    ] {
        assert_eq!(patched(PatchType::StrategicMerge, live.clone(), patch.clone()), Err(error), "{patch}");
    }
}

/// CVE-2019-1002100: each copy doubles what it copies.
#[test]
fn copies_of_a_json_patch_are_counted() {
    let add = json!({"op": "add", "path": "/metadata/annotations", "value": {"a": "x".repeat(1000)}});
    let copies = (0..34).map(|at| {
        let path = format!("/metadata/annotations/m{at}");
        json!({"op": "copy", "from": "/metadata/annotations", "path": path})
    });
    let patch: Vec<Value> = [add].into_iter().chain(copies).collect();
    let refused = patched(PatchType::Json, json!({"metadata": {}}), patch.into()).unwrap_err();
    let PatchError::Unprocessable(why) = refused else { panic!("{refused:?}") };
    let words = "Unable to complete the copy, the accumulated size increase of copy is ";
    assert!(why.starts_with(words) && why.ends_with(", exceeding the limit 3145728"), "{why}");
    let long = json!({"a": "x".repeat(900_000), "list": []});
    let copy = json!({"op": "copy", "from": "/a", "path": "/list/-"});
    let copied = |times: usize| patched(PatchType::Json, long.clone(), vec![copy.clone(); times].into());
    assert_eq!(copied(3).unwrap()["list"].as_array().unwrap().len(), 3);
    assert!(matches!(copied(9_000), Err(PatchError::Unprocessable(_))));
}

#[test]
fn moves_nest_no_deeper_than_a_stack_is() {
    let nest = |levels: usize| -> Value {
        let level = |at: usize| {
            let (inner, outer) = (format!("/{at}"), format!("/{}", at + 1));
            [
                json!({"op": "add", "path": outer, "value": {}}),
                json!({"op": "move", "from": inner, "path": format!("{outer}{inner}")}),
            ]
        };
        (0..levels).flat_map(level).collect()
    };
    let nested = patched(PatchType::Json, json!({"0": {}}), nest(200)).unwrap();
    assert_eq!(nested.pointer("/200/199/198/197").map(Value::is_object), Some(true));
    let refused = patched(PatchType::Json, json!({"0": {}}), nest(5_000)).unwrap_err();
    assert_eq!(refused, PatchError::Unprocessable("exceeded max depth".into()));
    let back_and_forth = |at: usize| match at % 2 {
        0 => json!({"op": "move", "from": "/a", "path": "/b"}),
        _ => json!({"op": "move", "from": "/b", "path": "/a"}),
    };
    let many: Vec<Value> = (0..2_000).map(back_and_forth).collect();
    assert!(patched(PatchType::Json, json!({"a": {"c": 1}}), many.into()).is_ok());
}
