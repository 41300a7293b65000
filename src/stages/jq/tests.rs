//! What queries find, and what is no query.

use serde_json::json;

use super::*;

#[test]
fn queries_find_what_jq_finds() {
    let tree = json!({
        "metadata": {"labels": {"a.b/c": "true"}, "ownerReferences": [{"kind": "Job"}, {"kind": "X"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}, {"type": "B"}]},
        "n": 3,
    });
    let cases = [
        (".status.phase", json!(["Running"])),
        (".metadata.deletionTimestamp", json!([])),
        (".metadata.labels[\"a.b/c\"]", json!(["true"])),
        (".metadata.labels.\"a.b/c\"", json!(["true"])),
        (".metadata.ownerReferences.[].kind", json!(["Job", "X"])),
        (".metadata.ownerReferences[-1].kind", json!(["X"])),
        (".metadata.ownerReferences[:1][0].kind", json!(["Job"])),
        (".status.conditions.[] | select( .type == \"Ready\" ) | .status", json!(["False"])),
        (".status.conditions[] | select(.type != \"Ready\") | .type", json!(["B"])),
        (".status.conditions[] | select(.type == \"B\" and (.status | not)) | .type", json!(["B"])),
        (".status.conditions[] | select(.status) | .type", json!(["Ready"])),
        (".status.nothing.deep.[]", json!([])),
        (".status.nothing[]?", json!([])),
        (".status.podIP // \"none\"", json!(["none"])),
        (".status.phase, .n", json!(["Running", 3])),
        (".n + 1 > 3", json!([true])),
        ("-.n * 2 - 1", json!([-7])),
        ("if .n == 3 then \"three\" else \"more\" end", json!(["three"])),
        (".metadata.ownerReferences | map(.kind) | join(\"-\")", json!(["Job-X"])),
        (".metadata.ownerReferences | length", json!([2])),
        (".metadata.ownerReferences | any(.kind == \"X\")", json!([true])),
        (".status.phase | startswith(\"Run\")", json!([true])),
        (".status.phase | test(\"^r\")", json!([false])),
        (".metadata | has(\"labels\")", json!([true])),
        ("[.. | .kind? // empty] | length", json!([2])),
        ("{n, double: (.n * 2)}", json!([{"n": 3, "double": 6}])),
        // An error, however late, leaves nothing of the query.
        (".status.phase, .status.phase.deep", json!([])),
    ];
    for (query, expected) in cases {
        assert_eq!(json!(JqQuery::parse(query).unwrap().run(&tree)), expected, "{query}");
    }
}

#[test]
fn what_is_not_understood_is_said() {
    let deep = format!("{}.a{}", "(".repeat(40), ")".repeat(40));
    let long = ".a".repeat(3000);
    let cases = [
        ("status", "function not defined: status/0"),
        (".a[", "ends too early"),
        (".a | nonsense(.b)", "function not defined: nonsense/1"),
        (".a | select .b", "function not defined: select/0"),
        (".a | select(.b == c)", "function not defined: c/0"),
        (".a[\"b]", "has no end"),
        (".a as $x", "is not understood"),
        (".a = 1", "is not understood"),
        (&deep, "more than 32 deep"),
        (&long, "longer than 4096 bytes"),
    ];
    for (query, said) in cases {
        let error = JqQuery::parse(query).unwrap_err().to_string();
        assert!(error.contains(said), "{query}: {error}");
    }
}

#[test]
fn a_query_that_finds_too_much_finds_nothing() {
    let tree = json!(vec![0; 200]);
    assert_eq!(JqQuery::parse("[.[] + .[]] | length").unwrap().run(&tree), Vec::<Value>::new());
    assert_eq!(JqQuery::parse(".[] | 1").unwrap().run(&tree).len(), 200);
}
