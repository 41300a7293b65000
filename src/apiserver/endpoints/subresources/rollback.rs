//! `deployments/rollback` of the versions of old: the wish for a former revision
//! (`registry/apps/deployment/storage.RollbackREST`).

use serde_json::{Value, json};

use crate::admission::Operation;
use crate::endpoints::handlers::body::Input;
use crate::endpoints::handlers::form::BodyKind;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::registry::{Part, UpdatedObjectInfo};
use apimachinery::field_error::FieldErrors;
use apimachinery::status::{Status, StatusDetails};

/// Writes the wish into the deployment; its controller does the rest.
pub(crate) async fn roll_back(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let raw = input.read(&scope.headers).await?;
    let options = scope.write_options("CreateOptions")?;
    let kind = scope.kind.clone();
    let (group, version) = (&*kind.group_version.group, &*kind.group_version.version);
    let definition = format!("io.k8s.api.{group}.{version}.DeploymentRollback");
    let form = BodyKind::named(&scope.server, group, version, "DeploymentRollback", &definition);
    let wish = form.decode(&scope.ctx, raw, options.field_validation)?;
    if wish["name"] != scope.name() {
        let mut errors = FieldErrors::default();
        errors.invalid("name", &wish["name"], "name in URL does not match name in DeploymentRollback object");
        let shown = kind.group_version.kind("DeploymentRollback");
        return Err(Status::invalid(&shown, scope.name(), &errors));
    }
    let change = |current: Option<&Value>| -> Result<Value, Status> {
        let mut new = current.cloned().unwrap_or_default();
        new["spec"]["rollbackTo"] = json!({"revision": wish["rollbackTo"]["revision"].as_i64().unwrap_or(0)});
        for (name, value) in wish["updatedAnnotations"].as_object().into_iter().flatten() {
            new["metadata"]["annotations"][name] = value.clone();
        }
        Ok(new)
    };
    let change: &dyn UpdatedObjectInfo = &change;
    let attributes = scope.attributes(Operation::Create, scope.name());
    let validating = scope.server.admission.validating(&attributes);
    let (registry, namespace, name) = (&scope.server.registry, scope.namespace(), scope.name());
    registry.update(&scope.ctx, &kind, namespace, name, Part::Main, change, &validating, false).await?;
    let mut done = Status::success(200);
    done.message = format!("rollback request for deployment {name:?} succeeded");
    let (name, kind) = (name.to_owned(), "deployments".to_owned());
    Ok(Answer::Status(done.with_details(StatusDetails { name, kind, ..StatusDetails::default() })))
}
