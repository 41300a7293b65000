//! `pods/eviction`: a delete that respects disruption budgets (`registry/core/pod/storage.EvictionREST`).

use serde::Deserialize;

use crate::admission::Operation;
use crate::endpoints::handlers::body::Input;
use crate::endpoints::handlers::form::{BodyKind, Raw};
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::registry::rest::ensure_namespace;
use apimachinery::status::Status;

/// Evicts the pod that the path names.
pub(crate) async fn evict(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let definition = "io.k8s.api.policy.v1.Eviction";
    let form = BodyKind::named(&scope.server, "policy", version_of(&raw), "Eviction", definition);
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

/// Both versions of an Eviction are acceptable though only one is served (`AcceptsGroupVersion`): old clients
/// ask for the resource's version and send their own.
fn version_of(raw: &Raw) -> &'static str {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TypeMeta {
        api_version: String,
    }
    let Raw::Bytes(body, _) = raw else { return "v1" };
    let is_old =
        serde_json::from_slice(body).is_ok_and(|meta: TypeMeta| meta.api_version == "policy/v1beta1");
    if is_old { "v1beta1" } else { "v1" }
}
