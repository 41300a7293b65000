//! The stages that kwok publishes, and what its own tests say of them (`kustomize/stage`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cel_functions::CelHost;
use crate::changes;
use crate::choose;
use crate::manifest::ResourceRef;
use crate::stage::{ObjectStage, ObjectStep, StageChange};
use crate::surroundings::node_conditions;
use crate::template::TemplateHost;
use apimachinery::options::PatchType;
use apimachinery::time;
use apimachinery::yaml;
use entropy::Entropy;

/// Says what it was asked.
struct ToldHost;

impl TemplateHost for ToldHost {
    fn call(&self, function: &str, arguments: &[Value]) -> Option<Value> {
        let shown: Vec<String> = arguments.iter().map(Value::to_string).collect();
        let asked =
            if shown.is_empty() { function.to_owned() } else { format!("{function}({})", shown.join(", ")) };
        Some(match function {
            "NodeIPsWith" | "PodIPsWith" => json!([format!("<0 of {asked}>"), format!("<1 of {asked}>")]),
            "NodeConditions" => node_conditions(),
            "NodeIP" | "NodeName" | "NodePort" | "NodeIPWith" | "PodIPWith" | "Now" | "Version" => {
                format!("<{asked}>").into()
            }
            _ => return None,
        })
    }
}

fn files(folder: &Path, ends: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ends));
        } else if path.to_str().is_some_and(|path| path.ends_with(ends)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> Vec<Value> {
    yaml::documents(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|why| panic!("{path:?}: {why}"))
}

fn published() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/kwok")
}

/// The stages beside a folder of test data, for one kind.
fn stages_beside(input: &Path, resource: &ResourceRef) -> Vec<Arc<ObjectStage>> {
    let folder = input.parent().and_then(Path::parent).unwrap();
    let all = files(folder, ".yaml").into_iter().filter(|path| path.parent() == Some(folder));
    let manifests = all.flat_map(|path| read(&path)).filter(|manifest| manifest["kind"] == "Stage");
    let stage = |manifest: Value| {
        let name = manifest["metadata"]["name"].as_str().unwrap();
        ObjectStage::read(name, &manifest["spec"]).unwrap_or_else(|why| panic!("{name}: {why}")).unwrap()
    };
    manifests.map(stage).filter(|stage| stage.resource == *resource).map(Arc::new).collect()
}

fn host() -> CelHost {
    CelHost { now: time::parse("2006-01-02T15:04:05Z").unwrap(), entropy: Entropy::seeded(1) }
}

/// As kwok's tests write it.
fn shown(stage: &ObjectStage, tree: &Value) -> Value {
    let mut out = json!({"stage": stage.name, "weight": stage.weight(tree, &host()).unwrap()});
    if let Some((least, most)) = stage.delays(tree, &host()).unwrap() {
        let nanoseconds = |time: std::time::Duration| Value::from(time.as_nanos() as u64);
        out["delay"] = if least == most {
            json!([nanoseconds(least)])
        } else {
            json!([nanoseconds(least), nanoseconds(most)])
        };
    }
    let mut next: Vec<Value> = stage.steps.iter().map(|step| shown_step(step, tree)).collect();
    if stage.is_immediate {
        next.push(json!({"kind": "immediate"}));
    }
    out["next"] = next.into();
    out
}

fn shown_step(step: &ObjectStep, tree: &Value) -> Value {
    match step {
        ObjectStep::Event(event) => json!({
            "kind": "event", "type": event.event_type, "reason": event.reason, "message": event.message,
        }),
        ObjectStep::Finalizers(wanted) => json!({"kind": "patch", "data": changes::finalizers(&[], wanted)}),
        ObjectStep::Delete => json!({"kind": "delete"}),
        ObjectStep::Patch(change) => shown_change("patch", change, PatchType::Merge, tree),
        ObjectStep::Apply(change) => shown_change("apply", change, PatchType::Apply, tree),
    }
}

fn shown_change(kind: &str, change: &StageChange, usual: PatchType, tree: &Value) -> Value {
    let body = change.body(tree, &ToldHost).unwrap();
    let media_type = change.patch_type.unwrap_or(usual).media_type();
    let mut out = json!({"kind": kind, "type": media_type, "data": body});
    if !change.subresource.is_empty() {
        out["subresource"] = change.subresource.as_str().into();
    }
    out
}

#[test]
fn published_stages_do_what_kwok_says_of_them() {
    let inputs = files(&published(), ".input.yaml");
    assert!(inputs.len() >= 16, "{inputs:?}");
    for input in inputs {
        let tree = read(&input).remove(0);
        let wanted = input.to_str().unwrap().replace(".input.", ".output.");
        let wanted = read(Path::new(&wanted)).remove(0);
        let text = |field: &str| wanted[field].as_str().unwrap().to_owned();
        let resource = ResourceRef { api_group: text("apiGroup"), kind: text("kind") };
        let stages = stages_beside(&input, &resource);
        let chances = choose::chances(&stages, &tree, &host()).unwrap();
        let found: Value = chances.iter().map(|(stage, _)| shown(stage, &tree)).collect();
        assert_eq!(found, wanted["stages"], "{input:?}");
    }
}

#[test]
fn every_published_stage_is_understood() {
    let manifests = files(&published(), ".yaml").into_iter().flat_map(|path| read(&path));
    let stages = manifests.filter(|manifest| manifest["kind"] == "Stage");
    let mut names: Vec<String> = Vec::new();
    for manifest in stages {
        let name = manifest["metadata"]["name"].as_str().unwrap();
        assert!(ObjectStage::read(name, &manifest["spec"]).unwrap().is_some(), "{name}");
        names.push(name.to_owned());
    }
    for name in
        ["pod-ready", "pod-create", "pod-container-running-failed", "node-initialize", "node-heartbeat"]
    {
        assert!(names.iter().any(|there| there == name), "{name}: {names:?}");
    }
}

#[test]
fn weights_decide_and_so_do_annotations() {
    let stage = |name: &str, weight: Value, from: Value| {
        let spec = json!({
            "resourceRef": {"kind": "Pod"}, "selector": {}, "weight": weight, "weightFrom": from,
            "delay": {"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": ".metadata.annotations.delay"},
                "jitterDurationFrom": {"cel": {"expression": "self.metadata.annotations.jitter"}}},
        });
        Arc::new(ObjectStage::read(name, &spec).unwrap().unwrap())
    };
    let from = json!({"expressionFrom": ".metadata.annotations.weight"});
    let stages = [
        stage("rare", json!(1), Value::Null),
        stage("often", json!(0), from),
        stage("never", json!(0), Value::Null),
    ];
    let annotated = |weight: &str| json!({"metadata": {"annotations": {"weight": weight, "delay": "3s", "jitter": "2s"}}});
    let names = |tree: &Value| -> Vec<(String, u64)> {
        let chances = choose::chances(&stages, tree, &host()).unwrap();
        chances.iter().map(|(stage, chance)| (stage.name.clone(), *chance)).collect()
    };
    assert_eq!(names(&annotated("9")), [("rare".into(), 1), ("often".into(), 9)]);
    assert_eq!(names(&annotated("0")), [("rare".into(), 1)]);
    let chances = choose::chances(&stages, &annotated("9"), &host()).unwrap();
    let host = host();
    let drawn = (0..200).filter(|_| choose::draw(&chances, &host).unwrap().name == "rare").count();
    assert!((5..60).contains(&drawn), "{drawn}");
    // A jitter below the delay is the delay.
    let delays = stages[0].delays(&annotated("1"), &host).unwrap().unwrap();
    assert_eq!((delays.0.as_secs(), delays.1.as_secs()), (2, 2));
}

#[test]
fn what_is_wrong_with_a_stage_is_said() {
    let cases = [
        (json!({"selector": {}}), "resourceRef.kind: Required value"),
        (
            json!({"resourceRef": {"kind": "Pod"}, "selector": {"matchExpressions": [{"key": ".a["}]}}),
            "selector.matchExpressions[0].key: the query ends too early",
        ),
        (
            json!({"resourceRef": {"kind": "Pod"}, "selector": {"matchExpressions": [{"key": ".a", "operator": "In"}]}}),
            "values set can't be empty",
        ),
        (
            json!({"resourceRef": {"kind": "Pod"}, "selector": {"matchExpressions": [{"cel": {"expression": "me.a"}}]}}),
            "undeclared reference to 'me'",
        ),
        (
            json!({"resourceRef": {"kind": "Pod"}, "selector": {}, "next": {"statusTemplate": "{{ if }}"}}),
            "steps[0].patch.template: missing value for command",
        ),
        (
            json!({"resourceRef": {"kind": "Pod"}, "selector": {}, "steps": [{"patch": {"type": "odd"}}]}),
            "\"odd\" must be one of json, merge, strategic",
        ),
        (
            json!({"resourceRef": {"kind": "Pod"}, "selector": {}, "steps": vec![json!({"delete": true}); 65]}),
            "steps: more than 64",
        ),
        (
            json!({"resourceRef": {"kind": "Pod"}, "selector": {}, "weightFrom": {"expressionFrom": ".a as"}}),
            "weightFrom.expressionFrom",
        ),
    ];
    for (spec, said) in cases {
        let why = ObjectStage::read("x", &spec).unwrap_err().to_string();
        assert!(why.contains(said), "{spec}: {why}");
    }
    assert!(ObjectStage::read("x", &json!({"resourceRef": {"kind": "Pod"}})).unwrap().is_none());
}
