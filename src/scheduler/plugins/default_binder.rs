//! DefaultBinder: writes the binding through the API (`pods/binding`).
//! Next: src/kubelet/kubelet.rs

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use crate::framework::plugin::{BindRequest, Plugin};
use crate::framework::status::Status;
use apis::core::pod::PODS;

/// The plugin.
pub struct DefaultBinder;

impl Plugin for DefaultBinder {
    fn name(&self) -> &'static str {
        "DefaultBinder"
    }

    fn bind<'a>(&'a self, request: BindRequest<'a>) -> Option<BoxFuture<'a, Status>> {
        Some(bind(request).boxed())
    }
}

async fn bind(BindRequest { client, pod, node, .. }: BindRequest<'_>) -> Status {
    let metadata = &pod.object.metadata;
    let (namespace, name) = (&metadata.namespace, &metadata.name);
    let binding = json!({
        "metadata": {"namespace": namespace, "name": name, "uid": metadata.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    match client.create_subresource(&PODS, namespace, name, "binding", binding).await {
        Ok(_) => Status::success(),
        Err(status) => Status::error(status.message),
    }
}
