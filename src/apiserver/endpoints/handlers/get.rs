//! get: one object (`handlers/get.go`).

use std::sync::Arc;

use super::list::lag;
use super::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use apimachinery::fields::FieldSelector;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::Subresource;

/// The object, whichever part of it the path names; below `scale` as a Scale.
pub(crate) async fn get(scope: &Scope) -> Result<Answer, Status> {
    let (registry, kind) = (&scope.server.registry, &scope.kind);
    let object = match scope.subresource {
        Some(Subresource::Scale) => registry.get_scale(kind, scope.namespace(), scope.name()).await?,
        _ if is_lagging(scope) => get_lagging(scope).await?,
        _ => {
            let resource_version = scope.query.text("resourceVersion");
            registry.get(kind, scope.namespace(), scope.name(), resource_version).await?
        }
    };
    Ok(Answer::Object(200, object))
}

fn is_lagging(scope: &Scope) -> bool {
    scope.ctx.disturbance.as_ref().is_some_and(|disturbance| disturbance.read_at.is_some())
}

/// The object as a watch cache has it that lags.
async fn get_lagging(scope: &Scope) -> Result<Arc<Object>, Status> {
    let mut options = ListOptions::default();
    options.predicate.fields = FieldSelector::equal("metadata.name", scope.name());
    if let Some(disturbance) = &scope.ctx.disturbance {
        lag(disturbance, &mut options);
    }
    let list = scope.server.registry.list(&scope.kind, scope.namespace(), &options).await?;
    let found = list.items.first().cloned();
    found.ok_or_else(|| Status::not_found(&scope.kind.group_resource(), scope.name()))
}
