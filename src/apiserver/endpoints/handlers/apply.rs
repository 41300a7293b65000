//! Server-side apply: PATCH with `application/apply-patch+yaml` (`handlers/patch.go`, `applyPatcher`).

use bytes::Bytes;
use serde_json::Value;

use super::body::Input;
use super::field_manager::FieldManagement;
use super::form::{BodyKind, warn_lines};
use super::request_scope::{Scope, ensure_name};
use super::update::{Edit, write};
use crate::endpoints::query::{FieldValidation, WriteOptions};
use crate::endpoints::response::answer::Answer;
use crate::registry::rest::ensure_namespace;
use apimachinery::decode::decode_yaml;
use apimachinery::status::Status;

/// The media type.
pub(crate) const APPLY_YAML: &str = "application/apply-patch+yaml";

/// Lays the configuration over the object as it is when it is written; creates what is not there.
pub(crate) async fn apply(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let config = input.bytes(&scope.headers).await?;
    let options = scope.write_options("ApplyOptions")?;
    scope.ctx.is_apply = true;
    let form = scope.form();
    let edit = Apply { scope, form: &form, config, options };
    write(scope, &form, &edit, true).await
}

struct Apply<'s> {
    scope: &'s Scope,
    form: &'s BodyKind,
    config: Bytes,
    options: WriteOptions,
}

impl Edit for Apply<'_> {
    fn edit(&self, current: Option<&Value>) -> Result<Value, Status> {
        let (config, duplicates) = self.read()?;
        let fields = FieldManagement::new(self.scope, self.form);
        let applied = fields.apply(current, &config, self.options.force.unwrap_or(false))?;
        self.report(duplicates)?;
        let mut object = self.decode(applied, &config)?;
        if current.is_none() {
            self.check_uid(&object)?;
        }
        self.form.fill_defaults(&mut object)?;
        ensure_namespace(&mut object, self.scope.namespace())?;
        ensure_name(&object, self.scope.name())?;
        Ok(object)
    }

    fn tracks_fields(&self) -> bool {
        true
    }
}

impl Apply<'_> {
    fn read(&self) -> Result<(Value, Option<String>), Status> {
        let refuse = |error: String| Status::bad_request(format!("error decoding YAML: {error}"));
        if self.config.iter().all(u8::is_ascii_whitespace) {
            return Ok((Value::Object(Default::default()), None));
        }
        let (config, duplicates) = decode_yaml(&self.config)
            .map_err(|error| refuse(format!("error converting YAML to JSON: {error}")))?;
        let given = match &config {
            Value::Object(_) => return Ok((config, duplicates)),
            Value::Null => return Ok((Value::Object(Default::default()), duplicates)),
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
        };
        Err(refuse(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {given} into Go value of type \
             map[string]interface {{}}"
        )))
    }

    /// Keys that are there twice.
    fn report(&self, duplicates: Option<String>) -> Result<(), Status> {
        let Some(duplicates) = duplicates else { return Ok(()) };
        let text = format!("error converting YAML to JSON: {duplicates}");
        match self.options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => warn_lines(&self.scope.ctx, &text),
            FieldValidation::Strict => {
                return Err(Status::bad_request(format!("error strict decoding YAML: {text}")));
            }
        }
        Ok(())
    }

    /// The merged tree as the kind: what the schema of ownership takes as it is may still be no quantity.
    fn decode(&self, applied: Value, config: &Value) -> Result<Value, Status> {
        let decoded = self.form.decode_tree(self.form.with_type(&applied), None, true).map_err(|error| {
            let text = |field: &str| config["metadata"][field].as_str().unwrap_or_default();
            let (_, gvk) = self.form.names();
            let name = format!("{}/{}; {gvk}", text("namespace"), text("name"));
            let text = format!("failed to convert new typed object ({name}) to object: {}", error.cause());
            Status::failure(500, "", text)
        })?;
        Ok(decoded.value)
    }

    fn check_uid(&self, object: &Value) -> Result<(), Status> {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        if uid.is_empty() {
            return Ok(());
        }
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        Err(Status::conflict(&self.scope.kind.group_resource(), self.scope.name(), &why))
    }
}
