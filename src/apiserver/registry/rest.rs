//! What the registry calls back, and what stands where it has no storage
//! (`k8s.io/apiserver/pkg/registry/rest`): interfaces between rooms that must not know each other.
//!
//! [`Validating`] is admission, [`UpdatedObjectInfo`] what a verb makes of an object, [`Review`] a kind that
//! is answered and never kept, such as a SubjectAccessReview (`rest.Creater` without storage): the create
//! endpoint decodes the question, asks admission, and sends back what comes out.

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::request::RequestContext;
use apimachinery::status::Status;

/// Validating admission, called last, when the object is as it will be written (`rest.ValidateObjectFunc`).
pub trait Validating: Send + Sync {
    /// `new` is missing on a delete, `old` on a create. Trees are in the requested version's form.
    fn validate<'a>(
        &'a self,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

/// Admits everything.
impl Validating for () {
    fn validate<'a>(
        &'a self,
        _: Option<&'a Value>,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What an update makes of the current object (`rest.UpdatedObjectInfo`): a PUT replaces it, a patch changes
/// it. Mutating admission belongs in here. It is asked again when somebody else was faster.
pub trait UpdatedObjectInfo: Send + Sync {
    /// `current` is missing when the object does not exist and the update may create it.
    fn change<'a>(&'a self, current: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>>;
}

impl<F: Fn(Option<&Value>) -> Result<Value, Status> + Send + Sync> UpdatedObjectInfo for F {
    fn change<'a>(&'a self, current: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(self(current)))
    }
}

/// Answers one kind of review.
pub trait Review: Send + Sync {
    /// Of its group and plural, as `("authorization.k8s.io", "subjectaccessreviews")`; all versions alike.
    fn resource(&self) -> (&'static str, &'static str);

    /// The review with its `status`. Trees are without `apiVersion` and `kind`; `namespace` is empty for
    /// cluster-scoped kinds.
    ///
    /// # Errors
    /// What is wrong with the question.
    fn review<'a>(
        &'a self,
        ctx: &'a RequestContext,
        namespace: &'a str,
        question: Value,
    ) -> BoxFuture<'a, Result<Value, Status>>;
}

/// `rest.EnsureObjectNamespaceMatchesRequestNamespace`: an object without a namespace gets the request's;
/// one of a cluster-scoped kind, whose request has none, loses its own.
///
/// # Errors
/// 400 when the object names another namespace than the request.
pub fn ensure_namespace(object: &mut Value, namespace: &str) -> Result<(), Status> {
    let metadata = metadata_mut(object)?;
    let own = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    match (own, namespace) {
        (own, namespace) if own == namespace => {}
        (_, "") => {
            metadata.remove("namespace");
        }
        ("", namespace) => {
            metadata.insert("namespace".into(), namespace.into());
        }
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

/// The metadata; made when there is none.
fn metadata_mut(object: &mut Value) -> Result<&mut Map<String, Value>, Status> {
    let not_an_object =
        || Status::bad_request("the object provided is unrecognized: it is not a JSON object");
    let map = object.as_object_mut().ok_or_else(not_an_object)?;
    let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().ok_or_else(not_an_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_must_match() {
        for (own, request, result) in [("", "a", "a"), ("a", "a", "a"), ("a", "", "")] {
            let mut tree = json!({"metadata": {"namespace": own}});
            ensure_namespace(&mut tree, request).unwrap();
            assert_eq!(tree["metadata"]["namespace"].as_str().unwrap_or_default(), result);
        }
        let mut tree = json!({"metadata": {"namespace": "b"}});
        assert_eq!(ensure_namespace(&mut tree, "a").unwrap_err().code, 400);
        assert_eq!(ensure_namespace(&mut json!([]), "a").unwrap_err().code, 400);
    }
}
