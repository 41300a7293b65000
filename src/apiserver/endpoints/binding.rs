//! `pods/binding`: the scheduler's decision (`registry/core/pod/storage.BindingREST`).

use super::body::Input;
use super::form::Form;
use super::request_scope::{Scope, ensure_namespace};
use super::response::Answer;
use crate::apimachinery::status::Status;
use crate::apiserver::admission::Operation;

/// Assigns the pod to the node that the Binding names; answers a Status, as upstream.
pub(super) async fn bind(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let form = Form::named(&scope.server, "", "v1", "Binding", "io.k8s.api.core.v1.Binding");
    let mut binding = form.decode(&scope.ctx, raw, options.field_validation)?;
    ensure_namespace(&mut binding, scope.namespace())?;
    let attributes = scope.attributes(Operation::Create, scope.name());
    scope.server.admission.admit(&attributes, Some(&mut binding), None).await?;
    let validating = scope.server.admission.validating(&attributes);
    let registry = &scope.server.registry;
    registry.bind(&scope.ctx, scope.namespace(), scope.name(), &binding, &validating).await?;
    Ok(Answer::Status(Status::success(201)))
}
