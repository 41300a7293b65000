//! patch: a change to the current object (`handlers/patch.go`): JSON patch, merge patch, strategic merge
//! patch.

use bytes::Bytes;
use serde_json::Value;

use super::body::{Input, media_type};
use super::form::{Form, warn};
use super::negotiation::unsupported_media_type;
use super::query::FieldValidation;
use super::request_scope::{Scope, ensure_name, ensure_namespace};
use super::response::Answer;
use super::update::{Edit, write};
use crate::apimachinery::field_error::{ErrorType, FieldErrors};
use crate::apimachinery::gvk::GroupVersion;
use crate::apimachinery::patch::{PatchError, PatchType, apply};
use crate::apimachinery::status::{Status, StatusDetails};

const APPLY: [&str; 2] = ["application/apply-patch+yaml", "application/apply-patch+cbor"];
const CUSTOM: &str = "application/json-patch+json, application/merge-patch+json";

/// Applies the patch to the object as it is when it is written, so that two patches of different fields do
/// not disturb each other.
pub(super) async fn patch(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let patch_type = patch_type(scope)?;
    let patch = input.bytes(&scope.headers).await?;
    if let Some(audit) = &scope.ctx.audit {
        audit.heard(|| serde_json::from_slice(&patch).unwrap_or_default());
    }
    let options = scope.write_options("PatchOptions")?;
    let form = scope.form();
    let edit = Patch { scope, form: &form, patch_type, patch, validation: options.field_validation };
    write(scope, &form, &edit).await
}

/// Upstream refuses an unknown type of patch in different words for built-in and for custom kinds.
fn patch_type(scope: &Scope) -> Result<PatchType, Status> {
    let media_type = media_type(&scope.headers);
    if APPLY.contains(&media_type.as_str()) {
        let text = "server-side apply is not supported by this server yet: use client-side apply, \
            or a JSON, merge or \
            strategic merge patch";
        return Err(Status::failure(415, "UnsupportedMediaType", text));
    }
    match PatchType::from_media_type(&media_type) {
        Some(PatchType::StrategicMerge) | None if scope.kind.is_custom => Err(unsupported_media_type(CUSTOM)),
        Some(patch_type) => Ok(patch_type),
        None => Err(Status::failure(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(StatusDetails::default())),
    }
}

struct Patch<'s> {
    scope: &'s Scope,
    form: &'s Form,
    patch_type: PatchType,
    patch: Bytes,
    validation: FieldValidation,
}

impl Edit for Patch<'_> {
    fn edit(&self, current: Option<&Value>) -> Result<Value, Status> {
        let Some(current) = current else {
            return Err(Status::not_found(&self.scope.kind.group_resource(), self.scope.name()));
        };
        let current = self.form.with_type(current);
        let patched = apply(&self.form.schema(), self.patch_type, &current, &self.patch).map_err(refused)?;
        let decoded = self.form.decode_tree(patched.value);
        let mut decoded = decoded.map_err(|error| invalid(&patched.shown, error.cause()))?;
        let mut errors = patched.strict_errors;
        errors.append(&mut decoded.strict_errors);
        if self.validation == FieldValidation::Strict && !errors.is_empty() {
            return Err(invalid(&patched.shown, &format!("strict decoding error: {}", errors.join(", "))));
        }
        warn(&self.scope.ctx, &errors, self.validation);
        let mut object = decoded.value;
        self.form.apply_defaults(&mut object);
        ensure_namespace(&mut object, self.scope.namespace())?;
        ensure_name(&object, self.scope.name())?;
        Ok(object)
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

/// The patched object is not one of the kind: upstream says so of a field `patch` of nothing.
fn invalid(shown: &str, why: &str) -> Status {
    let mut errors = FieldErrors::default();
    errors.push("patch", ErrorType::Invalid, format!("{shown:?}"), why);
    Status::invalid(&GroupVersion::new("", "").kind(""), "", &errors)
}
