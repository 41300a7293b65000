//! list: objects of a namespace or of all (`handlers/get.go`, `ListResource`).

use super::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::request::RequestDisturbance;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;

/// What the query selects.
pub(crate) async fn list(scope: &Scope) -> Result<Answer, Status> {
    let mut options = scope.query.list_options(&scope.kind)?;
    options.predicate.only_initialized = scope.sees_only_initialized();
    if let Some(disturbance) = &scope.ctx.disturbance {
        lag(disturbance, &mut options);
    }
    let list = scope.server.registry.list(&scope.kind, scope.namespace(), &options).await?;
    Ok(Answer::List(list))
}

/// Of a list that takes any state: the state that a watch cache has which lags.
pub(super) fn lag(disturbance: &RequestDisturbance, options: &mut ListOptions) {
    let Some(revision) = disturbance.read_at else { return };
    options.resource_version = Some(revision.to_string());
    options.resource_version_match = Some("Exact".into());
    options.limit = None;
}
