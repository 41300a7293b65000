//! Server-side apply and managedFields, as requests and answers.

use super::*;

const APPLY: &str = "application/apply-patch+yaml";

impl Server {
    /// Applies a configuration; `query` is behind `fieldManager=`.
    async fn apply(&self, path: &str, query: &str, config: &str) -> Answer {
        self.patch(&format!("{path}?fieldManager={query}"), APPLY, config).await
    }

    async fn applied(&self, path: &str, query: &str, config: &str) -> Value {
        let answer = self.apply(path, query, config).await;
        assert!(matches!(answer.code, 200 | 201), "{}", answer.text);
        answer.json()
    }

    /// PUT in the name of a manager, which must succeed.
    async fn put_as(&self, path: &str, manager: &str, object: &Value) -> Value {
        let line = format!("PUT {path}?fieldManager={manager}");
        let answer = self.call(&line, object).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        answer.json()
    }
}

/// `manager operation subresource`, in order.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or("-").to_owned();
    let shown = |entry: &Value| {
        format!("{} {} {}", text(entry, "manager"), text(entry, "operation"), text(entry, "subresource"))
    };
    entries.iter().map(shown).collect()
}

fn fields_of<'o>(object: &'o Value, manager: &str) -> &'o Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("somebody owns something");
    let found = entries.iter().find(|entry| entry["manager"] == manager);
    &found.unwrap_or_else(|| panic!("{manager}: {entries:?}"))["fieldsV1"]
}

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        ports: [{containerPort: 80}]
";

#[tokio::test]
async fn an_apply_creates_then_rests_then_changes_only_what_it_owns() {
    let server = Server::start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let created = server.apply(&path, "me", WEB).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let created = created.json();
    let expected = json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}},
    });
    assert_eq!(fields_of(&created, "me"), &expected);
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["apiVersion"], &entry["fieldsType"]), (&json!("apps/v1"), &json!("FieldsV1")));
    assert_eq!(created["spec"]["strategy"]["type"], "RollingUpdate");
    let again = server.apply(&path, "me", WEB).await;
    assert_eq!((again.code, again.json()), (200, created.clone()));
    // Somebody scales by an update: the applier does not own the replicas any more.
    let mut scaled = created.clone();
    scaled["spec"]["replicas"] = json!(5);
    let scaled = server.put_as(&path, "scaler", &scaled).await;
    assert_eq!(fields_of(&scaled, "scaler"), &json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(fields_of(&scaled, "me")["f:spec"]["f:replicas"], Value::Null);
    let refused = server.apply(&path, "me", WEB).await;
    let text = "Apply failed with 1 conflict: conflict with \"scaler\" using apps/v1: .spec.replicas";
    assert_eq!(refused.status(), (409, "Conflict".into(), text.into()));
    let cause = json!({"reason": "FieldManagerConflict", "field": ".spec.replicas",
        "message": "conflict with \"scaler\" using apps/v1"});
    assert_eq!(refused.json()["details"], json!({"causes": [cause]}));
    let without = WEB.replace("  replicas: 3\n", "").replace("image: nginx", "image: nginx:2");
    let kept = server.applied(&path, "me", &without).await;
    assert_eq!(kept["spec"]["replicas"], 5);
    assert_eq!(kept["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:2");
    let forced = server.applied(&path, "me&force=true", WEB).await;
    assert_eq!((&forced["spec"]["replicas"], managers(&forced)), (&json!(3), vec!["me Apply -".to_owned()]));
    // What it applied and does not any more is gone; and back to its default where it has one.
    let gone = WEB.replace("  labels: {app: web}\nspec", "spec").replace("  replicas: 3\n", "");
    let gone = server.applied(&path, "me", &gone).await;
    assert_eq!((&gone["metadata"]["labels"], &gone["spec"]["replicas"]), (&Value::Null, &json!(1)));
}

#[tokio::test]
async fn writers_are_named_and_subresources_kept_apart() {
    let server = Server::start().await;
    let agent =
        [("content-type", "application/json"), ("user-agent", "kubectl/v1.36.2 (linux/amd64) kubernetes/1")];
    let created = server.call_with(&format!("POST {DEPLOYMENTS}"), &agent, deployment("d").to_string()).await;
    let created = created.json();
    assert_eq!(managers(&created), ["kubectl Update -"]);
    assert_eq!(fields_of(&created, "kubectl")["f:spec"]["f:strategy"]["f:type"], json!({}));
    let path = format!("{DEPLOYMENTS}/d");
    let mut seen = created.clone();
    seen["status"]["replicas"] = json!(1);
    seen["spec"]["replicas"] = json!(9);
    seen["metadata"]["labels"] = json!({"ignored": "here"});
    let seen = server.put_as(&format!("{path}/status"), "controller", &seen).await;
    assert_eq!(managers(&seen), ["controller Update status", "kubectl Update -"]);
    assert_eq!(fields_of(&seen, "controller"), &json!({"f:status": {"f:replicas": {}}}));
    let status =
        r#"{"apiVersion":"apps/v1","kind":"Deployment","status":{"availableReplicas":1,"readyReplicas":1}}"#;
    let applied = server.applied(&format!("{path}/status"), "observer", status).await;
    assert_eq!(
        fields_of(&applied, "observer"),
        &json!({"f:status": {"f:availableReplicas": {}, "f:readyReplicas": {}}})
    );
    let scale = r#"{"spec":{"replicas":4}}"#;
    let merge = "application/merge-patch+json";
    server.patch(&format!("{path}/scale?fieldManager=scaler"), merge, scale).await;
    let scaled = server.get(&path).await;
    assert_eq!(fields_of(&scaled, "scaler"), &json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(fields_of(&scaled, "kubectl")["f:spec"].get("f:replicas"), None);
    assert!(managers(&scaled).contains(&"scaler Update scale".to_owned()), "{:?}", managers(&scaled));
    let text = "conflict with \"scaler\" with subresource \"scale\" using apps/v1: .spec.replicas";
    let config = deployment("d").to_string().replace("\"selector\"", "\"replicas\":1,\"selector\"");
    let refused = server.apply(&path, "me", &config).await;
    assert_eq!(refused.status().2, format!("Apply failed with 1 conflict: {text}"));
    let config =
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":7}}"#;
    let answer = server.apply(&format!("{path}/scale"), "me&force=true", config).await;
    assert_eq!((answer.code, &answer.json()["spec"]["replicas"]), (200, &json!(7)), "{}", answer.text);
    assert_eq!(fields_of(&server.get(&path).await, "me"), &json!({"f:spec": {"f:replicas": {}}}));
}

#[tokio::test]
async fn owners_are_kept_by_every_patch_and_can_be_cleared() {
    let server = Server::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    server.create(CONFIG_MAPS, config_map("a")).await;
    for (manager, media_type, patch) in [
        ("json", "application/json-patch+json", r#"[{"op":"add","path":"/data/json","value":"1"}]"#),
        ("merge", "application/merge-patch+json", r#"{"data":{"merge":"1"}}"#),
        ("strategic", "application/strategic-merge-patch+json", r#"{"data":{"strategic":"1"}}"#),
    ] {
        let answer = server.patch(&format!("{path}?fieldManager={manager}"), media_type, patch).await;
        let expected = json!({"f:data": {format!("f:{manager}"): {}}});
        assert_eq!(fields_of(&answer.json(), manager), &expected, "{}", answer.text);
    }
    // Nothing but the time would change: nothing does.
    let before = server.get(&path).await;
    let (other, merge) = (format!("{path}?fieldManager=other"), "application/merge-patch+json");
    let same = server.patch(&other, merge, r#"{"data":{"merge":"1"}}"#).await;
    assert_eq!(same.json(), before);
    let dry = r#"{"data":{"dry":"1"}}"#;
    let dry = server
        .patch(&format!("{path}?fieldManager=dry&dryRun=All"), "application/merge-patch+json", dry)
        .await;
    assert_eq!(fields_of(&dry.json(), "dry"), &json!({"f:data": {"f:dry": {}}}));
    assert_eq!(server.get(&path).await, before);
    let read = r#"[{"op":"test","path":"/metadata/managedFields/0/fieldsV1/f:data/f:json","value":{}}]"#;
    let read = server.patch(&path, "application/json-patch+json", read).await;
    assert_eq!(read.code, 200, "{}", read.text);
    for reset in [
        r#"[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]"#,
        r#"[{"op":"replace","path":"/metadata/managedFields","value":[]}]"#,
    ] {
        let cleared = server.patch(&path, "application/json-patch+json", reset).await.json();
        assert_eq!(managers(&cleared), Vec::<String>::new());
    }
    let applied =
        server.applied(&path, "me", r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v"}}"#).await;
    assert_eq!(managers(&applied), ["me Apply -", "before-first-apply Update -"]);
    let deleted = server.call(&format!("DELETE {path}"), &Value::Null).await;
    assert_eq!(deleted.code, 200);
}

#[tokio::test]
async fn events_and_pods_are_owned_too_and_no_list_forgets_it() {
    let server = Server::start().await;
    let created = server.create(PODS, pod("p")).await;
    assert_eq!(managers(&created), ["unknown Update -"]);
    let own = fields_of(&created, "unknown");
    // What admission and the registry add belongs to nobody.
    assert_eq!((own["f:spec"].get("f:tolerations"), own.get("f:status")), (None, None));
    assert_eq!(own["f:spec"]["f:dnsPolicy"], json!({}));
    let listed = server.get(PODS).await;
    assert_eq!(listed["items"][0]["metadata"]["managedFields"], created["metadata"]["managedFields"]);
    let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let partial = server.get_as(&format!("{PODS}/p"), accept).await.json();
    assert_eq!(partial["metadata"]["managedFields"], created["metadata"]["managedFields"]);
    let yaml = server.get_as(&format!("{PODS}/p"), "application/yaml").await;
    assert!(yaml.text.contains("fieldsV1:\n      f:metadata:"), "{}", yaml.text);
}

/// Query and body of an apply to ConfigMap `a`; code, reason and message.
const REFUSED: &[(&str, &str, u16, &str, &str)] = &[
    (
        "",
        "{}",
        422,
        "Invalid",
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
    ),
    ("?fieldManager=me", "{}", 400, "BadRequest", "invalid object type: /, Kind="),
    (
        "?fieldManager=me",
        "[]",
        400,
        "BadRequest",
        "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
    ),
    (
        "?fieldManager=me",
        "apiVersion: apps/v1\nkind: Deployment",
        400,
        "BadRequest",
        "invalid object type: apps/v1, Kind=Deployment",
    ),
    (
        "?fieldManager=me",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}",
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
    ),
    (
        "?fieldManager=me",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: b}",
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    (
        "?fieldManager=me",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, managedFields: [{}]}",
        400,
        "BadRequest",
        "metadata.managedFields must be nil",
    ),
    (
        "?fieldManager=me",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {x: 1}",
        500,
        "",
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .spec: field not declared in schema",
    ),
    (
        "?fieldManager=me",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, uid: u}",
        422,
        "Invalid",
        "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable",
    ),
    (
        "?fieldManager=me",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, resourceVersion: \"1\"}",
        409,
        "Conflict",
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again",
    ),
    (
        "?fieldManager=me&fieldValidation=Strict",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: a\n  x: b",
        400,
        "BadRequest",
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"x\" already set in map",
    ),
];

#[tokio::test]
async fn applies_are_refused_in_upstreams_words() {
    let server = Server::start().await;
    server.create(CONFIG_MAPS, config_map("a")).await;
    for (query, body, code, reason, message) in REFUSED {
        let answer = server.patch(&format!("{CONFIG_MAPS}/a{query}"), APPLY, body).await;
        let expected = (*code, (*reason).to_owned(), (*message).to_owned());
        assert_eq!(answer.status(), expected, "{query} {body}");
    }
    let cbor = server.patch(&format!("{CONFIG_MAPS}/a"), "application/apply-patch+cbor", "x").await;
    assert_eq!(cbor.status().0, 415);
    let forced =
        server.patch(&format!("{CONFIG_MAPS}/a?force=true"), "application/merge-patch+json", "{}").await;
    assert!(forced.status().2.ends_with("force: Forbidden: may not be specified for non-apply patch"));
    let missing = format!("{DEPLOYMENTS}/nowhere/status");
    let status = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"nowhere"}}"#;
    assert_eq!(server.apply(&missing, "me", status).await.status().0, 404);
    let uid = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, uid: u}";
    let answer = server.apply(&format!("{CONFIG_MAPS}/new"), "me", uid).await;
    assert_eq!(
        answer.status().2,
        "Operation cannot be fulfilled on configmaps \"new\": uid mismatch: the provided object specified uid u, \
         and no existing object was found"
    );
    let twice = "apiVersion: v1\nkind: ConfigMap\ndata:\n  x: a\n  x: b";
    let warned = server.apply(&format!("{CONFIG_MAPS}/a"), "me", twice).await;
    assert_eq!((warned.code, warned.warnings().len()), (200, 1), "{}", warned.text);
    let dry =
        server.apply(&format!("{CONFIG_MAPS}/dry"), "me&dryRun=All", &config_map("dry").to_string()).await;
    assert_eq!((dry.code, managers(&dry.json())), (201, vec!["me Apply -".to_owned()]));
    assert_eq!(server.call(&format!("GET {CONFIG_MAPS}/dry"), &Value::Null).await.code, 404);
}

#[tokio::test]
async fn owners_of_several_versions_live_on_one_object() {
    let server = Server::start().await;
    let paths = ["v1", "v2"]
        .map(|version| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers"));
    if server.call(&format!("GET {}", paths[0]), &Value::Null).await.code != 200 {
        return;
    }
    let target = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}";
    let config = |version: &str, spec: &str| {
        format!(
            "apiVersion: autoscaling/{version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: h}}\nspec:\n{spec}"
        )
    };
    let two = config("v2", &format!("  {target}\n  maxReplicas: 5\n  minReplicas: 2\n"));
    server.applied(&format!("{}/h", paths[1]), "two", &two).await;
    let one = config("v1", "  maxReplicas: 6\n  targetCPUUtilizationPercentage: 50\n");
    let refused = server.apply(&format!("{}/h", paths[0]), "one", &one).await;
    assert_eq!(refused.status().2, "Apply failed with 1 conflict: conflict with \"two\": .spec.maxReplicas");
    let one = config("v1", "  minReplicas: 2\n  targetCPUUtilizationPercentage: 50\n");
    let applied = server.applied(&format!("{}/h", paths[0]), "one", &one).await;
    let versions: Vec<&Value> = applied["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["apiVersion"])
        .collect();
    assert_eq!(versions, ["autoscaling/v1", "autoscaling/v2"]);
    // Both own the minimum: it stays when one lets go.
    let less = config("v2", &format!("  {target}\n  maxReplicas: 5\n"));
    let left = server.applied(&format!("{}/h", paths[1]), "two", &less).await;
    assert_eq!(left["spec"]["minReplicas"], 2);
}
