//! exec, attach, portforward, proxy: streams into a container. Nothing runs in a simulated one, so there
//! is nothing to connect to, and the answer says so; but for commands over a WebSocket, which are played.

use serde_json::{Map, Value};

use super::{exec, log};
use crate::admission::Operation;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::websocket;
use crate::registry::Validating;
use apimachinery::status::Status;
use apis::kind::Subresource;

/// 404 for an object that is not there, then what admission says, else 501.
pub(crate) async fn connect(scope: &mut Scope) -> Result<Answer, Status> {
    let object = scope.server.registry.get(&scope.kind, scope.namespace(), scope.name(), None).await?;
    let attributes = scope.attributes(Operation::Connect, scope.name());
    let mut options = options(scope);
    scope.server.admission.admit(&attributes, Some(&mut options), None).await?;
    scope.server.admission.validating(&attributes).validate(Some(&options), None).await?;
    check_host(scope, &object.to_value())?;
    if scope.subresource == Some(Subresource::Exec)
        && websocket::is_wanted(&scope.headers)
        && let Some(upgrade) = scope.upgrade.take()
    {
        return exec::exec(scope, upgrade).await;
    }
    let what = scope.subresource.map_or("", Subresource::name);
    let text =
        format!("{}/{what} is not supported: containers in this cluster are simulated", scope.kind.plural);
    Err(Status::failure(501, "NotImplemented", text))
}

/// There is nobody to connect to before a pod has a node (`streamLocation`, `PortForwardLocation`).
fn check_host(scope: &Scope, pod: &Value) -> Result<(), Status> {
    match scope.subresource {
        Some(Subresource::Exec | Subresource::Attach) => {
            log::container(pod, scope.name(), scope.query.text("container"))?;
        }
        Some(Subresource::PortForward) => {}
        _ => return Ok(()),
    }
    match pod["spec"]["nodeName"].as_str() {
        None | Some("") => {
            Err(Status::bad_request(format!("pod {} does not have a host assigned", scope.name())))
        }
        Some(_) => Ok(()),
    }
}

/// `PodExecOptions` and its like, which admission sees as the object.
fn options(scope: &Scope) -> Value {
    let mut options = Map::new();
    for name in ["stdin", "stdout", "stderr", "tty"] {
        if let Some(flag) = scope.query.flag(name) {
            options.insert(name.into(), flag.into());
        }
    }
    for name in ["container", "path"] {
        if let Some(text) = scope.query.text(name) {
            options.insert(name.into(), text.into());
        }
    }
    let command = scope.query.all("command");
    if !command.is_empty() {
        options.insert("command".into(), command.into());
    }
    let ports: Vec<i64> = scope.query.all("ports").iter().filter_map(|port| port.parse().ok()).collect();
    if !ports.is_empty() {
        options.insert("ports".into(), ports.into());
    }
    Value::Object(options)
}
