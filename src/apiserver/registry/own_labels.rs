//! Labels that the server itself puts onto objects of others.

use std::sync::Arc;

use serde_json::Value;

use super::Registry;
use super::store::Part;
use crate::request::RequestContext;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::tree::object_mut;

/// Who owns them.
const MANAGER: &str = "kube-apiserver";

impl Registry {
    /// Labels an object that is there, unless another one has taken its place.
    ///
    /// # Errors
    /// 404 when it is gone; the store's.
    pub async fn label(
        &self,
        kind: &Arc<Kind>,
        object: &Object,
        label: &str,
        value: &str,
    ) -> Result<(), Status> {
        let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
        let gone = || Status::not_found(&kind.group_resource(), name);
        let change = |current: Option<&Value>| -> Result<Value, Status> {
            let before =
                current.filter(|it| it["metadata"]["uid"] == object.metadata.uid).ok_or_else(gone)?;
            let mut new = before.clone();
            object_mut(&mut new, "metadata.labels").insert(label.to_owned(), value.into());
            self.own(kind, MANAGER, Some(before), &mut new);
            Ok(new)
        };
        let ctx = RequestContext::default();
        self.update(&ctx, kind, namespace, name, Part::Main, &change, &(), false).await.map(drop)
    }
}
