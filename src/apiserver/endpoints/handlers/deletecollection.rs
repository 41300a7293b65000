//! deletecollection: all objects that the query selects (`handlers/delete.go`, `DeleteCollection`).

use super::body::Input;
use super::delete::delete_options;
use super::request_scope::Scope;
use crate::admission::Operation;
use crate::endpoints::response::answer::Answer;
use apimachinery::status::Status;

/// Answers with the list of what was deleted.
pub(crate) async fn delete_collection(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let list_options = scope.query.list_options(&scope.kind)?;
    let options = delete_options(scope, input).await?;
    let attributes = scope.attributes(Operation::Delete, "");
    let validating = scope.server.admission.validating(&attributes);
    let (registry, ctx, kind) = (&scope.server.registry, &scope.ctx, &scope.kind);
    let namespace = scope.namespace();
    let list = registry.delete_collection(ctx, kind, namespace, &options, &list_options, &validating).await?;
    Ok(Answer::List(list))
}
