//! exec, attach, portforward, proxy: streams into a container. Nothing runs in a simulated one, so there is
//! nothing to connect to, and the answer says so.

use super::request_scope::Scope;
use super::response::Answer;
use crate::apimachinery::status::Status;
use crate::apis::kind::Subresource;

/// 404 for an object that is not there, else 501.
pub(super) async fn connect(scope: &Scope) -> Result<Answer, Status> {
    scope.server.registry.get(&scope.kind, scope.namespace(), scope.name(), None).await?;
    let what = scope.subresource.map_or("", Subresource::name);
    let text =
        format!("{}/{what} is not supported: containers in this cluster are simulated", scope.kind.plural);
    Err(Status::failure(501, "NotImplemented", text))
}

/// 501 for what this server does not do yet.
pub(super) fn not_built(what: &str) -> Status {
    Status::failure(501, "NotImplemented", format!("{what} is not supported by this server yet"))
}
