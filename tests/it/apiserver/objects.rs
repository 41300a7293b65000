//! Reads and writes of objects, and the forms of answers.

use super::*;

#[tokio::test]
async fn an_object_is_created_read_replaced_and_deleted() {
    let server = Server::start().await;
    let created = server.create(CONFIG_MAPS, config_map("a")).await;
    assert_eq!((&created["kind"], &created["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    assert_eq!(created["metadata"]["namespace"], "default");
    assert_eq!(created["metadata"]["uid"].as_str().map(str::len), Some(36));
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await, created);
    let mut changed = created.clone();
    changed["data"]["k"] = "w".into();
    let replaced = server.call(&format!("PUT {CONFIG_MAPS}/a"), &changed).await;
    assert_eq!((replaced.code, &replaced.json()["data"]["k"]), (200, &json!("w")));
    let stale = server.call(&format!("PUT {CONFIG_MAPS}/a"), &changed).await;
    let text = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; \
        please apply your \
        changes to the latest version and try again";
    assert_eq!(stale.status(), (409, "Conflict".into(), text.into()));
    let deleted = server.call(&format!("DELETE {CONFIG_MAPS}/a"), &Value::Null).await.json();
    assert_eq!(
        (&deleted["status"], &deleted["details"]["uid"]),
        (&json!("Success"), &created["metadata"]["uid"])
    );
    assert_eq!(deleted["details"]["kind"], "configmaps");
    assert_eq!(server.call(&format!("GET {CONFIG_MAPS}/a"), &Value::Null).await.code, 404);
}

#[tokio::test]
async fn a_list_is_one_revision_and_its_items_carry_no_type() {
    let server = Server::start().await;
    for name in ["a", "b", "c"] {
        server.create(CONFIG_MAPS, config_map(name)).await;
    }
    let list = server.get(CONFIG_MAPS).await;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(list["items"][0]["kind"], Value::Null);
    let page = server.get(&format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!(
        (page["items"].as_array().unwrap().len(), &page["metadata"]["remainingItemCount"]),
        (2, &json!(1))
    );
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = server.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(rest["items"][0]["metadata"]["name"], "c");
    assert_eq!(rest["metadata"].get("continue"), None);
    let one = server.get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Db")).await;
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_collection_is_deleted() {
    let server = Server::start().await;
    for name in ["a", "b"] {
        server.create(CONFIG_MAPS, config_map(name)).await;
    }
    let deleted = server.call(&format!("DELETE {CONFIG_MAPS}"), &Value::Null).await;
    assert_eq!((deleted.code, &deleted.json()["kind"]), (200, &json!("ConfigMapList")));
    assert_eq!(server.get(CONFIG_MAPS).await["items"], json!([]));
}

#[tokio::test]
async fn answers_come_as_table_metadata_yaml_or_with_line_breaks() {
    let server = Server::start().await;
    server.create(CONFIG_MAPS, config_map("a")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let table = server
        .get_as(CONFIG_MAPS, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
        .await
        .json();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let headings: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(headings, ["Name", "Data", "Age"]);
    assert_eq!(table["rows"][0]["cells"][1], 1);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let whole = server
        .get_as(&format!("{path}?includeObject=Object"), "application/json;as=Table;v=v1;g=meta.k8s.io")
        .await;
    assert_eq!(whole.json()["rows"][0]["object"]["data"]["k"], "v");
    let partial =
        server.get_as(&path, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").await.json();
    assert_eq!((&partial["kind"], partial.get("data")), (&json!("PartialObjectMetadata"), None));
    let yaml = server.get_as(&path, "application/yaml").await;
    assert!(yaml.text.starts_with("apiVersion: v1\n"), "{}", yaml.text);
    let pretty = server.call(&format!("GET {path}?pretty=true"), &Value::Null).await.text;
    assert!(pretty.starts_with("{\n  \"kind\": \"ConfigMap\",\n  \"apiVersion\": \"v1\",\n"), "{pretty}");
    let plain = server.call(&format!("GET {path}"), &Value::Null).await.text;
    assert!(
        plain.starts_with("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{")
            && plain.ends_with("}\n")
    );
}

#[tokio::test]
async fn a_pod_is_defaulted_and_given_an_account() {
    let server = Server::start().await;
    let created = server.create(PODS, pod("p")).await;
    let spec = &created["spec"];
    assert_eq!((&spec["restartPolicy"], &spec["dnsPolicy"]), (&json!("Always"), &json!("ClusterFirst")));
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    assert_eq!((&spec["priority"], &spec["preemptionPolicy"]), (&json!(0), &json!("PreemptLowerPriority")));
    let volume = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(volume.starts_with("kube-api-access-") && volume.len() == "kube-api-access-".len() + 5);
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume);
    assert_eq!(spec["tolerations"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&created["status"]["phase"], &created["status"]["qosClass"]),
        (&json!("Pending"), &json!("BestEffort"))
    );
}

#[tokio::test]
async fn patches_of_all_three_types() {
    let server = Server::start().await;
    server.create(DEPLOYMENTS, deployment("d")).await;
    let path = format!("{DEPLOYMENTS}/d");
    let merge = server.patch(&path, "application/merge-patch+json", r#"{"spec":{"replicas":3}}"#).await;
    assert_eq!((merge.code, &merge.json()["spec"]["replicas"]), (200, &json!(3)), "{}", merge.text);
    let added = r#"{"spec":{"template":{"spec":{"containers":[{"name":"e","image":"redis"}]}}}}"#;
    let strategic = server.patch(&path, "application/strategic-merge-patch+json", added).await.json();
    let containers = strategic["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2, "{strategic}");
    let operations = r#"[{"op":"test","path":"/kind","value":"Deployment"},
        {"op":"replace","path":"/spec/replicas","value":1}]"#;
    let json_patch = server.patch(&path, "application/json-patch+json", operations).await;
    assert_eq!(
        (json_patch.code, &json_patch.json()["spec"]["replicas"]),
        (200, &json!(1)),
        "{}",
        json_patch.text
    );
}

#[tokio::test]
async fn scale_is_read_and_written() {
    let server = Server::start().await;
    server.create(DEPLOYMENTS, deployment("d")).await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = server.get(&path).await;
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["spec"]["replicas"], 1);
    let patched = server.patch(&path, "application/merge-patch+json", r#"{"spec":{"replicas":4}}"#).await;
    assert_eq!((patched.code, &patched.json()["spec"]["replicas"]), (200, &json!(4)), "{}", patched.text);
    let mut scale = patched.json();
    scale["spec"]["replicas"] = 2.into();
    assert_eq!(server.call(&format!("PUT {path}"), &scale).await.code, 200);
    assert_eq!(server.get(&format!("{DEPLOYMENTS}/d")).await["spec"]["replicas"], 2);
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    let server = Server::start().await;
    server.create(DEPLOYMENTS, deployment("d")).await;
    let both = r#"{"spec":{"replicas":7},"status":{"replicas":7}}"#;
    let path = format!("{DEPLOYMENTS}/d");
    let status = server.patch(&format!("{path}/status"), "application/merge-patch+json", both).await.json();
    assert_eq!((&status["spec"]["replicas"], &status["status"]["replicas"]), (&json!(1), &json!(7)));
    let spec =
        server.patch(&path, "application/merge-patch+json", both.replace("7}}", "8}}").as_str()).await.json();
    assert_eq!((&spec["spec"]["replicas"], &spec["status"]["replicas"]), (&json!(7), &json!(7)));
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let server = Server::start().await;
    server.create(&format!("{CONFIG_MAPS}?dryRun=All"), config_map("a")).await;
    assert_eq!(server.get(CONFIG_MAPS).await["items"], json!([]));
}

#[tokio::test]
async fn unknown_fields_warn_or_refuse() {
    let server = Server::start().await;
    let mut odd = pod("p");
    odd["spec"]["colour"] = "red".into();
    let warned = server.call(&format!("POST {PODS}"), &odd).await;
    assert_eq!(
        (warned.code, warned.warnings()),
        (201, vec![r#"299 - "unknown field \"spec.colour\"""#.to_owned()])
    );
    let strict = server.call(&format!("POST {PODS}?fieldValidation=Strict"), &odd).await;
    let text = "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown \
        field \"spec.colour\"";
    assert_eq!(strict.status(), (400, "BadRequest".into(), text.into()));
    let ignored = server.call(&format!("PUT {PODS}/p?fieldValidation=Ignore"), &odd).await;
    assert!(ignored.warnings().is_empty());
}

#[tokio::test]
async fn bodies_may_be_yaml() {
    let server = Server::start().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: in-yaml\ndata:\n  k: v\n";
    let headers = [("content-type", "application/yaml")];
    let created = server.call_with(&format!("POST {CONFIG_MAPS}"), &headers, yaml).await;
    assert_eq!((created.code, &created.json()["data"]["k"]), (201, &json!("v")), "{}", created.text);
}

#[tokio::test]
async fn a_pod_is_bound_and_evicted() {
    let server = Server::start().await;
    server.create(PODS, pod("p")).await;
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"}});
    let bound = server.call(&format!("POST {PODS}/p/binding"), &binding).await;
    assert_eq!((bound.code, &bound.json()["status"]), (201, &json!("Success")), "{}", bound.text);
    assert_eq!(server.get(&format!("{PODS}/p")).await["spec"]["nodeName"], "n");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let evicted = server.call(&format!("POST {PODS}/p/eviction"), &eviction).await;
    assert_eq!((evicted.code, &evicted.json()["status"]), (201, &json!("Success")), "{}", evicted.text);
}
