//! What the registry calls back, and what stands where it has no storage
//! (`k8s.io/apiserver/pkg/registry/rest`): interfaces between rooms that must not know each other.
//!
//! [`Validating`] is admission, [`Change`] what a verb makes of an object, [`Review`] a kind that is
//! answered and never kept, such as a SubjectAccessReview (`rest.Creater` without storage): the create
//! endpoint decodes the question, asks admission, and sends back what comes out.

use futures::future::BoxFuture;
use serde_json::Value;

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
pub trait Change: Send + Sync {
    /// `current` is missing when the object does not exist and the update may create it.
    fn change<'a>(&'a self, current: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>>;
}

impl<F: Fn(Option<&Value>) -> Result<Value, Status> + Send + Sync> Change for F {
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
