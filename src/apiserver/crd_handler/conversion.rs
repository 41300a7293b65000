//! Webhook conversion (`apiserver/conversion/webhook_converter.go`): a ConversionReview out, the converted
//! objects back, and a close look at them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use sync::Mutex;

use crate::registry::CustomResourceConverter;
use crate::webhook::{ClientConfig, ServiceResolver, WebhookClient};
use apimachinery::gvk::GroupVersion;
use apimachinery::managed_fields;
use apimachinery::status::Status;
use apis::apiextensions::custom_resource::CustomResource;
use clock::Clock;
use entropy::Entropy;

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Clients that are kept, by their configuration; beyond it all are made anew.
const MAX_CLIENTS: usize = 64;

/// Asks the webhooks that definitions name.
pub(super) struct WebhookConverter {
    resolver: ServiceResolver,
    clock: Clock,
    entropy: Entropy,
    clients: Mutex<BTreeMap<String, WebhookClient>>,
}

impl WebhookConverter {
    /// Over a resolver of Services; `entropy` draws the uids of the reviews.
    pub(super) fn new(resolver: ServiceResolver, clock: &Clock, entropy: &Entropy) -> Arc<WebhookConverter> {
        let (clock, entropy, clients) = (clock.clone(), entropy.clone(), Mutex::default());
        Arc::new(WebhookConverter { resolver, clock, entropy, clients })
    }

    fn client(&self, config: &Value) -> Result<WebhookClient, String> {
        let key = config.to_string();
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        let client = WebhookClient::new(ClientConfig::from_tree(config)?, &self.resolver, &self.clock);
        // An answer is about as large as what was sent, which is no request of a client.
        let client = client.reading_up_to(usize::MAX / 2);
        clients.insert(key, client.clone());
        Ok(client)
    }

    async fn ask(&self, webhook: &Value, objects: &[Value], api_version: &str) -> Result<Vec<Value>, String> {
        let client = self.client(&webhook["clientConfig"])?;
        let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        let known = versions.filter_map(Value::as_str).find(|version| matches!(*version, "v1" | "v1beta1"));
        let review_version = format!("apiextensions.k8s.io/{}", known.unwrap_or("v1"));
        let uid = self.entropy.uid();
        let mut objects = objects.to_vec();
        objects.iter_mut().for_each(managed_fields::expand);
        let review = json!({"apiVersion": review_version, "kind": "ConversionReview", "request": {
            "uid": uid, "desiredAPIVersion": api_version, "objects": objects}});
        let answer = client.call(&review, TIMEOUT).await.map_err(|error| error.message)?;
        converted(&answer, &review_version, &uid)
    }
}

impl CustomResourceConverter for WebhookConverter {
    fn convert<'a>(
        &'a self,
        custom: &'a CustomResource,
        objects: Vec<Value>,
        api_version: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        async move {
            let Some(webhook) = &custom.webhook else { return Ok(objects) };
            let first = objects.first().map(gvk_of).unwrap_or_default();
            let refuse =
                |text: String| Status::failure(500, "", format!("conversion webhook for {first} {text}"));
            let answered = self.ask(webhook, &objects, api_version).await;
            let mut answered = answered.map_err(|error| refuse(format!("failed: {error}")))?;
            if answered.len() != objects.len() {
                let (found, wanted) = (answered.len(), objects.len());
                return Err(refuse(format!("returned {found} objects, expected {wanted}")));
            }
            for (at, (before, after)) in objects.iter().zip(&mut answered).enumerate() {
                check(before, after, api_version).map_err(|error| {
                    refuse(format!("returned invalid converted object at index {at}: {error}"))
                })?;
                restore_metadata(before, after).map_err(|error| {
                    refuse(format!("returned invalid metadata in object at index {at}: {error}"))
                })?;
            }
            Ok(answered)
        }
        .boxed()
    }
}

fn gvk_of(object: &Value) -> String {
    let version = GroupVersion::parse(object["apiVersion"].as_str().unwrap_or_default());
    let version = version.unwrap_or_else(|| GroupVersion::new("", ""));
    version.kind(object["kind"].as_str().unwrap_or_default()).to_string()
}

/// `getConvertedObjectsFromResponse`
fn converted(answer: &Value, review_version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let wanted = json!({"apiVersion": review_version, "kind": "ConversionReview"});
    if (&answer["apiVersion"], &answer["kind"]) != (&wanted["apiVersion"], &wanted["kind"]) {
        return Err(format!("expected webhook response of {}, got {}", gvk_of(&wanted), gvk_of(answer)));
    }
    let response = &answer["response"];
    if response.is_null() {
        return Err("no response provided".into());
    }
    if response["uid"] != uid {
        let found = response["uid"].as_str().unwrap_or_default();
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let result = &response["result"];
    if result["status"] != "Success" {
        let (status, message) = (result["status"].as_str().unwrap_or_default(), result["message"].as_str());
        let default = || format!("response.result.status was '{status}', not 'Success'");
        return Err(message.filter(|message| !message.is_empty()).map_or_else(default, str::to_owned));
    }
    Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default())
}

/// `validateConvertedObject`
fn check(before: &Value, after: &Value, api_version: &str) -> Result<(), String> {
    if after["apiVersion"] != api_version {
        let found = after["apiVersion"].as_str().unwrap_or_default();
        return Err(format!("invalid groupVersion (expected {api_version}, received {found})"));
    }
    let fields = [
        ("kind", "/kind"),
        ("name", "/metadata/name"),
        ("namespace", "/metadata/namespace"),
        ("UID", "/metadata/uid"),
    ];
    for (name, pointer) in fields {
        let of = |tree: &Value| tree.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (expected, actual) = (of(before), of(after));
        if expected != actual {
            return Err(format!("must have the same {name}: {expected} != {actual}"));
        }
    }
    Ok(())
}

/// `restoreObjectMeta`: of metadata a webhook may change labels and annotations.
fn restore_metadata(before: &Value, after: &mut Value) -> Result<(), String> {
    let Some(given) = after.get("metadata") else {
        return Err("missing metadata in converted object".into());
    };
    if !given.is_object() {
        return Err("invalid metadata in converted object: must be an object".into());
    }
    let mut metadata = before["metadata"].clone();
    for field in ["labels", "annotations"] {
        let given = &after["metadata"][field];
        match given {
            Value::Null => drop(metadata.as_object_mut().and_then(|map| map.remove(field))),
            Value::Object(map) if map.values().all(Value::is_string) => metadata[field] = given.clone(),
            _ => return Err(format!("{field} must be strings")),
        }
    }
    after["metadata"] = metadata;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_webhook_answers_is_looked_at() {
        let review = |response: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
        let read = |answer: &Value| converted(answer, "apiextensions.k8s.io/v1", "u");
        let failed = review(json!({"uid": "u", "result": {"status": "Failure", "message": "no"}}));
        assert_eq!(read(&failed), Err("no".into()));
        assert_eq!(read(&review(json!({"uid": "x"}))), Err("expected response.uid=\"u\", got \"x\"".into()));
        let wanted =
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=";
        assert_eq!(read(&json!({})), Err(wanted.into()));
        let before = json!({"kind": "F", "apiVersion": "g/v1", "metadata": {"name": "a", "uid": "1", "labels": {"a": "b"}}});
        let mut after = json!({"kind": "F", "apiVersion": "g/v2", "metadata": {"name": "a", "uid": "1", "generation": 9,
            "annotations": {"c": "d"}}});
        assert_eq!(check(&before, &after, "g/v2"), Ok(()));
        restore_metadata(&before, &mut after).unwrap();
        assert_eq!(after["metadata"], json!({"name": "a", "uid": "1", "annotations": {"c": "d"}}));
        after["metadata"]["name"] = json!("b");
        assert_eq!(check(&before, &after, "g/v2"), Err("must have the same name: a != b".into()));
    }
}
