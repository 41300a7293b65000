//! list: objects of a namespace or of all (`handlers/get.go`, `ListResource`).

use super::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use apimachinery::status::Status;

/// What the query selects.
pub(crate) async fn list(scope: &Scope) -> Result<Answer, Status> {
    let mut options = scope.query.list_options(&scope.kind)?;
    options.predicate.only_initialized = scope.sees_only_initialized();
    let list = scope.server.registry.list(&scope.kind, scope.namespace(), &options).await?;
    Ok(Answer::List(list))
}
