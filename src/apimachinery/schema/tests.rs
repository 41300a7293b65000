//! The overlay against what Kubernetes publishes, and defaulting and completion by it.

use serde_json::json;

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

#[test]
fn lists_and_maps_merge_as_kubernetes_publishes() {
    let published = |name: &str, field: &str, fact: &str| {
        let definition = Schemas::builtin().published(name).unwrap_or_else(|| panic!("{name}"));
        let place = if field.is_empty() { &definition } else { &definition["properties"][field] };
        place.get(format!("x-kubernetes-{fact}")).cloned()
    };
    for (name, field, list_type, map_keys, strategy, merge_key) in [
        ("core.v1.PodSpec", "containers", Some("map"), Some(json!(["name"])), Some("merge"), Some("name")),
        (
            "core.v1.PodSpec",
            "initContainers",
            Some("map"),
            Some(json!(["name"])),
            Some("merge"),
            Some("name"),
        ),
        (
            "core.v1.PodSpec",
            "volumes",
            Some("map"),
            Some(json!(["name"])),
            Some("merge,retainKeys"),
            Some("name"),
        ),
        ("core.v1.PodSpec", "tolerations", Some("atomic"), None, None, None),
        (
            "core.v1.PodSpec",
            "imagePullSecrets",
            Some("map"),
            Some(json!(["name"])),
            Some("merge"),
            Some("name"),
        ),
        ("core.v1.PodSpec", "hostAliases", Some("map"), Some(json!(["ip"])), Some("merge"), Some("ip")),
        (
            "core.v1.PodSpec",
            "topologySpreadConstraints",
            Some("map"),
            Some(json!(["topologyKey", "whenUnsatisfiable"])),
            Some("merge"),
            Some("topologyKey"),
        ),
        (
            "core.v1.PodSpec",
            "schedulingGates",
            Some("map"),
            Some(json!(["name"])),
            Some("merge"),
            Some("name"),
        ),
        (
            "core.v1.Container",
            "ports",
            Some("map"),
            Some(json!(["containerPort", "protocol"])),
            Some("merge"),
            Some("containerPort"),
        ),
        ("core.v1.Container", "env", Some("map"), Some(json!(["name"])), Some("merge"), Some("name")),
        ("core.v1.Container", "envFrom", Some("atomic"), None, None, None),
        ("core.v1.Container", "command", Some("atomic"), None, None, None),
        (
            "core.v1.Container",
            "volumeMounts",
            Some("map"),
            Some(json!(["mountPath"])),
            Some("merge"),
            Some("mountPath"),
        ),
        (
            "core.v1.Container",
            "volumeDevices",
            Some("map"),
            Some(json!(["devicePath"])),
            Some("merge"),
            Some("devicePath"),
        ),
        (
            "core.v1.ServiceSpec",
            "ports",
            Some("map"),
            Some(json!(["port", "protocol"])),
            Some("merge"),
            Some("port"),
        ),
        ("core.v1.ServiceSpec", "clusterIPs", Some("atomic"), None, None, None),
        ("core.v1.PodStatus", "conditions", Some("map"), Some(json!(["type"])), Some("merge"), Some("type")),
        ("core.v1.PodStatus", "podIPs", Some("map"), Some(json!(["ip"])), Some("merge"), Some("ip")),
        ("core.v1.PodStatus", "containerStatuses", Some("atomic"), None, None, None),
        ("core.v1.NodeStatus", "addresses", Some("map"), Some(json!(["type"])), Some("merge"), Some("type")),
        ("core.v1.NodeSpec", "podCIDRs", Some("set"), None, Some("merge"), None),
        ("core.v1.NodeSpec", "taints", Some("atomic"), None, None, None),
        (
            "core.v1.ServiceAccount",
            "secrets",
            Some("map"),
            Some(json!(["name"])),
            Some("merge"),
            Some("name"),
        ),
        ("core.v1.Endpoints", "subsets", Some("atomic"), None, None, None),
        (
            "apps.v1.DeploymentStatus",
            "conditions",
            Some("map"),
            Some(json!(["type"])),
            Some("merge"),
            Some("type"),
        ),
        ("apps.v1.DeploymentSpec", "strategy", None, None, Some("retainKeys"), None),
        ("networking.v1.IngressSpec", "rules", Some("atomic"), None, None, None),
        ("rbac.v1.ClusterRole", "rules", Some("atomic"), None, None, None),
    ] {
        let name = format!("io.k8s.api.{name}");
        let text = |text: Option<&str>| text.map(|text| json!(text));
        assert_eq!(published(&name, field, "list-type"), text(list_type), "{name}.{field}");
        assert_eq!(published(&name, field, "list-map-keys"), map_keys, "{name}.{field}");
        assert_eq!(published(&name, field, "patch-strategy"), text(strategy), "{name}.{field}");
        assert_eq!(published(&name, field, "patch-merge-key"), text(merge_key), "{name}.{field}");
    }
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(published(meta, "finalizers", "list-type"), Some(json!("set")));
    assert_eq!(published(meta, "finalizers", "patch-strategy"), Some(json!("merge")));
    assert_eq!(published(meta, "ownerReferences", "list-map-keys"), Some(json!(["uid"])));
    assert_eq!(published(meta, "ownerReferences", "patch-merge-key"), Some(json!("uid")));
    let selector = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
    assert_eq!(published(selector, "", "map-type"), Some(json!("atomic")));
    assert_eq!(published("io.k8s.api.core.v1.ServiceSpec", "selector", "map-type"), Some(json!("atomic")));
    let kinds = published("io.k8s.api.apps.v1.Deployment", "", "group-version-kind");
    assert_eq!(kinds, Some(json!([{"group": "apps", "kind": "Deployment", "version": "v1"}])));
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
