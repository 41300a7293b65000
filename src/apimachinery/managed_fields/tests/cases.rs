//! The cases of `merge.yaml`.

use serde_json::Value;

use super::State;
use crate::managed_fields::decode;
use crate::schema::Schema;

#[test]
fn ownership_moves_as_upstream_says() {
    let file: Value = serde_yaml::from_str(include_str!("merge.yaml")).unwrap();
    let schema = Schema::from_openapi(&file["schema"]);
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut state = State::new(&schema);
        for operation in case["ops"].as_array().unwrap() {
            run(&mut state, operation, name);
        }
        assert_eq!(state.object, case["object"], "{name}");
        let Some(managed) = case["managed"].as_object() else { continue };
        assert_eq!(state.managed.0.len(), managed.len(), "{name}: {:?}", state.managed);
        for (manager, fields) in managed {
            let mut expected: Vec<String> = serde_json::from_value(fields.clone()).unwrap();
            expected[1..].sort();
            assert_eq!(state.fields_of(manager), expected, "{name}: {manager}");
        }
    }
}

fn run(state: &mut State, operation: &Value, name: &str) {
    let text = |at: usize| operation[at].as_str().unwrap();
    let (verb, manager, version, object) = (text(0), text(1), text(2), &operation[3]);
    match verb {
        "update" => state.update(manager, version, object),
        "conflict" => {
            let conflicts = state.apply(manager, version, object, false).unwrap_err();
            assert_eq!(conflicts, [text(4)], "{name}");
        }
        verb => {
            let applied = state.apply(manager, version, object, verb == "force");
            assert_eq!(applied, Ok(()), "{name}: {operation}");
        }
    }
    // What is stored reads as what was written.
    let entries = state.managed.clone().encode();
    for entry in entries.iter().flat_map(|entries| entries.as_array().unwrap()) {
        let text = entry["fieldsV1"].as_str().unwrap();
        assert_eq!(crate::managed_fields::encode(&decode(text).unwrap()), text, "{name}");
    }
}
