//! Reviews: kinds that are answered and never kept, such as a SubjectAccessReview (upstream's `rest.Creater`
//! without storage).
//!
//! Who knows the answer implements [`Review`]; the create endpoint decodes the question, asks admission, and
//! sends back what comes out. Below the endpoints, so that authentication and authorization can answer
//! without knowing them.

use futures::future::BoxFuture;
use serde_json::Value;

use crate::request::RequestContext;
use apimachinery::status::Status;

/// Answers one kind.
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
