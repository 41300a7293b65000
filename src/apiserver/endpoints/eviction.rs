//! `pods/eviction`: a delete that respects disruption budgets (`registry/core/pod/storage.EvictionREST`).

use super::body::Input;
use super::form::Form;
use super::request_scope::{Scope, ensure_namespace};
use super::response::Answer;
use crate::apimachinery::status::Status;
use crate::apiserver::admission::Operation;

/// Evicts the pod that the path names.
pub(super) async fn evict(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let form = Form::named(&scope.server, "policy", "v1", "Eviction", "io.k8s.api.policy.v1.Eviction");
    let mut eviction = form.decode(&scope.ctx, raw, options.field_validation)?;
    ensure_namespace(&mut eviction, scope.namespace())?;
    if eviction["metadata"]["name"] != scope.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let attributes = scope.attributes(Operation::Create, scope.name());
    scope.server.admission.admit(&attributes, Some(&mut eviction), None).await?;
    let validating = scope.server.admission.validating(&attributes);
    let registry = &scope.server.registry;
    registry.evict(&scope.ctx, scope.namespace(), scope.name(), &eviction, &validating).await?;
    Ok(Answer::Status(Status::success(201)))
}
