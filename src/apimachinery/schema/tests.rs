//! The overlay against what Kubernetes publishes, and defaulting and completion by it.

use serde_json::{Value, json};

use super::*;

fn schema(name: &str) -> std::sync::Arc<Schema> {
    Schemas::builtin().get(name).unwrap_or_else(|| panic!("{name} is published"))
}

fn field<'a>(schema: &'a Schema, path: &str) -> &'a Schema {
    path.split('.').fold(schema, |schema, name| {
        let schema = schema.items().unwrap_or(schema);
        schema.property(name).unwrap_or_else(|| panic!("{path}: no {name}"))
    })
}

#[test]
fn every_definition_can_be_read_and_published() {
    let schemas = Schemas::builtin();
    assert!(schemas.names().count() >= 768);
    for name in schemas.names() {
        assert!(schemas.get(name).is_some(), "{name}");
        let published = schemas.published(name).expect(name);
        assert!(!published.to_string().contains("x-kubarium"), "{name}");
    }
    assert!(schemas.get("io.k8s.api.core.v1.Nothing").is_none());
}

/// Samples of `api/openapi-spec`: definition, field, list type, list map keys, patch strategy, patch merge
/// key.
const PUBLISHED_MERGES: &str = include_str!("testdata/published_merges.txt");

#[test]
fn lists_and_maps_merge_as_kubernetes_publishes() {
    let published = |name: &str, field: &str| {
        let definition = Schemas::builtin().published(name).unwrap_or_else(|| panic!("{name}"));
        if field == "-" { definition } else { definition["properties"][field].clone() }
    };
    for line in PUBLISHED_MERGES.lines() {
        let columns: Vec<&str> = line.split(' ').collect();
        let [name, field, list_type, map_keys, strategy, merge_key] = columns[..] else { panic!("{line}") };
        let place = published(name, field);
        let fact = |name: &str| match place.get(format!("x-kubernetes-{name}")) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            _ => "-".into(),
        };
        let facts = ["list-type", "list-map-keys", "patch-strategy", "patch-merge-key"].map(fact);
        assert_eq!(facts, [list_type, map_keys, strategy, merge_key], "{line}");
    }
    let selector = published("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", "-");
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    assert_eq!(published("io.k8s.api.core.v1.ServiceSpec", "selector")["x-kubernetes-map-type"], "atomic");
    let kinds = published("io.k8s.api.apps.v1.Deployment", "-")["x-kubernetes-group-version-kind"].take();
    assert_eq!(kinds, json!([{"group": "apps", "kind": "Deployment", "version": "v1"}]));
    let policy = published("io.k8s.api.core.v1.PodSpec", "restartPolicy");
    assert_eq!(policy["enum"], json!(["Always", "Never", "OnFailure"]));
}

#[test]
fn a_field_s_facts_and_those_of_its_type_are_both_found() {
    let deployment = schema("io.k8s.api.apps.v1.Deployment");
    let containers = field(&deployment, "spec.template.spec.containers");
    assert_eq!(containers.list_type(), Some(ListType::Map));
    assert_eq!(containers.facts().list_map_keys, ["name".into()]);
    assert!(containers.has_patch_strategy("merge") && !containers.has_patch_strategy("retainKeys"));
    assert_eq!(field(&deployment, "spec.selector").map_type(), Some(MapType::Atomic));
    assert_eq!(field(&deployment, "spec.replicas").go_type(), "int32");
    assert_eq!(containers.go_type(), "[]v1.Container");
    assert_eq!(field(&deployment, "spec").go_struct(), "DeploymentSpec");
    assert_eq!(
        field(&deployment, "spec.template.spec.containers.resources.limits").go_type(),
        "v1.ResourceList"
    );
}

#[test]
fn defaults_fill_what_is_absent_and_nothing_else() {
    let mut pod = json!({"spec": {"containers": [{"ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}]}});
    apply_defaults(&schema("io.k8s.api.core.v1.Pod"), &mut pod);
    let ports = json!([{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]);
    assert_eq!(pod, json!({"spec": {"containers": [{"ports": ports}]}}));

    let custom = Schema::from_openapi(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "default": "y"}},
        "none": {"type": "object", "default": {}, "properties": {"deep": {"type": "boolean", "default": true}}},
        "nullable": {"type": "string", "nullable": true, "default": "z"},
    }}));
    let mut object =
        json!({"spec": {"size": null}, "list": [{}, {"a": "b"}], "map": {"k": null}, "nullable": null});
    apply_defaults(&custom, &mut object);
    assert_eq!(
        object,
        json!({
            "spec": {"size": 1}, "list": [{"a": "x"}, {"a": "b"}], "map": {"k": "y"}, "none": {"deep": true}, "nullable": null,
        })
    );
}

#[test]
fn completion_writes_what_go_never_omits() {
    let mut deployment =
        json!({"metadata": {}, "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
    complete(&schema("io.k8s.api.apps.v1.Deployment"), &mut deployment);
    assert_eq!(
        deployment,
        json!({
            "metadata": {},
            "spec": {
                "selector": null, "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}},
            },
            "status": {},
        })
    );
    let mut service = json!({"metadata": {}, "spec": {"ports": [{"port": 80}]}});
    complete(&schema("io.k8s.api.core.v1.Service"), &mut service);
    assert_eq!(
        service,
        json!({"metadata": {}, "spec": {"ports": [{"port": 80, "targetPort": 0}]}, "status": {"loadBalancer": {}}})
    );
    let mut condition = json!({"type": "Ready", "status": "True"});
    complete(&schema("io.k8s.api.core.v1.PodCondition"), &mut condition);
    assert_eq!(
        condition,
        json!({"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null})
    );
}
