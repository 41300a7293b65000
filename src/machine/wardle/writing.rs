//! What changes the objects of the sample apiserver.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::WardleQuestion;
use super::answers::{GROUP, said, status};
use super::store::{KeptSample, WardleKey, WardleStore};
use super::versions::{kept_of, of_version, wrong};
use crate::requests::WebAnswer;

const MERGE: &str = "application/merge-patch+json";

impl WardleQuestion<'_> {
    pub(super) fn create(&self, store: &mut WardleStore) -> WebAnswer {
        let mut object = match self.written() {
            Ok(object) => object,
            Err(answer) => return answer,
        };
        let metadata = &mut object["metadata"];
        if !metadata.is_object() {
            *metadata = json!({});
        }
        let uid = self.uid(store);
        if metadata["name"].as_str().is_none_or(str::is_empty) {
            let Some(start) = metadata["generateName"].as_str().filter(|start| !start.is_empty()) else {
                return self.invalid("", "metadata.name: Required value: name or generateName is required");
            };
            metadata["name"] = format!("{start}{}", &uid[..5]).into();
        }
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        let is_elsewhere =
            metadata["namespace"].as_str().is_some_and(|own| !own.is_empty() && own != self.namespace);
        if is_elsewhere {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return status(400, "BadRequest", why, json!({}));
        }
        if self.kind.is_namespaced {
            metadata["namespace"] = self.namespace.into();
        }
        metadata["uid"] = uid.into();
        metadata["creationTimestamp"] = self.request.now.into();
        let key = self.key(&name);
        if store.get(&key).is_some() {
            let why = format!("{}.{GROUP} {name:?} already exists", self.kind.plural);
            return status(409, "AlreadyExists", &why, self.details(&name));
        }
        if let Some(refused) = self.refused(store, &name, &object) {
            return refused;
        }
        self.put(store, key, object, 201)
    }

    pub(super) fn update(&self, store: &mut WardleStore) -> WebAnswer {
        match self.written() {
            Ok(object) => self.replace(store, object),
            Err(answer) => answer,
        }
    }

    /// Merged as the version has it that is asked for.
    pub(super) fn patch(&self, store: &mut WardleStore) -> WebAnswer {
        let media_type = self.request.header("content-type").unwrap_or_default();
        if media_type.split(';').next().map(str::trim) != Some(MERGE) {
            let why = format!(
                "the body of the request was in an unknown format - accepted media types include: {MERGE}"
            );
            return status(415, "UnsupportedMediaType", &why, json!({}));
        }
        let patch = match serde_json::from_slice::<Value>(self.request.body) {
            Ok(patch) => patch,
            Err(error) => return status(400, "BadRequest", &error.to_string(), json!({})),
        };
        let Some(kept) = store.get(&self.key(self.name)) else { return self.missing() };
        let mut object = of_version(self.version, self.kind, kept);
        if patch["metadata"]["resourceVersion"].is_null() {
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("resourceVersion"));
        }
        merge(&mut object, &patch);
        let object = kept_of(self.version, self.kind, &object);
        self.replace(store, object)
    }

    fn replace(&self, store: &mut WardleStore, mut object: Value) -> WebAnswer {
        let key = self.key(self.name);
        let Some(old) = store.get(&key).cloned() else { return self.missing() };
        let asked = object["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty());
        if asked.is_some_and(|version| version != old.revision.to_string()) {
            let why = format!(
                "Operation cannot be fulfilled on {}.{GROUP} {:?}: the object has been modified; please apply \
                 your changes to the latest version and try again",
                self.kind.plural, self.name
            );
            return status(409, "Conflict", &why, self.details(self.name));
        }
        if object["metadata"]["name"].as_str().is_some_and(|name| name != self.name) {
            let why = "the name of the object does not match the name on the URL";
            return status(400, "BadRequest", why, json!({}));
        }
        for name in ["name", "namespace", "uid", "creationTimestamp"] {
            if !old.object["metadata"][name].is_null() {
                object["metadata"][name] = old.object["metadata"][name].clone();
            }
        }
        if let Some(refused) = self.invalid_object(self.name, &object) {
            return refused;
        }
        self.put(store, key, object, 200)
    }

    fn put(&self, store: &mut WardleStore, key: WardleKey, mut object: Value, code: u16) -> WebAnswer {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("resourceVersion"));
        match store.put(key, object) {
            Some(kept) => self.object(code, &kept),
            None => status(507, "InternalError", "etcdserver: mvcc: database space exceeded", json!({})),
        }
    }

    pub(super) fn delete(&self, store: &mut WardleStore) -> WebAnswer {
        let Some(KeptSample { object, .. }) = store.remove(&self.key(self.name)) else {
            return self.missing();
        };
        let mut details = self.details(self.name);
        details["uid"] = object["metadata"]["uid"].clone();
        said(
            200,
            &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
        )
    }

    pub(super) fn delete_all(&self, store: &mut WardleStore) -> WebAnswer {
        let answer = self.list(store);
        let name =
            |kept: &&KeptSample| kept.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let names: Vec<String> = self.selected(store).iter().map(name).collect();
        for name in names {
            store.remove(&self.key(&name));
        }
        answer
    }

    /// What was sent, as it is kept.
    fn written(&self) -> Result<Value, WebAnswer> {
        let wrong = |why: String| status(400, "BadRequest", &why, json!({}));
        let object: Value =
            serde_json::from_slice(self.request.body).map_err(|error| wrong(error.to_string()))?;
        let own = (format!("{GROUP}/{}", self.version), self.kind.name);
        let text = |name: &str, usual: &str| match object[name].as_str() {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => usual.to_owned(),
        };
        let said = (text("apiVersion", &own.0), text("kind", own.1));
        if (said.0.as_str(), said.1.as_str()) != (own.0.as_str(), own.1) {
            let why = format!(
                "the object provided is unrecognized (must be of type {}): {} {}",
                own.1, said.0, said.1
            );
            return Err(wrong(why));
        }
        Ok(kept_of(self.version, self.kind, &object))
    }

    /// What its admission says (`BanFlunder`), and its validation.
    fn refused(&self, store: &WardleStore, name: &str, object: &Value) -> Option<WebAnswer> {
        let bans = |kept: &KeptSample| {
            let names = kept.object["disallowedFlunders"].as_array();
            names.into_iter().flatten().any(|banned| banned == name)
        };
        if self.kind.name == "Flunder" && store.all("fischers", "").any(bans) {
            let why = "this name may not be used, please change the resource name";
            let why = format!("{}.{GROUP} {name:?} is forbidden: {why}", self.kind.plural);
            return Some(status(403, "Forbidden", &why, self.details(name)));
        }
        self.invalid_object(name, object)
    }

    fn invalid_object(&self, name: &str, object: &Value) -> Option<WebAnswer> {
        wrong(object).map(|why| self.invalid(name, &why))
    }

    fn invalid(&self, name: &str, why: &str) -> WebAnswer {
        let why = format!("{}.{GROUP} {name:?} is invalid: {why}", self.kind.name);
        status(422, "Invalid", &why, self.details(name))
    }

    fn details(&self, name: &str) -> Value {
        json!({"name": name, "group": GROUP, "kind": self.kind.plural})
    }

    /// Another one for each write, and the same again in a cluster that is played again.
    fn uid(&self, store: &WardleStore) -> String {
        let of = format!("{} {} {}", self.request.address, self.request.now, store.revision());
        let hex: String = Sha256::digest(of).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }
}

/// RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    for (name, value) in changes {
        if value.is_null() {
            object.as_object_mut().map(|members| members.remove(name));
        } else {
            merge(&mut object[name.as_str()], value);
        }
    }
}
