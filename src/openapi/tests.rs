//! The documents for a few resources, as their readers walk them.

use serde_json::{Value, json};

use super::*;

const RELEASE: &str = "v1.36.2";

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn resource(group: &str, package: &str, kind: &str, plural: &str, namespaced: bool) -> ServedResource {
    let definition = format!("{package}.v1.{kind}");
    ServedResource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        list_kind: Some(format!("{kind}List")),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        namespaced,
        verbs: texts(&["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]),
        subresources: vec![ServedSubresource {
            name: "status".into(),
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            definition: definition.clone(),
            verbs: texts(&["get", "patch", "update"]),
        }],
        list_definition: Some(format!("{definition}List")),
        definition,
        schema: None,
        schema_v3: None,
    }
}

fn subresource(name: &str, group: &str, kind: &str, definition: &str, verbs: &[&str]) -> ServedSubresource {
    ServedSubresource {
        name: name.into(),
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        definition: definition.into(),
        verbs: texts(verbs),
    }
}

fn served() -> Vec<ServedResource> {
    let mut pods = resource("", "io.k8s.api.core", "Pod", "pods", true);
    let eviction = "io.k8s.api.policy.v1.Eviction";
    pods.subresources.push(subresource("eviction", "policy", "Eviction", eviction, &["create"]));
    pods.subresources.push(subresource("log", "", "Pod", "", &["get"]));
    let mut deployments = resource("apps", "io.k8s.api.apps", "Deployment", "deployments", true);
    let scale = "io.k8s.api.autoscaling.v1.Scale";
    let verbs = ["get", "patch", "update"];
    deployments.subresources.push(subresource("scale", "autoscaling", "Scale", scale, &verbs));
    let roles = "io.k8s.api.rbac";
    let mut widgets = resource("example.com", "com.example", "Widget", "widgets", true);
    widgets.schema = Some(json!({
        "type": "object",
        "description": "A widget.",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }));
    widgets.schema_v3 = widgets.schema.clone();
    vec![
        pods,
        resource("", "io.k8s.api.core", "Node", "nodes", false),
        resource("", "io.k8s.api.core", "ConfigMap", "configmaps", true),
        deployments,
        resource("rbac.authorization.k8s.io", roles, "ClusterRole", "clusterroles", false),
        widgets,
    ]
}

fn v3(group: &str) -> Value {
    v3_group(group, "v1", &served(), &Schemas::builtin(), RELEASE)
}

#[test]
fn paths_and_operations_are_named_as_upstream_names_them() {
    let ids = |document: &Value, path: &str| -> Vec<String> {
        let operations = document["paths"][path].as_object().unwrap_or_else(|| panic!("no {path}"));
        operations.values().filter_map(|own| own["operationId"].as_str()).map(str::to_owned).collect()
    };
    let core = v3("");
    assert_eq!(ids(&core, "/api/v1/"), ["getCoreV1APIResources"]);
    assert_eq!(ids(&core, "/api/v1/pods"), ["listCoreV1PodForAllNamespaces"]);
    assert_eq!(
        ids(&core, "/api/v1/namespaces/{namespace}/pods"),
        ["deleteCoreV1CollectionNamespacedPod", "listCoreV1NamespacedPod", "createCoreV1NamespacedPod"]
    );
    assert_eq!(
        ids(&core, "/api/v1/nodes/{name}/status"),
        ["readCoreV1NodeStatus", "patchCoreV1NodeStatus", "replaceCoreV1NodeStatus"]
    );
    let eviction = "/api/v1/namespaces/{namespace}/pods/{name}/eviction";
    assert_eq!(ids(&core, eviction), ["createCoreV1NamespacedPodEviction"]);
    let apps = v3("apps");
    let deployment = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    assert_eq!(deployment["get"]["operationId"], "readAppsV1NamespacedDeployment");
    assert_eq!(deployment["get"]["tags"], json!(["apps_v1"]));
    assert_eq!(deployment["patch"]["x-kubernetes-action"], "patch");
    let kind = json!({"group": "apps", "kind": "Deployment", "version": "v1"});
    assert_eq!(deployment["patch"]["x-kubernetes-group-version-kind"], kind);
    let scale = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"];
    let kind = json!({"group": "autoscaling", "kind": "Scale", "version": "v1"});
    assert_eq!(scale["x-kubernetes-group-version-kind"], kind);
    let roles = v3("rbac.authorization.k8s.io");
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert_eq!(roles["paths"][path]["get"]["operationId"], "listRbacAuthorizationV1ClusterRole");
    assert_eq!(roles["paths"][path]["get"]["tags"], json!(["rbacAuthorization_v1"]));
}

#[test]
fn a_patch_says_that_dry_run_and_field_validation_are_supported() {
    for (document, path) in [
        (v3("apps"), "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
        (v2(&served(), &Schemas::builtin(), RELEASE), "/api/v1/namespaces/{namespace}/pods/{name}"),
    ] {
        let parameters = document["paths"][path]["patch"]["parameters"].as_array().expect("a list");
        let meant = |own: &Value| match own["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).cloned().expect("it leads somewhere"),
            None => own.clone(),
        };
        for name in ["dryRun", "fieldValidation", "fieldManager"] {
            let is_it = |own: &Value| own["name"] == name && own["in"] == "query";
            assert!(parameters.iter().map(meant).any(|own| is_it(&own)), "{path}: {name}");
            let is_said_here = parameters.iter().any(is_it);
            assert!(is_said_here || name == "fieldManager", "{path}: old clients look for {name}");
        }
    }
}

#[test]
fn what_all_operations_take_is_said_once_for_the_path() {
    let names = |parameters: &Value| -> Vec<String> {
        let all = parameters.as_array().into_iter().flatten();
        all.filter_map(|own| own["name"].as_str()).map(str::to_owned).collect()
    };
    let core = v3("");
    let paths = &core["paths"];
    let one = &paths["/api/v1/nodes/{name}"];
    assert_eq!(
        (names(&one["parameters"]), &one["get"]["parameters"]),
        (vec!["name".into(), "pretty".into()], &Value::Null)
    );
    let eviction = &paths["/api/v1/namespaces/{namespace}/pods/{name}/eviction"];
    let all = ["dryRun", "fieldManager", "fieldValidation", "name", "namespace", "pretty"];
    assert_eq!(
        (names(&eviction["parameters"]), &eviction["post"]["parameters"]),
        (all.map(String::from).to_vec(), &Value::Null)
    );
    let discovery = &paths["/api/v1/"];
    assert_eq!((&discovery["parameters"], &discovery["get"]["parameters"]), (&Value::Null, &Value::Null));
    let swagger = v2(&served(), &Schemas::builtin(), RELEASE);
    let types = |path: &str, list: &str| swagger["paths"][path]["get"][list].clone();
    let objects = json!(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]);
    assert_eq!((types("/api/v1/", "produces"), types("/api/v1/", "consumes")), (objects.clone(), objects));
    assert_eq!(types("/version/", "produces"), json!(["application/json"]));
    assert_eq!(types("/api/v1/pods", "produces").as_array().map(Vec::len), Some(5));
    assert_eq!(types("/api/v1/pods", "consumes"), json!(["*/*"]));
}

#[test]
fn every_reference_leads_somewhere() {
    fn check(value: &Value, document: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.trim_start_matches('#');
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                map.values().for_each(|value| check(value, document));
            }
            Value::Array(list) => list.iter().for_each(|value| check(value, document)),
            _ => {}
        }
    }
    let all = v2(&served(), &Schemas::builtin(), RELEASE);
    check(&all, &all);
    for group in ["", "apps", "rbac.authorization.k8s.io", "example.com"] {
        let document = v3(group);
        check(&document, &document);
    }
}

#[test]
fn components_carry_what_clients_merge_by() {
    let core = v3("");
    let schemas = &core["components"]["schemas"];
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let container = json!([{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}]);
    assert_eq!(containers["items"], json!({"allOf": container, "default": {}}));
    let pod = &schemas["io.k8s.api.core.v1.Pod"];
    assert_eq!(pod["properties"]["spec"]["default"], json!({}));
    let kinds = json!([{"group": "", "kind": "Pod", "version": "v1"}]);
    assert_eq!(pod["x-kubernetes-group-version-kind"], kinds);
    let port = &schemas["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert_eq!((&port["protocol"]["default"], &port["containerPort"]["default"]), (&json!("TCP"), &json!(0)));
    let int_or_string = &schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(int_or_string["format"], "int-or-string");
    assert_eq!(int_or_string["oneOf"], json!([{"type": "integer"}, {"type": "string"}]));
    assert_eq!(schemas["io.k8s.api.core.v1.Container"]["properties"]["name"]["default"], "");
    let options = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    let kinds = options["x-kubernetes-group-version-kind"].clone();
    assert_eq!(kinds, json!([{"group": "", "kind": "DeleteOptions", "version": "v1"}]));
    let options = &v3("apps")["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    let kinds = options["x-kubernetes-group-version-kind"].as_array().expect("a list").len();
    assert_eq!(kinds, 2, "its own group, and the core");
    assert!(!core.to_string().contains("x-kubarium"));
}

#[test]
fn swagger_has_no_defaults_and_every_group() {
    let document = v2(&served(), &Schemas::builtin(), RELEASE);
    let protocol = &document["definitions"]["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"];
    assert!(protocol["type"] == "string" && protocol.get("default").is_none());
    let widget = &document["definitions"]["com.example.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["size"], json!({"type": "integer"}));
    let meta = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(widget["properties"]["metadata"]["$ref"], meta);
    for path in ["/api/v1/nodes", "/apis/apps/v1/deployments", "/apis/example.com/v1/widgets"] {
        assert!(document["paths"].get(path).is_some(), "{path}");
    }
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert!(!patch["consumes"].to_string().contains("strategic"));
}

#[test]
fn what_definitions_publish_is_told_in_their_builders_words() {
    let document = v3("example.com");
    assert_eq!(document["info"], json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}));
    assert!(document.get("security").is_none() && document["components"].get("securitySchemes").is_none());
    let path = "/apis/example.com/v1/namespaces/{namespace}/widgets";
    let (all, one) = (&document["paths"][path], &document["paths"][format!("{path}/{{name}}")]);
    assert_eq!(all["get"]["description"], "list objects of kind Widget");
    assert_eq!(all["delete"]["parameters"].as_array().map(Vec::len), Some(11), "those of a list");
    assert!(all["delete"].get("requestBody").is_none());
    assert_eq!(one["get"]["parameters"][0]["name"], "resourceVersion");
    assert!(one["patch"]["responses"].get("201").is_none() && one["put"]["responses"]["201"].is_object());
    let media_types = |value: &Value| value["content"].as_object().expect("a map").keys().cloned().collect();
    let found: Vec<String> = media_types(&all["post"]["requestBody"]);
    assert_eq!(found, ["application/json", "application/yaml"]);
    let found: Vec<String> = media_types(&all["get"]["responses"]["200"]);
    assert_eq!(found, ["application/json", "application/yaml"], "and no word of a watch");
}

#[test]
fn the_index_names_documents_by_path_and_hash() {
    let hash = hash(b"{}");
    assert_eq!(hash.len(), 128);
    assert_eq!(
        v3_index([("", "A"), ("apps", "B")].map(|(group, hash)| {
            let path = v3_path(group, "v1");
            (path.clone(), v3_url(&path, hash))
        })),
        json!({"paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=B"},
        }})
    );
}

/// Reads one protobuf message: its fields as number and bytes; a varint counts as its value's bytes.
fn wire(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = varint(&mut bytes);
        match key & 7 {
            0 => fields.push((key >> 3, length.to_le_bytes().to_vec())),
            2 => {
                let (value, rest) = bytes.split_at(usize::try_from(length).expect("short"));
                fields.push((key >> 3, value.to_vec()));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    fields
}

fn at(message: &[u8], path: &[u64]) -> Vec<u8> {
    path.iter().fold(message.to_vec(), |message, field| {
        let found = wire(&message).into_iter().find(|(number, _)| number == field);
        found.unwrap_or_else(|| panic!("no field {field} of {path:?}")).1
    })
}

#[test]
fn the_protobuf_says_what_the_swagger_says() {
    let document = json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": RELEASE},
        "paths": {"/a": {"patch": {
            "operationId": "patchA",
            "parameters": [{"name": "dryRun", "in": "query", "type": "string"}],
            "x-kubernetes-group-version-kind": {"kind": "A"},
        }}},
        "definitions": {"A": {"type": "object", "properties": {"b": {"$ref": "#/definitions/B"}}}},
    });
    let message = v2_protobuf(&document);
    assert_eq!(at(&message, &[1]), b"2.0");
    assert_eq!(at(&message, &[2, 2]), RELEASE.as_bytes());
    assert_eq!(at(&message, &[8, 2, 1]), b"/a");
    let patch = at(&message, &[8, 2, 2, 8]);
    assert_eq!(at(&patch, &[5]), b"patchA");
    assert_eq!(at(&patch, &[8, 1, 2, 3, 4]), b"dryRun");
    assert_eq!(at(&patch, &[13, 1]), b"x-kubernetes-group-version-kind");
    assert_eq!(at(&patch, &[13, 2, 2]), br#"{"kind":"A"}"#);
    assert_eq!(at(&message, &[9, 1, 1]), b"A");
    assert_eq!(at(&message, &[9, 1, 2, 22, 1]), b"object");
    assert_eq!(at(&message, &[9, 1, 2, 25, 1, 2, 1]), b"#/definitions/B");
}

#[test]
fn the_same_tables_say_it_in_v3() {
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": RELEASE},
        "paths": {"/a": {"get": {"responses": {"200": {"description": "OK"}}}}},
        "components": {"schemas": {"A": {
            "type": "object",
            "properties": {
                "b": {"allOf": [{"$ref": "#/components/schemas/B"}], "default": {}},
                "c": {"type": "string", "default": "", "minLength": 300},
            },
            "additionalProperties": false,
            "x-kubernetes-list-type": "set",
        }}},
    });
    let message = v3_protobuf(&document);
    assert_eq!(at(&message, &[1]), b"3.0.0");
    assert_eq!(at(&message, &[2, 6]), RELEASE.as_bytes());
    assert_eq!(at(&message, &[4, 1, 2, 4, 8, 2, 1]), b"200");
    let a = at(&message, &[5, 1, 1, 2, 1]);
    assert_eq!(at(&a, &[25]), b"object");
    let b = at(&a, &[31, 1, 2, 1]);
    assert_eq!(at(&b, &[26, 2, 1]), b"#/components/schemas/B");
    assert!(at(&b, &[33]).is_empty(), "a default that is an object has no field");
    let c = wire(&at(&a, &[31])).pop().expect("the last property").1;
    assert!(at(&c, &[2, 1, 33, 3]).is_empty(), "an empty text is written where it is chosen");
    assert_eq!(at(&c, &[2, 1, 16])[..2], 300_u16.to_le_bytes());
    assert_eq!(at(&a, &[32, 2])[0], 0);
    assert_eq!(at(&a, &[36, 1]), b"x-kubernetes-list-type");
    assert_eq!(at(&a, &[36, 2, 2]), br#""set""#);
}

/// Documents by the definitions, by name what each says, that they have for `/apis/g/v1/NAME`.
fn swagger(definitions: Value) -> Value {
    let names = definitions.as_object().expect("a map").keys();
    let answer = |name: &String| json!({"schema": {"$ref": format!("#/definitions/{name}")}});
    let paths: serde_json::Map<String, Value> = names
        .map(|name| (format!("/apis/g/v1/{name}"), json!({"get": {"responses": {"200": answer(name)}}})))
        .collect();
    json!({"swagger": "2.0", "paths": paths, "definitions": definitions})
}

#[test]
fn documents_are_merged_as_upstream_merges_them() {
    let kinds = |groups: &[&str]| -> Value {
        let kind = |group: &&str| json!({"group": group, "version": "v1", "kind": "K"});
        json!({"type": "object", "x-kubernetes-group-version-kind": groups.iter().map(kind).collect::<Vec<_>>()})
    };
    let mut ours = swagger(json!({"Mine": {"type": "string"}, "Shared": kinds(&["b"])}));
    ours["definitions"]["Other"] = json!({"type": "integer"});
    ours["definitions"]["Other_v2"] = json!({"type": "number"});
    let other = || {
        let mut other = swagger(json!({"Other": {"type": "boolean"}, "Shared": kinds(&["a", "b"])}));
        other["paths"]["/apis/g/v2/x"] = json!({"get": {"schema": {"$ref": "#/definitions/Foreign"}}});
        other["paths"]["/apis/g/v1/Mine"] = json!({"get": {"schema": {"$ref": "#/definitions/Theirs"}}});
        other["definitions"]["Foreign"] = json!({});
        other["definitions"]["Theirs"] = json!({});
        other["definitions"]["Unused"] = json!({});
        other
    };
    v2_merge(&mut ours, other(), "g", "v1");
    let definitions = ours["definitions"].clone();
    assert_eq!(definitions["Other_v3"], json!({"type": "boolean"}), "the first name that is free");
    assert_eq!(
        definitions["Shared"]["x-kubernetes-group-version-kind"][0]["group"], "b",
        "its path was there"
    );
    assert!(definitions.get("Foreign").is_none() && definitions.get("Theirs").is_none());
    assert!(definitions.get("Unused").is_some(), "nobody needed it before, either");
    let answer = &ours["paths"]["/apis/g/v1/Other"]["get"]["responses"]["200"];
    assert_eq!(answer["schema"]["$ref"], "#/definitions/Other_v3");
    assert!(ours["paths"].get("/apis/g/v2/x").is_none());
    let before = ours.clone();
    v2_merge(&mut ours, other(), "g", "v1");
    assert_eq!(ours, before, "there is nothing new in it");
    let mut shared = swagger(json!({"Shared": kinds(&["a", "b"])}));
    shared["paths"] = json!({"/apis/g/v1/new": {"get": {"schema": {"$ref": "#/definitions/Shared"}}}});
    v2_merge(&mut ours, shared, "g", "v1");
    assert_eq!(ours["definitions"]["Shared"], kinds(&["a", "b"]), "of the kinds of both");
}
