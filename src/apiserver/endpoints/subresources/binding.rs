//! `pods/binding`: the scheduler's decision (`registry/core/pod/storage.BindingREST`).

use crate::admission::Operation;
use crate::endpoints::handlers::body::Input;
use crate::endpoints::handlers::form::BodyKind;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::registry::rest::ensure_namespace;
use apimachinery::status::Status;
use apis::kind::Kind;

/// Whether this is the kind whose objects are decisions and are not kept.
pub(crate) fn is_binding(kind: &Kind) -> bool {
    &*kind.plural == "bindings" && kind.group_version.group.is_empty()
}

/// Assigns the pod to the node that the Binding names; answers a Status, as upstream.
pub(crate) async fn bind(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let form = BodyKind::named(&scope.server, "", "v1", "Binding", "io.k8s.api.core.v1.Binding");
    let mut binding = form.decode(&scope.ctx, raw, options.field_validation)?;
    ensure_namespace(&mut binding, scope.namespace())?;
    // A Binding in the collection names its pod itself (`LegacyBindingREST`).
    let name = match scope.subresource {
        Some(_) => scope.name().to_owned(),
        None => binding["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
    };
    let attributes = scope.attributes(Operation::Create, &name);
    scope.server.admission.admit(&attributes, Some(&mut binding), None).await?;
    let validating = scope.server.admission.validating(&attributes);
    let registry = &scope.server.registry;
    registry.bind(&scope.ctx, scope.namespace(), &name, &binding, &validating).await?;
    Ok(Answer::Status(Status::success(201)))
}
