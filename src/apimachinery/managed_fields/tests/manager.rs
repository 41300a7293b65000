//! What Kubernetes makes of ownership: names, times, bounds, resets, the migration from client-side apply.

use serde_json::{Value, json};

use super::SameForm;
use crate::managed_fields::{
    FieldManager, LAST_APPLIED_CONFIG, Managed, ResetFields, ScaleHandler, SchemaType, Updater, apply,
};
use crate::schema::{Schema, Schemas};
use crate::status::Status;

const GVK: &str = "/v1, Kind=ConfigMap";

/// One object, written by many.
struct Server {
    object: Option<Value>,
    seconds: u32,
}

impl Server {
    fn new() -> Self {
        Server { object: None, seconds: 0 }
    }

    fn with<T>(&mut self, manager: &str, run: impl FnOnce(&FieldManager) -> T) -> T {
        self.seconds += 1;
        let kind = SchemaType::Known(schema());
        let (reset, converter) = (ResetFields::default(), SameForm(kind));
        let updater = Updater { kind, api_version: "v1", reset: &reset, converter: &converter };
        let now = format!("2026-01-01T00:00:{:02}Z", self.seconds);
        run(&FieldManager { updater, gvk: GVK, subresource: "", manager, now: &now })
    }

    fn update(&mut self, manager: &str, mut new: Value) {
        let live = self.object.clone();
        self.with(manager, |fields| fields.update(live.as_ref(), empty, &mut new));
        new["metadata"]["uid"] = json!("u");
        self.object = Some(new);
    }

    fn apply(&mut self, manager: &str, config: Value, force: bool) -> Result<(), Status> {
        let live = self.object.clone();
        let mut new =
            self.with(manager, |fields| apply(fields, live.as_ref(), empty, &typed(config), force))?;
        new["metadata"]["uid"] = json!("u");
        self.object = Some(new);
        Ok(())
    }

    /// `manager operation time fields`, in the order in which they are stored.
    fn owners(&self) -> Vec<String> {
        let entries = &self.object.as_ref().unwrap()["metadata"]["managedFields"];
        let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or("-").to_owned();
        let owner = |entry: &Value| {
            let seconds = text(entry, "time").trim_end_matches('Z').rsplit(':').next().unwrap().to_owned();
            let (manager, operation) = (text(entry, "manager"), text(entry, "operation"));
            format!("{manager} {operation} {seconds} {}", text(entry, "fieldsV1"))
        };
        entries.as_array().map(|entries| entries.iter().map(owner).collect()).unwrap_or_default()
    }
}

fn schema() -> &'static Schema {
    Schemas::lookup("io.k8s.api.core.v1.ConfigMap").unwrap()
}

fn empty() -> Value {
    json!({"metadata": {}})
}

fn typed(mut config: Value) -> Value {
    config["apiVersion"] = json!("v1");
    config["kind"] = json!("ConfigMap");
    config
}

fn data(data: Value) -> Value {
    json!({"metadata": {"name": "a"}, "data": data})
}

#[test]
fn times_change_with_the_fields_and_only_then() {
    let mut server = Server::new();
    server.update("one", data(json!({"a": "1"})));
    server.update("two", data(json!({"a": "1", "b": "1"})));
    assert_eq!(
        server.owners(),
        [r#"one Update 01 {"f:data":{".":{},"f:a":{}}}"#, r#"two Update 02 {"f:data":{"f:b":{}}}"#]
    );
    let stood = server.owners();
    let mut same = server.object.clone().unwrap();
    same["metadata"]["resourceVersion"] = json!("9");
    server.update("three", same);
    assert_eq!(server.owners(), stood);
    server.update("two", data(json!({"a": "2", "b": "1"})));
    assert_eq!(
        server.owners(),
        [
            r#"one Update 01 {"f:data":{".":{}}}"#.replace("{\".\":{}}", "{}"),
            r#"two Update 04 {"f:data":{"f:a":{},"f:b":{}}}"#.into()
        ]
    );
}

#[test]
fn an_update_keeps_sets_or_clears_its_owners() {
    let mut server = Server::new();
    server.update("one", data(json!({"a": "1"})));
    let left_out = data(json!({"a": "1"}));
    server.update("two", left_out.clone());
    assert_eq!(server.owners().len(), 1);
    let entry = |manager: &str, operation: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}}})
    };
    let mut given = left_out.clone();
    given["metadata"]["managedFields"] = json!([entry("mine", "Apply")]);
    server.update("two", given.clone());
    assert_eq!(server.owners(), [r#"mine Apply - {"f:data":{"f:a":{}}}"#]);
    // What cannot be read counts as left out.
    given["metadata"]["managedFields"] = json!([entry("mine", "Delete")]);
    server.update("two", given.clone());
    assert_eq!(server.owners().len(), 1);
    for reset in [json!([]), json!([{}])] {
        let mut cleared = Server { object: server.object.clone(), seconds: 5 };
        given["metadata"]["managedFields"] = reset;
        cleared.update("two", given.clone());
        assert!(cleared.owners().is_empty());
        // From then on nobody is tracked, until somebody applies.
        cleared.update("two", data(json!({"a": "2"})));
        assert!(cleared.owners().is_empty());
        cleared.apply("me", data(json!({"b": "1"})), false).unwrap();
        assert_eq!(
            cleared.owners(),
            [
                r#"me Apply 08 {"f:data":{"f:b":{}}}"#,
                r#"before-first-apply Update 08 {"f:data":{".":{},"f:a":{}}}"#
            ]
        );
    }
}

#[test]
fn nobody_owns_what_the_server_sets() {
    let mut server = Server::new();
    let metadata = json!({"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1", "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"x": "y"}});
    server.update("", json!({"metadata": metadata}));
    assert_eq!(server.owners(), [r#"unknown Update 01 {"f:metadata":{"f:labels":{".":{},"f:x":{}}}}"#]);
}

#[test]
fn the_oldest_updaters_are_merged_when_there_are_too_many() {
    let mut server = Server::new();
    let mut all = serde_json::Map::new();
    for at in 0..13 {
        all.insert(format!("k{at:02}"), json!("v"));
        server.update(&format!("m{at:02}"), data(Value::Object(all.clone())));
    }
    let owners = server.owners();
    assert_eq!(owners.len(), 10);
    let oldest =
        r#"ancient-changes Update 04 {"f:data":{".":{},"f:k00":{},"f:k01":{},"f:k02":{},"f:k03":{}}}"#;
    assert_eq!(owners[0], oldest);
    assert!(owners[1].starts_with("m04 "));
}

#[test]
fn conflicts_name_managers_and_fields() {
    let mut server = Server::new();
    server.update("kubectl-create", data(json!({"a": "1", "b": "1"})));
    let status = server.apply("me", data(json!({"a": "2"})), false).unwrap_err();
    assert_eq!((status.code, &*status.reason), (409, "Conflict"));
    let expected = "Apply failed with 1 conflict: conflict with \"kubectl-create\" using v1: .data.a";
    assert_eq!(status.message, expected);
    let status = server.apply("me", data(json!({"a": "2", "b": "2"})), false).unwrap_err();
    assert_eq!(
        status.message,
        "Apply failed with 2 conflicts: conflicts with \"kubectl-create\" using v1:\n- .data.a\n- .data.b"
    );
    let causes = status.details.unwrap().causes;
    assert_eq!((&*causes[1].reason, &*causes[1].field), ("FieldManagerConflict", ".data.b"));
    assert_eq!(causes[1].message, "conflict with \"kubectl-create\" using v1");
    server.apply("me", data(json!({"a": "2"})), true).unwrap();
    assert_eq!(
        server.owners(),
        [r#"me Apply 04 {"f:data":{"f:a":{}}}"#, r#"kubectl-create Update 01 {"f:data":{".":{},"f:b":{}}}"#]
    );
    let status = server.apply("other", data(json!({"a": "3"})), false).unwrap_err();
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"me\": .data.a");
}

#[test]
fn a_configuration_must_be_of_the_kind_and_say_nothing_of_owners() {
    let mut server = Server::new();
    let refused = |server: &mut Server, config: Value| {
        let status = server.with("me", |fields| apply(fields, None, empty, &config, false)).unwrap_err();
        (status.code, status.message)
    };
    let wrong = json!({"apiVersion": "apps/v1", "kind": "X"});
    assert_eq!(refused(&mut server, wrong), (400, "invalid object type: apps/v1, Kind=X".into()));
    assert_eq!(refused(&mut server, json!({})), (400, "invalid object type: /, Kind=".into()));
    let owned = typed(json!({"metadata": {"name": "a", "managedFields": [{}]}}));
    assert_eq!(refused(&mut server, owned), (400, "metadata.managedFields must be nil".into()));
    let unknown = typed(json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {}}));
    let expected =
        "failed to create typed patch object (b/a; /v1, Kind=ConfigMap): .spec: field not declared in schema";
    assert_eq!(refused(&mut server, unknown), (500, expected.into()));
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_clients_side() {
    let last = typed(data(json!({"a": "1", "b": "1"}))).to_string();
    let mut server = Server::new();
    let mut live = data(json!({"a": "1", "b": "1"}));
    live["metadata"]["annotations"] = json!({LAST_APPLIED_CONFIG: last});
    server.update("kubectl-client-side-apply", live);
    assert!(server.apply("other", data(json!({"a": "2"})), false).is_err());
    server.apply("kubectl", data(json!({"a": "2"})), false).unwrap();
    let annotation = &server.object.as_ref().unwrap()["metadata"]["annotations"][LAST_APPLIED_CONFIG];
    let kept: Value = serde_json::from_str(annotation.as_str().unwrap()).unwrap();
    assert_eq!(kept, typed(data(json!({"a": "2"}))));
    // What somebody else changed since is a conflict all the same.
    let mut server = Server { object: server.object, seconds: 10 };
    let mut changed = server.object.clone().unwrap();
    changed["data"]["b"] = json!("theirs");
    server.update("somebody", changed);
    let status = server.apply("kubectl", data(json!({"b": "3"})), false).unwrap_err();
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"somebody\" using v1: .data.b");
}

#[test]
fn owners_of_replicas_are_owners_of_the_scale() {
    let entry = |manager: &str, version: &str, fields: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"})
    };
    let parent = json!([
        entry("create", "apps/v1", r#"{"f:spec":{"f:paused":{},"f:replicas":{}}}"#),
        entry("label", "apps/v1", r#"{"f:metadata":{"f:labels":{"f:a":{}}}}"#),
    ]);
    let path = |version: &str| (version == "apps/v1").then(|| "spec.replicas".to_owned());
    let handler = ScaleHandler { parent: Some(&parent), api_version: "apps/v1", replicas_path: &path };
    let scale = handler.to_subresource().unwrap();
    assert_eq!(scale, json!([entry("create", "autoscaling/v1", r#"{"f:spec":{"f:replicas":{}}}"#)]));
    // An updater of the Scale is another than that of the workload, even when it has changed nothing.
    let split = handler.to_parent(Some(&scale)).unwrap();
    let replicas = r#"{"f:spec":{"f:replicas":{}}}"#;
    let shown = |at: usize| [&split[at]["manager"], &split[at]["fieldsV1"]];
    assert_eq!(shown(0), [&json!("create"), &json!(replicas)], "{split}");
    assert_eq!(shown(1), [&json!("create"), &json!(r#"{"f:spec":{"f:paused":{}}}"#)], "{split}");
    assert_eq!(split[0].get("time"), None, "{split}");
    let taken = json!([entry("scale", "autoscaling/v1", r#"{"f:spec":{"f:replicas":{}}}"#)]);
    let owners = Managed::decode(handler.to_parent(Some(&taken))).unwrap();
    let shown: Vec<(String, usize, bool)> = owners
        .0
        .iter()
        .map(|entry| (entry.id.manager.clone(), entry.set().len(), entry.time.is_some()))
        .collect();
    let expected = [("scale", 1, false), ("create", 1, true), ("label", 1, true)];
    assert_eq!(shown, expected.map(|(name, fields, time)| (name.to_owned(), fields, time)));
}
