//! create: a new object (`handlers/create.go`).
//! Next: src/apiserver/admission/mod.rs

use super::body::Input;
use super::field_manager::FieldManagement;
use super::initializers::await_initialized;
use super::owners::{FoundOwner, without_duplicates};
use super::request_scope::Scope;
use crate::admission::Operation;
use crate::endpoints::response::answer::Answer;
use crate::registry::rest::ensure_namespace;
use apimachinery::status::Status;

/// Reads the body, fills in defaults, asks admission, hands it to the registry.
pub(crate) async fn create(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let (form, bytes) = (scope.form(), raw.size_bytes());
    let mut object = form.decode(&scope.ctx, raw, options.field_validation)?;
    ensure_namespace(&mut object, scope.namespace())?;
    let sent = scope.as_sent(&object);
    form.apply_defaults(&mut object)?;
    scope.tell_decoded(bytes, sent.as_ref(), &object);
    scope.ctx.name_attempt(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    form.complete(&mut object);
    without_duplicates(&scope.ctx, &mut object, FoundOwner::InRequest);
    FieldManagement::new(scope, &form).update(None, &mut object);
    let attributes = scope.attributes(Operation::Create, scope.ctx.attempted());
    scope.server.admission.admit(&attributes, Some(&mut object), None).await?;
    form.complete(&mut object);
    without_duplicates(&scope.ctx, &mut object, FoundOwner::AfterAdmission);
    let validating = scope.server.admission.validating(&attributes);
    let registry = &scope.server.registry;
    let created = registry.create(&scope.ctx, &scope.kind, scope.namespace(), object, &validating).await?;
    Ok(Answer::Object(201, await_initialized(scope, created).await?))
}
