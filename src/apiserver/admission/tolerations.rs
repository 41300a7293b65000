//! Sets of tolerations, for plugins that add some (`pkg/util/tolerations`).

use serde_json::Value;

use apis::tree::text;

/// Both lists as one, without those that others cover; of two that cover each other the first stays.
pub(super) fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<&Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let covered = |other: &&&Value| covers(other, toleration);
        let later = all[at + 1..].iter().filter(|other| !same(other, toleration));
        if !merged.iter().any(|other| covered(&other)) && !later.into_iter().any(|other| covered(&other)) {
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().collect()
}

/// Whether each is covered by one of the list (`VerifyAgainstWhitelist`). An empty list covers all.
pub(super) fn all_covered(tolerations: &[Value], list: &[Value]) -> bool {
    let covered = |toleration: &Value| list.iter().any(|allowed| covers(allowed, toleration));
    list.is_empty() || tolerations.iter().all(covered)
}

fn operator(toleration: &Value) -> &str {
    match text(toleration, "operator") {
        "" => "Equal",
        operator => operator,
    }
}

fn same(left: &Value, right: &Value) -> bool {
    let fields = ["key", "value", "effect"];
    fields.iter().all(|field| text(left, field) == text(right, field))
        && operator(left) == operator(right)
        && left["tolerationSeconds"] == right["tolerationSeconds"]
}

/// `isSuperset`
fn covers(wide: &Value, narrow: &Value) -> bool {
    if same(wide, narrow) {
        return true;
    }
    let (key, effect) = (text(wide, "key"), text(wide, "effect"));
    if key != text(narrow, "key") && (!key.is_empty() || operator(wide) != "Exists") {
        return false;
    }
    if effect != text(narrow, "effect") && !effect.is_empty() {
        return false;
    }
    if let Some(seconds) = wide["tolerationSeconds"].as_i64().filter(|_| effect == "NoExecute")
        && narrow["tolerationSeconds"].as_i64().is_none_or(|narrow| narrow > seconds)
    {
        return false;
    }
    match operator(wide) {
        "Exists" => true,
        "Equal" => operator(narrow) == "Equal" && text(narrow, "value") == text(wide, "value"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_others_cover_is_left_out() {
        let all = json!({"operator": "Exists"});
        let key = json!({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"});
        let any = json!({"key": "k", "operator": "Exists"});
        let other = json!({"key": "o", "operator": "Exists"});
        for (first, second, merged) in [
            (vec![key.clone()], vec![other.clone()], vec![key.clone(), other.clone()]),
            (vec![key.clone()], vec![any.clone()], vec![any.clone()]),
            (vec![any.clone()], vec![key.clone()], vec![any.clone()]),
            (vec![key.clone(), other.clone()], vec![all.clone()], vec![all.clone()]),
            (vec![key.clone()], vec![key.clone()], vec![key.clone()]),
        ] {
            assert_eq!(merge(&first, &second), merged);
        }
        use std::slice::from_ref;
        assert!(all_covered(from_ref(&key), from_ref(&any)) && !all_covered(&[other], &[any]));
        assert!(all_covered(&[key], &[]));
    }
}
