//! Every kind of the scheme, through every verb that it has: what is declared is served.

use super::protobuf::{ACCEPT_PROTOBUF, PROTOBUF, event, message, object};
use super::*;
use kubarium::apis::kind::{Kind, Subresource};
use kubarium::apis::runtime_config::RuntimeConfig;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[tokio::test]
async fn every_kind_goes_through_every_verb() {
    let config = RuntimeConfig::parse(["api/legacy=true"]).unwrap();
    let scheme = Arc::new(Scheme::of(&config.served()));
    let server = Server::serving(scheme.clone()).await;
    let fixtures: Value = serde_yaml::from_str(include_str!("../../fixtures/kinds.yaml")).unwrap();
    let mut missing = Vec::new();
    for kind in scheme.all() {
        if !kind.verbs.iter().any(|verb| &**verb == "create")
            || !kind.verbs.iter().any(|verb| &**verb == "get")
        {
            continue;
        }
        match fixtures.get(kind.collection_path("")) {
            Some(least) => Walk::new(&server, &kind, least).run().await,
            None => missing.push(kind.collection_path("")),
        }
    }
    assert!(missing.is_empty(), "tests/fixtures/kinds.yaml has no object for {missing:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_kind_goes_the_same_way() {
    let scheme = Arc::new(Scheme::builtin());
    let server = Server::serving(scheme.clone()).await;
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}});
    let subresources = json!({"status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}, "subresources": subresources});
    let definition =
        crate::custom_resources::definition("walk.example.com", &json!({"spec": {"versions": [version]}}));
    server.create(crate::custom_resources::DEFINITIONS, definition).await;
    crate::custom_resources::established(&server, "foos.walk.example.com").await;
    let kind = scheme.resource("walk.example.com", "v1", "foos").expect("it is established");
    Walk::new(&server, &kind, &json!({"spec": {"replicas": 2}})).run().await;
}

#[tokio::test]
async fn every_kind_can_be_explained() {
    let config = RuntimeConfig::parse(["api/legacy=true"]).unwrap();
    let scheme = Arc::new(Scheme::of(&config.served()));
    let server = Server::serving(scheme.clone()).await;
    let mut documents = std::collections::BTreeMap::new();
    for kind in scheme.all() {
        let path = kind.collection_path("").rsplit_once('/').unwrap().0.to_owned();
        if !documents.contains_key(&path) {
            documents.insert(path.clone(), server.get(&format!("/openapi/v3{path}")).await);
        }
        let schema = &documents[&path]["components"]["schemas"][&*kind.definition];
        let wanted = json!({"group": &*kind.group_version.group, "kind": &*kind.kind,
            "version": &*kind.group_version.version});
        let named = schema["x-kubernetes-group-version-kind"].as_array().cloned().unwrap_or_default();
        assert!(named.contains(&wanted), "{kind:?}: {schema}");
        assert!(schema["description"].is_string() && schema["properties"].is_object(), "{kind:?}");
    }
}

/// One kind's way.
struct Walk<'a> {
    server: &'a Server,
    kind: &'a Kind,
    object: Value,
    name: String,
    collection: String,
}

impl<'a> Walk<'a> {
    fn new(server: &'a Server, kind: &'a Kind, least: &Value) -> Walk<'a> {
        let mut object = least.clone();
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = Value::from(&*kind.kind);
        let name = object["metadata"]["name"].as_str().unwrap_or("walked").to_owned();
        object["metadata"]["name"] = name.clone().into();
        Walk { server, kind, object, name, collection: kind.collection_path("default") }
    }

    async fn run(&self) {
        let before = self.revision().await;
        let created = self.create().await;
        self.read(&created).await;
        self.watch(&before).await;
        self.write(&created).await;
        self.apply().await;
        self.look().await;
        match self.kind.is_custom {
            true => drop(self.metadata_alone_is_protobuf().await),
            false => self.messages(&before).await,
        }
        self.remove().await;
    }

    fn has(&self, verb: &str) -> bool {
        self.kind.verbs.iter().any(|own| &**own == verb)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    async fn ok(&self, line: &str, body: &Value, codes: &[u16]) -> Value {
        let answer = self.server.call(line, body).await;
        assert!(codes.contains(&answer.code), "{:?}: {line}: {} {}", self.kind, answer.code, answer.text);
        answer.json()
    }

    async fn revision(&self) -> String {
        let list = self.ok(&format!("GET {}", self.collection), &Value::Null, &[200]).await;
        assert_eq!(list["kind"], *self.kind.list_kind);
        list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    async fn create(&self) -> Value {
        let dry = format!("POST {}?dryRun=All", self.collection);
        self.ok(&dry, &self.object, &[201]).await;
        let strict = format!("POST {}?fieldValidation=Strict", self.collection);
        let created = self.ok(&strict, &self.object, &[201]).await;
        assert!(created["metadata"]["uid"].is_string() && created["kind"] == *self.kind.kind, "{created}");
        created
    }

    async fn read(&self, created: &Value) {
        let read = self.ok(&format!("GET {}", self.path()), &Value::Null, &[200]).await;
        assert_eq!(&read, created, "{:?}", self.kind);
        let list = self.ok(&format!("GET {}", self.collection), &Value::Null, &[200]).await;
        let names = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]);
        assert!(names.into_iter().any(|name| *name == self.name), "{:?}", self.kind);
    }

    /// The first event after `revision` of the object by name.
    async fn watch(&self, revision: &str) {
        let selector = format!("fieldSelector=metadata.name%3D{}", self.name);
        let line = format!("GET {}?watch=1&resourceVersion={revision}&{selector}", self.collection);
        let event = self.server.first_event(&line).await;
        assert_eq!(event["type"], "ADDED", "{:?}: {event}", self.kind);
        assert_eq!(event["object"]["apiVersion"], self.kind.api_version());
    }

    async fn write(&self, created: &Value) {
        let mut changed = created.clone();
        let put = loop {
            changed["metadata"]["labels"]["put"] = "yes".into();
            let put = self.ok(&format!("PUT {}", self.path()), &changed, &[200, 409]).await;
            if put["kind"] != "Status" {
                break put;
            }
            // Of an APIService the server itself writes whether its server is there.
            changed = self.ok(&format!("GET {}", self.path()), &Value::Null, &[200]).await;
        };
        assert_eq!(put["metadata"]["labels"]["put"], "yes", "{:?}", self.kind);
        let strategic = "strategic-merge-patch+json";
        for (at, media_type) in ["merge-patch+json", strategic].iter().enumerate() {
            if self.kind.is_custom && *media_type == strategic {
                continue;
            }
            let body = json!({"metadata": {"labels": {"patched": at.to_string()}}}).to_string();
            let answer = self.server.patch(&self.path(), &format!("application/{media_type}"), &body).await;
            assert_eq!(answer.code, 200, "{:?}: {}", self.kind, answer.text);
            assert_eq!(answer.json()["metadata"]["labels"]["patched"], at.to_string());
        }
        let body = json!([{"op": "remove", "path": "/metadata/labels/put"}]).to_string();
        let answer = self.server.patch(&self.path(), "application/json-patch+json", &body).await;
        assert_eq!(answer.code, 200, "{:?}: {}", self.kind, answer.text);
        if self.kind.has(Subresource::Status) {
            let path = format!("{}/status", self.path());
            let read = self.ok(&format!("GET {path}"), &Value::Null, &[200]).await;
            self.ok(&format!("PUT {path}"), &read, &[200, 409]).await;
            let answer = self.server.patch(&path, "application/merge-patch+json", r#"{"status":{}}"#).await;
            assert_eq!(answer.code, 200, "{:?}: {}", self.kind, answer.text);
        }
        if self.kind.has(Subresource::Scale) {
            let path = format!("{}/scale", self.path());
            let scale = self.ok(&format!("GET {path}"), &Value::Null, &[200]).await;
            assert_eq!(scale["kind"], "Scale");
            self.ok(&format!("PUT {path}"), &scale, &[200]).await;
        }
    }

    /// What is applied is owned, twice is once, and others' fields are theirs until they are taken.
    async fn apply(&self) {
        let mut config = self.object.clone();
        config["metadata"]["annotations"]["applied"] = "1".into();
        let first = self.applied("", "walker&force=true", &config, 200).await;
        let owner = |object: &Value, manager: &str| {
            let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            entries.into_iter().find(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
        };
        let own = owner(&first, "walker").unwrap_or_else(|| panic!("{:?}: {first}", self.kind));
        assert_eq!(own["apiVersion"], self.kind.api_version());
        assert_eq!(own["fieldsV1"]["f:metadata"]["f:annotations"]["f:applied"], json!({}), "{:?}", self.kind);
        let again = self.applied("", "walker", &config, 200).await;
        assert_eq!(owner(&again, "walker"), Some(own), "{:?}: twice is not once", self.kind);
        let mut other = json!({"apiVersion": config["apiVersion"], "kind": config["kind"]});
        other["metadata"] = json!({"name": self.name, "annotations": {"applied": "2"}});
        let refused = self.applied("", "other", &other, 409).await;
        let text = "Apply failed with 1 conflict: conflict with \"walker\"";
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(
            message.starts_with(text) && message.ends_with(": .metadata.annotations.applied"),
            "{refused}"
        );
        let taken = self.applied("", "other&force=true", &other, 200).await;
        assert_eq!(taken["metadata"]["annotations"]["applied"], "2", "{:?}", self.kind);
        if self.kind.has(Subresource::Status) {
            let status = json!({"apiVersion": config["apiVersion"], "kind": config["kind"], "status": {}});
            self.applied("/status", "observer", &status, 200).await;
        }
    }

    async fn applied(&self, subresource: &str, query: &str, config: &Value, code: u16) -> Value {
        let path = format!("{}{subresource}?fieldManager={query}", self.path());
        let answer = self.server.patch(&path, "application/apply-patch+yaml", &config.to_string()).await;
        assert_eq!(answer.code, code, "{:?}: {path} {}", self.kind, answer.text);
        answer.json()
    }

    /// As rows, and as metadata alone.
    async fn look(&self) {
        for path in [self.path(), self.collection.clone()] {
            let table = self.server.get_as(&path, TABLE).await.json();
            assert_eq!(table["kind"], "Table", "{:?}", self.kind);
            let columns = table["columnDefinitions"].as_array().unwrap().len();
            for row in table["rows"].as_array().unwrap() {
                assert_eq!(row["cells"].as_array().unwrap().len(), columns, "{:?}", self.kind);
            }
        }
        let form = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        let list = self.server.get_as(&self.collection, form).await.json();
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        let head = self.server.call(&format!("HEAD {}", self.path()), &Value::Null).await;
        assert_eq!((head.code, head.text.as_str()), (200, ""), "{:?}", self.kind);
    }

    /// As protobuf it is the same: read, in a list, in a watch, its metadata, and written back.
    async fn messages(&self, revision: &str) {
        let definition = &*self.kind.definition;
        let read = self.server.get(&self.path()).await;
        let answer = self.server.get_as(&self.path(), PROTOBUF).await;
        assert_eq!(object(definition, &answer.bytes), read, "{:?}", self.kind);
        let list_definition = definition.strip_suffix(&*self.kind.kind).unwrap().to_owned();
        let list_definition = list_definition + &self.kind.list_kind;
        let list = self.server.get_as(&self.collection, PROTOBUF).await;
        let json = self.server.get(&self.collection).await;
        assert_eq!(object(&list_definition, &list.bytes), json, "{:?}", self.kind);
        let selector = format!("fieldSelector=metadata.name%3D{}", self.name);
        let line = format!("GET {}?watch=1&resourceVersion={revision}&{selector}", self.collection);
        let (event_type, first) =
            event(definition, &self.server.first_bytes(&line, &[ACCEPT_PROTOBUF]).await);
        assert_eq!((event_type.as_str(), &first["metadata"]["name"]), ("ADDED", &read["metadata"]["name"]));
        let metadata = self.metadata_alone_is_protobuf().await;
        assert_eq!(message(definition, &metadata)["metadata"], read["metadata"]);
        let headers = [ACCEPT_PROTOBUF, ("content-type", PROTOBUF)];
        let put = self.server.put_bytes(&self.path(), &headers, answer.bytes).await;
        // Of an APIService the server itself writes whether its server is there.
        assert!(matches!(put.code, 200 | 409), "{:?}: {}", self.kind, put.text);
    }

    /// The envelope of the metadata of the object, and of the list.
    async fn metadata_alone_is_protobuf(&self) -> bytes::Bytes {
        let form = |kind: &str| format!("{PROTOBUF};as={kind};v=v1;g=meta.k8s.io");
        let list = self.server.get_as(&self.collection, &form("PartialObjectMetadataList")).await;
        assert_eq!((list.code, &list.headers["content-type"]), (200, &PROTOBUF.parse().unwrap()));
        if self.kind.is_custom {
            assert_eq!(self.server.get_as(&self.path(), PROTOBUF).await.code, 406);
        }
        let one = self.server.get_as(&self.path(), &form("PartialObjectMetadata")).await;
        assert_eq!((one.code, &one.headers["content-type"]), (200, &PROTOBUF.parse().unwrap()));
        one.bytes
    }

    async fn remove(&self) {
        let immediately = "gracePeriodSeconds=0&propagationPolicy=Background";
        let delete = format!("DELETE {}?{immediately}", self.path());
        self.ok(&delete, &Value::Null, &[200, 202]).await;
        self.release().await;
        if self.has("deletecollection") {
            self.applied("", "walker", &self.object, 201).await;
            let selector = format!("fieldSelector=metadata.name%3D{}", self.name);
            let line = format!("DELETE {}?{immediately}&{selector}", self.collection);
            self.ok(&line, &Value::Null, &[200]).await;
            self.release().await;
        }
        let gone = self.server.call(&format!("GET {}", self.path()), &Value::Null).await;
        assert_eq!(gone.code, 404, "{:?}: {}", self.kind, gone.text);
    }

    /// Takes away what holds an object although it is deleted: here are no controllers that would.
    async fn release(&self) {
        let held = self.server.call(&format!("GET {}", self.path()), &Value::Null).await;
        if held.code == 404 {
            return;
        }
        if &*self.kind.plural == "namespaces" {
            let mut namespace = held.json();
            namespace["spec"]["finalizers"] = json!([]);
            self.ok(&format!("PUT {}/finalize", self.path()), &namespace, &[200]).await;
            return;
        }
        let body = json!({"metadata": {"finalizers": null}}).to_string();
        self.server.patch(&self.path(), "application/merge-patch+json", &body).await;
    }
}
