//! get: one object (`handlers/get.go`).

use super::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use apimachinery::status::Status;
use apis::kind::Subresource;

/// The object, whichever part of it the path names; below `scale` as a Scale.
pub(crate) async fn get(scope: &Scope) -> Result<Answer, Status> {
    let (registry, kind) = (&scope.server.registry, &scope.kind);
    let object = match scope.subresource {
        Some(Subresource::Scale) => registry.get_scale(kind, scope.namespace(), scope.name()).await?,
        _ => {
            let resource_version = scope.query.text("resourceVersion");
            registry.get(kind, scope.namespace(), scope.name(), resource_version).await?
        }
    };
    Ok(Answer::Object(200, object))
}
