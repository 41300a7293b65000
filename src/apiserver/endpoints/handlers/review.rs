//! create of a kind that is answered and never kept (`rest.Creater` without storage).

use std::sync::Arc;

use super::body::Input;
use super::request_scope::Scope;
use crate::admission::Operation;
use crate::endpoints::response::answer::Answer;
use crate::registry::Validating;
use crate::registry::rest::{Review, ensure_namespace};
use apimachinery::object::encode_for_storage;
use apimachinery::status::Status;

/// Who answers this kind, if it is one of those.
pub(crate) fn find(scope: &Scope) -> Option<usize> {
    let resource = (&*scope.kind.group_version.group, &*scope.kind.plural);
    scope.server.reviews.iter().position(|review| review.resource() == resource)
}

/// Reads the question, asks admission, sends back the answer.
pub(crate) async fn review(scope: &mut Scope, which: usize, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let form = scope.form();
    let mut question = form.decode(&scope.ctx, raw, options.field_validation)?;
    ensure_namespace(&mut question, scope.namespace())?;
    form.apply_defaults(&mut question)?;
    let attributes = scope.attributes(Operation::Create, "");
    scope.server.admission.admit(&attributes, Some(&mut question), None).await?;
    form.complete(&mut question);
    scope.server.admission.validating(&attributes).validate(Some(&question), None).await?;
    let server = scope.server.clone();
    let reviewer: &dyn Review = &*server.reviews[which];
    let mut answer = reviewer.review(&scope.ctx, scope.namespace(), question).await?;
    form.complete(&mut answer);
    server.aggregator.note_review(&scope.ctx, &answer);
    let body = encode_for_storage(&answer).map_err(Status::internal)?;
    Ok(Answer::Object(201, scope.kind.object(body, 0).map(Arc::new).map_err(Status::internal)?))
}
