//! patch: a change to the current object (`handlers/patch.go`): JSON patch, merge patch, strategic merge
//! patch. Server-side apply is `apply`.

use serde_json::Value;

use super::apply::{self, APPLY_YAML};
use super::body::{Input, PatchBody, patch_media_type};
use super::form::{BodyKind, warn};
use super::request_scope::{Scope, ensure_name};
use super::update::{Edit, write};
use crate::endpoints::query::FieldValidation;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::negotiation::unsupported_media_type;
use crate::registry::rest::ensure_namespace;
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::GroupVersion;
use apimachinery::managed_fields;
use apimachinery::patch::{PatchError, PatchType, Patched, apply_document, show};
use apimachinery::status::{Status, StatusDetails};

const MANAGED_FIELDS: &str = "managedFields";
const CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// Applies the patch to the object as it is when it is written, so that two patches of different fields do
/// not disturb each other.
pub(crate) async fn patch(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    if patch_media_type(&scope.headers) == APPLY_YAML {
        return apply::apply(scope, input).await;
    }
    let patch_type = patch_type(scope)?;
    let patch = input.patch(&scope.headers).await?;
    if let Some(audit) = &scope.ctx.audit {
        audit.heard(|| patch.to_value());
    }
    let options = scope.write_options("PatchOptions")?;
    let form = scope.form();
    let reads_managed_fields = patch.document().mentions(MANAGED_FIELDS);
    let validation = options.field_validation;
    let edit = Patch { scope, form: &form, patch_type, patch, validation, reads_managed_fields };
    write(scope, &form, &edit, false).await
}

/// Upstream refuses an unknown type of patch in different words for built-in and for custom kinds.
fn patch_type(scope: &Scope) -> Result<PatchType, Status> {
    match PatchType::from_media_type(patch_media_type(&scope.headers)) {
        Some(PatchType::StrategicMerge) | None if scope.kind.is_custom => Err(unsupported_media_type(CUSTOM)),
        Some(patch_type) => Ok(patch_type),
        None => Err(Status::failure(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(StatusDetails::default())),
    }
}

struct Patch<'s> {
    scope: &'s Scope,
    form: &'s BodyKind,
    patch_type: PatchType,
    patch: PatchBody,
    validation: FieldValidation,
    /// It may name the owners of fields, which are texts in a tree.
    reads_managed_fields: bool,
}

impl Edit for Patch<'_> {
    fn edit(&self, current: Option<&Value>) -> Result<Value, Status> {
        let Some(current) = current else {
            return Err(Status::not_found(&self.scope.kind.group_resource(), self.scope.name()));
        };
        let patched = self.patched(current)?;
        let is_converted = self.patch_type == PatchType::StrategicMerge;
        let decoded = self.form.decode_tree(patched.value, self.reach(), is_converted);
        let mut decoded = decoded.map_err(|error| self.invalid(current, error.cause()))?;
        if decoded.foreign.as_ref().is_some_and(|foreign| foreign.api_version.is_empty()) {
            return Err(Status::internal(
                "Object 'apiVersion' is missing in 'object has no apiVersion field'",
            ));
        }
        let mut errors = patched.strict_errors;
        errors.append(&mut decoded.strict_errors);
        if self.validation == FieldValidation::Strict && !errors.is_empty() {
            return Err(self.invalid(current, &format!("strict decoding error: {}", errors.join(", "))));
        }
        warn(&self.scope.ctx, &errors, self.validation);
        if let Some(foreign) = &decoded.foreign {
            self.form.check_type(foreign, &decoded.value)?;
        }
        let mut object = decoded.value;
        self.form.apply_defaults(&mut object)?;
        ensure_namespace(&mut object, self.scope.namespace())?;
        ensure_name(&object, self.scope.name())?;
        Ok(object)
    }
}

impl Patch<'_> {
    /// The patch, where nothing but what it reaches has to be read: from a caller in this process, to an
    /// object that is kept in the version that is asked for.
    fn reach(&self) -> Option<&Value> {
        match &self.patch {
            PatchBody::Tree(patch) if self.scope.kind.stored.is_none() => {
                Some(&**patch).filter(|_| self.patch_type != PatchType::Json)
            }
            _ => None,
        }
    }

    fn patched(&self, current: &Value) -> Result<Patched, Status> {
        let mut current = self.form.with_type(current);
        if self.reads_managed_fields {
            managed_fields::expand(&mut current);
        }
        apply_document(&self.form.schema(), self.patch_type, current, self.patch.document()).map_err(refused)
    }

    /// The patched object is not one of the kind: upstream says so of a field `patch` of nothing.
    fn invalid(&self, current: &Value, why: &str) -> Status {
        let mut patched = self.patched(current).map(|patched| patched.value).unwrap_or_default();
        managed_fields::expand(&mut patched);
        let shown = show(self.patch_type, &patched, self.patch.document());
        let mut errors = FieldErrors::default();
        errors.invalid("patch", &shown.into(), why);
        Status::invalid(&GroupVersion::new("", "").kind(""), "", &errors)
    }
}

fn refused(error: PatchError) -> Status {
    match error {
        PatchError::BadRequest(text) => Status::bad_request(text),
        PatchError::RequestEntityTooLarge(text) => {
            Status::failure(413, "RequestEntityTooLarge", format!("Request entity too large: {text}"))
        }
        PatchError::Unprocessable(_) => {
            let text = "the server rejected our request due to an error in our request";
            Status::failure(422, "Invalid", text).with_details(StatusDetails::default())
        }
        PatchError::Internal(text) => Status::failure(500, "", text),
    }
}
