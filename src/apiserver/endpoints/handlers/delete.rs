//! delete: one object (`handlers/delete.go`).

use bytes::Bytes;
use serde_json::Value;

use super::body::Input;
use super::form::Raw;
use super::request_scope::Scope;
use crate::admission::Operation;
use crate::endpoints::query::check_delete_options;
use crate::endpoints::response::answer::Answer;
use crate::registry::DeleteOutcome;
use apimachinery::decode::{self, BodyFormat};
use apimachinery::options::DeleteOptions;
use apimachinery::protobuf;
use apimachinery::schema::Schemas;
use apimachinery::status::Status;

/// What options are registered in; part of the words.
const META_SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Deletes it, or begins to: then the answer is the object as it waits.
pub(crate) async fn delete(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let options = delete_options(scope, input).await?;
    let attributes = scope.attributes(Operation::Delete, scope.name());
    let validating = scope.server.admission.validating(&attributes);
    let (registry, ctx, kind) = (&scope.server.registry, &scope.ctx, &scope.kind);
    let deleted = registry.delete(ctx, kind, scope.namespace(), scope.name(), &options, &validating).await?;
    let resource = scope.kind.group_resource();
    match deleted {
        DeleteOutcome::Pending(object) => {
            let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
            Ok(Answer::Object(code, object))
        }
        DeleteOutcome::Gone(object) if kind.returns_deleted => Ok(Answer::Object(200, object)),
        DeleteOutcome::Gone(object) => {
            Ok(Answer::Status(Status::deleted(&resource, scope.name(), &object.metadata.uid)))
        }
    }
}

/// From the body, or without one from the query.
pub(crate) async fn delete_options(scope: &mut Scope, input: Input) -> Result<DeleteOptions, Status> {
    let body = body(scope, input).await?;
    let has_body = body.is_some();
    let options = match body {
        Some(tree) => read(tree)?,
        None => scope.query.delete_options()?,
    };
    scope.ctx.dry_run = check_delete_options(&options)?;
    if let Some(audit) = scope.ctx.audit.as_ref().filter(|_| has_body) {
        audit.heard(|| with_options_type(&options));
    }
    scope.ctx.delete_options = Some(Box::new(options.clone()));
    Ok(options)
}

fn with_options_type(options: &DeleteOptions) -> Value {
    let mut tree = serde_json::to_value(options).unwrap_or_default();
    tree["kind"] = "DeleteOptions".into();
    tree["apiVersion"] = "meta.k8s.io/v1".into();
    tree
}

async fn body(scope: &Scope, input: Input) -> Result<Option<Value>, Status> {
    match input.read_if_any(&scope.headers).await? {
        None => Ok(None),
        Some(Raw::Tree(tree)) => Ok(Some(tree)),
        Some(Raw::Bytes(bytes, format)) => parse(&bytes, format).map(Some).map_err(Status::bad_request),
    }
}

fn parse(bytes: &Bytes, format: BodyFormat) -> Result<Value, String> {
    match format {
        BodyFormat::Json => parse_json(bytes),
        BodyFormat::Yaml => parse_json(decode::decode_yaml(bytes)?.0.to_string().as_bytes()),
        BodyFormat::Protobuf => parse_protobuf(bytes),
    }
}

/// Its kind first, then its fields. What is unknown is left out.
fn parse_json(bytes: &[u8]) -> Result<Value, String> {
    let fault = |error: String| format!("couldn't get version/kind; json parse error: {error}");
    let tree: Value = serde_json::from_slice(bytes)
        .map_err(|error| fault(decode::syntax_error(bytes).unwrap_or_else(|| error.to_string())))?;
    if let Some(error) = decode::type_meta_error(&tree) {
        return Err(fault(error));
    }
    let text = |field: &str| tree[field].as_str().unwrap_or_default();
    check_kind(text("apiVersion"), text("kind"))?;
    decode::decode_plain(Schemas::reference(DELETE_OPTIONS), bytes)?;
    Ok(tree)
}

fn parse_protobuf(bytes: &[u8]) -> Result<Value, String> {
    let envelope = protobuf::open(bytes).map_err(|error| error.to_string())?;
    check_kind(&envelope.api_version, &envelope.kind)?;
    protobuf::decode(Schemas::reference(DELETE_OPTIONS), envelope.raw).map_err(|error| error.to_string())
}

/// Options are registered in every group and version, so only the kind counts.
fn check_kind(api_version: &str, kind: &str) -> Result<(), String> {
    match kind {
        "" | "DeleteOptions" => Ok(()),
        kind => Err(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme {META_SCHEME:?}"
        )),
    }
}

fn read(tree: Value) -> Result<DeleteOptions, Status> {
    let fault = |error| Status::bad_request(format!("DeleteOptions cannot be read: {error}"));
    serde_json::from_value(tree).map_err(fault)
}
