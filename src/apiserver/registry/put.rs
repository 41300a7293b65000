//! Writing an object that may be too large because of who owns its fields.

use serde_json::Value;

use super::Registry;
use crate::request::RequestContext;
use crate::storage::{Written, is_too_large};
use apimachinery::status::Status;
use apis::kind::Kind;

impl Registry {
    /// Puts `new` if the object is at the revision `expected`. One that is too large is put without its
    /// managed fields, as upstream's handlers do; but not by an apply, whose point they are.
    ///
    /// # Errors
    /// 500 when the store fails, or the object is too large for it all the same.
    pub(super) async fn put(
        &self,
        ctx: &RequestContext,
        kind: &Kind,
        key: &str,
        expected: u64,
        new: &Value,
    ) -> Result<Written, Status> {
        let storage = &self.0.storage;
        match storage.put(kind, key, expected, new, ctx.cause()).await {
            Err(status) if is_too_large(&status) && !ctx.is_apply => {
                let Some(smaller) = without_managed_fields(new) else { return Err(status) };
                storage.put(kind, key, expected, &smaller, ctx.cause()).await
            }
            done => done,
        }
    }
}

/// Nothing where there are none.
fn without_managed_fields(object: &Value) -> Option<Value> {
    object["metadata"].get("managedFields")?;
    let mut smaller = object.clone();
    smaller["metadata"].as_object_mut()?.remove("managedFields");
    Some(smaller)
}
