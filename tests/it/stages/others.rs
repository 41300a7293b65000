//! Stages of any other kind, stages that change, that are wrong, and that never end.

use kubarium::kinds::{CONFIG_MAPS, SECRETS};
use kubarium::{Config, DeleteOptions, PatchType};
use serde_json::json;

use super::Stages;

#[tokio::test]
async fn a_stage_patches_applies_tells_and_deletes() {
    let stages = Stages::start().await;
    let steps = json!([
        {"event": {"type": "Normal", "reason": "Touched", "message": "it was"}},
        {"finalizers": {"add": [{"value": "kwok.x-k8s.io/kept"}]}},
        {"patch": {"root": "data", "template": "name: {{ .metadata.name | Quote }}\nat: {{ Now | Quote }}"}},
        {"patch": {"type": "json", "root": "metadata", "template":
            "- {op: add, path: /annotations, value: {kind: {{ .kind }}}}"}},
        {"apply": {"template": "apiVersion: v1\nkind: Secret\nmetadata: {name: of-{{ .metadata.name }}}\n\
            stringData: {uid: {{ .metadata.uid }}}"}},
    ]);
    let without = json!([{"key": ".data.name", "operator": "DoesNotExist"}]);
    stages
        .stage_of_config_maps("once", json!({"selector": {"matchExpressions": without}, "steps": steps}))
        .await;
    stages.create_config_map("a", "once").await;
    let made = stages.config_map("a").await;
    assert_eq!(made["data"], json!({"name": "a", "at": "2030-01-01T00:00:00.000000Z"}));
    assert_eq!(made["metadata"]["annotations"], json!({"kind": "ConfigMap"}));
    assert_eq!(made["metadata"]["finalizers"], json!(["kwok.x-k8s.io/kept"]));
    assert!(
        made["metadata"]["managedFields"].as_array().unwrap().iter().any(|entry| entry["manager"] == "kwok")
    );
    assert_eq!(stages.told("a", "Touched").await, ["it was"]);
    assert!(stages.client.get(&SECRETS, "default", "of-a").await.is_ok());

    // CEL, and a stage that came later, about an object that did not change since.
    let gone = json!([{"cel": {"expression": "has(self.metadata.finalizers) && self.data.name == 'a'"}}]);
    let end = json!([{"finalizers": {"empty": true}}, {"delete": true}]);
    let more = json!({"matchLabels": {"stage": "once"}, "matchExpressions": gone});
    stages.stage_of_config_maps("ends", json!({"selector": more, "steps": end})).await;
    assert!(stages.client.get(&CONFIG_MAPS, "default", "a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn stages_change_while_they_are_played() {
    let stages = Stages::start().await;
    let template = |value: &str| json!({"patch": {"root": "data", "template": format!("said: {value}")}});
    let spec = json!({"delay": {"durationMilliseconds": 60000}, "steps": [template("one")]});
    stages.stage_of_config_maps("slow", spec).await;
    stages.create_config_map("a", "slow").await;
    stages.pass(50).await;
    assert_eq!(stages.config_map("a").await["data"], json!(null));
    let faster = json!({"spec": {"delay": {"durationMilliseconds": 5000}, "steps": [template("two")]}});
    stages.client.patch(&stages.kind(), "", "slow", PatchType::Merge, &faster).await.unwrap();
    stages.pass(6).await;
    assert_eq!(stages.config_map("a").await["data"]["said"], "two");
    stages.client.delete(&stages.kind(), "", "slow", &DeleteOptions::default()).await.unwrap();
    stages.settle().await;
    stages.create_config_map("b", "slow").await;
    stages.pass(60).await;
    assert_eq!(stages.config_map("b").await["data"], json!(null));
}

#[tokio::test]
async fn a_stage_that_matches_what_it_makes_is_bounded_and_told() {
    let stages = Stages::start().await;
    let counts = "data:\n  count: {{ add 1 (int (default 0 (index (default dict .data) \"count\"))) | toString | Quote }}";
    stages.stage_of_config_maps("for-ever", json!({"steps": [{"patch": {"template": counts}}]})).await;
    // The cluster settles, though its time stands.
    stages.create_config_map("a", "for-ever").await;
    assert_eq!(stages.config_map("a").await["data"]["count"], "64");
    let told = stages.told("a", "StageLoops").await;
    assert!(matches!(&told[..], [one] if one.contains("played 64 times")), "{told:?}");
    stages.pass(11).await;
    assert_eq!(stages.config_map("a").await["data"]["count"], "128");
}

#[tokio::test]
async fn what_is_wrong_with_a_stage_or_comes_of_it_is_told() {
    let stages = Stages::start().await;
    let bad = json!({"next": {"statusTemplate": "{{ nonsense }}"}, "selector": {"matchExpressions": [
        {"key": ".a[", "operator": "Exists"}]}});
    stages.stage_of_config_maps("bad", bad).await;
    let told = stages.told("bad", "InvalidStage").await;
    assert!(told[0].contains("spec.steps[0]") || told[0].contains("matchExpressions[0]"), "{told:?}");
    let fails = json!({"steps": [{"patch": {"template": "{{ fail \"no\" }}"}}]});
    stages.stage_of_config_maps("fails", fails).await;
    stages.create_config_map("a", "fails").await;
    assert_eq!(stages.told("a", "StageFailed").await, ["Stage fails, step 0: template: no"]);
    // Whoever is impersonated may no more than they may.
    let other = json!({"steps": [{"patch": {"root": "data", "template": "a: b", "impersonation": {"username": "jane"}}}]});
    stages.stage_of_config_maps("as-jane", other).await;
    stages.create_config_map("b", "as-jane").await;
    let told = stages.told("b", "StageFailed").await;
    assert!(told[0].contains("User \"jane\" cannot patch resource \"configmaps\""), "{told:?}");
}

#[tokio::test]
async fn the_folder_of_stages_takes_those_of_kwok_and_our_own() {
    let folder = tempfile::tempdir().unwrap();
    let ours = "apiVersion: kubarium.dev/v1alpha1\nkind: Stage\nmetadata: {name: ours}\n\
                spec: {step: Run, priority: 50, selector: {images: [nginx]}, next: {exit: {code: 7}}}\n";
    let kwoks = "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: kwoks}\n\
                 spec: {resourceRef: {kind: ConfigMap}, selector: {matchLabels: {stage: a}}, next: {delete: true}}\n";
    std::fs::write(folder.path().join("all.yaml"), format!("{ours}---\n{kwoks}")).unwrap();
    let stages = Stages::with(Config::new().stages(folder.path())).await;
    stages.create_config_map("a", "a").await;
    assert!(stages.client.get(&CONFIG_MAPS, "default", "a").await.unwrap_err().is_not_found());
    stages.create_pod("web", json!({"spec": {"restartPolicy": "Never"}})).await;
    assert_eq!(stages.pod("web").await.unwrap()["status"]["phase"], "Failed");
}

#[tokio::test]
async fn without_the_kind_there_is_nothing_of_it() {
    let stages = Stages::with(Config::new()).await;
    assert!(stages.cluster.scheme().resource("kwok.x-k8s.io", "v1alpha1", "stages").is_none());
}
