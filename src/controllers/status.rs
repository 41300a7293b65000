//! Writing statuses: what is there is kept, what is known is put over it.

use std::sync::Arc;

use serde_json::{Map, Value};

use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::kind::Kind;
use client_go::client::Client;

/// Updates the status of `object`. When somebody else was first, once more on the object as it is now: an
/// observer overwrites what was observed before.
pub(crate) async fn update_status(
    client: &Client,
    kind: &Kind,
    object: &Object,
    put: impl Fn(&mut Map<String, Value>),
) -> Result<Arc<Object>, Status> {
    let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
    match client.update_status(kind, namespace, name, with_status(object, &put)).await {
        Err(error) if error.is_conflict() => {}
        other => return other,
    }
    let fresh = client.get(kind, namespace, name).await?;
    if fresh.metadata.uid != object.metadata.uid {
        return Err(Status::not_found(&kind.group_resource(), name));
    }
    client.update_status(kind, namespace, name, with_status(&fresh, &put)).await
}

/// A number that is left out when it is 0 (`omitempty`).
pub(crate) fn put_count(status: &mut Map<String, Value>, name: &str, count: i64) {
    if count == 0 {
        status.remove(name);
    } else {
        status.insert(name.into(), count.into());
    }
}

fn with_status(object: &Object, put: &impl Fn(&mut Map<String, Value>)) -> Value {
    let mut tree = object.to_value();
    if !tree["status"].is_object() {
        tree["status"] = Value::Object(Map::new());
    }
    if let Some(status) = tree["status"].as_object_mut() {
        put(status);
    }
    tree
}
