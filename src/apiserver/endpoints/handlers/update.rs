//! update: PUT of a whole object, or of one of its parts (`handlers/update.go`).

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::body::Input;
use super::field_manager::FieldManagement;
use super::form::BodyKind;
use super::initializers::delete_failed;
use super::owners::{FoundOwner, without_duplicates};
use super::request_scope::{Scope, ensure_name};
use crate::admission::Operation;
use crate::endpoints::response::answer::Answer;
use crate::registry::UpdatedObjectInfo;
use crate::registry::rest::ensure_namespace;
use apimachinery::status::Status;
use apis::kind::Subresource;

/// Replaces the object; a kind that allows it is created by this.
pub(crate) async fn update(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("UpdateOptions")?;
    let (form, bytes) = (scope.form(), raw.size_bytes());
    let mut object = form.decode(&scope.ctx, raw, options.field_validation)?;
    ensure_namespace(&mut object, scope.namespace())?;
    ensure_name(&object, scope.name())?;
    let sent = scope.as_sent(&object);
    form.apply_defaults(&mut object)?;
    scope.tell_decoded(bytes, sent.as_ref(), &object);
    without_duplicates(&scope.ctx, &mut object, FoundOwner::InRequest);
    write(scope, &form, &Replace(object), false).await
}

/// What an update makes of the current object, before admission.
pub(crate) trait Edit: Send + Sync {
    /// The new object; `current` is missing when it does not exist yet.
    fn edit(&self, current: Option<&Value>) -> Result<Value, Status>;

    /// Whether the owners of fields are already set in what it makes.
    fn tracks_fields(&self) -> bool {
        false
    }
}

/// PUT: the new object whatever the current one is.
struct Replace(Value);

impl Edit for Replace {
    fn edit(&self, _current: Option<&Value>) -> Result<Value, Status> {
        Ok(self.0.clone())
    }
}

/// Hands an edit to the registry, with admission around it: the common end of PUT and PATCH. An apply creates
/// what is missing.
pub(crate) async fn write(
    scope: &Scope,
    form: &BodyKind,
    edit: &dyn Edit,
    create_if_missing: bool,
) -> Result<Answer, Status> {
    let attributes = scope.attributes(Operation::Update, scope.name());
    let validating = scope.server.admission.validating(&attributes);
    let change = Admitted { scope, form, edit };
    let (registry, ctx, kind) = (&scope.server.registry, &scope.ctx, &scope.kind);
    let (namespace, name) = (scope.namespace(), scope.name());
    if scope.subresource == Some(Subresource::Scale) {
        let scale = registry.update_scale(ctx, kind, namespace, name, &change, &validating).await?;
        return Ok(Answer::Object(200, scale));
    }
    let part = scope.part();
    let (object, is_new) =
        registry.update(ctx, kind, namespace, name, part, &change, &validating, create_if_missing).await?;
    delete_failed(scope, &object).await?;
    Ok(Answer::Object(if is_new { 201 } else { 200 }, object))
}

/// An edit and then mutating admission: asked again when somebody else was faster.
struct Admitted<'s> {
    scope: &'s Scope,
    form: &'s BodyKind,
    edit: &'s dyn Edit,
}

impl UpdatedObjectInfo for Admitted<'_> {
    fn change<'a>(&'a self, current: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        async move {
            let mut object = self.edit.edit(current)?;
            if !self.edit.tracks_fields() {
                self.form.complete(&mut object);
                FieldManagement::new(self.scope, self.form).update(current, &mut object);
            }
            let operation = if current.is_some() { Operation::Update } else { Operation::Create };
            let attributes = self.scope.attributes(operation, self.scope.name());
            self.scope.server.admission.admit(&attributes, Some(&mut object), current).await?;
            self.form.complete(&mut object);
            without_duplicates(&self.scope.ctx, &mut object, FoundOwner::AfterAdmission);
            Ok(object)
        }
        .boxed()
    }
}
