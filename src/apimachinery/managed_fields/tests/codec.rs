//! FieldsV1: what is read and written, and in which order.

use serde_json::json;

use crate::managed_fields::{Set, decode, encode, expand, print_path, read_tree, write_entries};

#[test]
fn sets_are_read_and_written_as_upstream_writes_them() {
    let texts = [
        r#"{}"#,
        r#"{"f:a":{}}"#,
        r#"{"f:a":{".":{},"f:b":{}}}"#,
        r#"{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}}}}"#,
        r#"{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{}}}"#,
        r#"{"f:list":{"v:1":{},"v:2":{},"v:10":{},"v:\"a\"":{},"v:true":{}}}"#,
        r#"{"f:metadata":{"f:annotations":{".":{},"f:a.b/c":{},"f:with\"quote":{}}}}"#,
        r#"{"f:a":{},"k:{\"n\":1}":{},"v:1":{},"i:0":{}}"#,
    ];
    for text in texts {
        let set = decode(text).unwrap();
        if text == "{}" {
            assert_eq!(set, Set::default());
        }
        assert_eq!(encode(&set), text);
    }
}

#[test]
fn the_order_of_a_text_does_not_matter_and_what_is_not_known_is_dropped() {
    let set = decode(r#"{"f:b":{},"f:a":{"f:z":{},".":{}},"x:new":{"f:a":{}}}"#).unwrap();
    assert_eq!(encode(&set), r#"{"f:a":{".":{},"f:z":{}},"f:b":{}}"#);
    for broken in ["", "[]", "{\"f:a\":1}", "{\"k:x\":{}}", "{\"plain\":{}}", "{\"f:a\":{}", "{\"k:[]\":{}}"]
    {
        assert!(decode(broken).is_err(), "{broken}");
    }
}

#[test]
fn paths_are_printed_as_conflicts_show_them() {
    let set =
        decode(r#"{"f:a":{"k:{\"n\":\"x\",\"p\":80}":{"f:b":{}}},"f:l":{"v:\"y\"":{}},"i:3":{}}"#).unwrap();
    let printed: Vec<String> = set.paths().iter().map(|path| print_path(path)).collect();
    assert_eq!(printed, ["[3]", r#".a[n="x",p=80].b"#, r#".l[="y"]"#]);
}

#[test]
fn a_tree_has_sets_as_texts_and_bytes_have_them_as_json() {
    let bytes = br#"{"metadata":{"managedFields":[{"fieldsV1":{"f:a": {}},"manager":"m"},7],"name":"x"},"spec":{"fieldsV1":{"f:a":{}}}}"#;
    let mut tree = read_tree(bytes).unwrap();
    let entries = json!([{"fieldsV1": "{\"f:a\": {}}", "manager": "m"}, 7]);
    assert_eq!(tree["metadata"]["managedFields"], entries);
    assert_eq!(tree["spec"]["fieldsV1"], json!({"f:a": {}}));
    let mut out = Vec::new();
    write_entries(&mut out, &entries).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r#"[{"fieldsV1":{"f:a": {}},"manager":"m"},7]"#);
    expand(&mut tree);
    assert_eq!(tree["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:a": {}}));
}
