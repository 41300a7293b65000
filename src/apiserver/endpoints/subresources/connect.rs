//! exec, attach, portforward, proxy: streams into a container (`registry/core/pod/rest/subresources.go`).
//! Commands are played, processes hear what is said to them, and who is known to listen answers.

use serde_json::{Map, Value};

use super::{attach, exec, log, port_forward, proxy, streams};
use crate::admission::Operation;
use crate::endpoints::handlers::body::Input;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::registry::Validating;
use apimachinery::status::Status;
use apis::kind::Subresource;

/// What admission says, 404 for an object that is not there, then the streams.
pub(crate) async fn connect(scope: &mut Scope, input: Input) -> Result<Answer, Status> {
    let name = match scope.subresource {
        Some(Subresource::Proxy) => proxy::object_name(scope)?,
        _ => scope.name(),
    };
    let name = name.to_owned();
    let attributes = scope.attributes(Operation::Connect, scope.name());
    let mut options = options(scope);
    if scope.subresource == Some(Subresource::Proxy) {
        options["path"] = proxy::asked_path(scope).into();
    }
    scope.server.admission.admit(&attributes, Some(&mut options), None).await?;
    scope.server.admission.validating(&attributes).validate(Some(&options), None).await?;
    let object = scope.server.registry.get(&scope.kind, scope.namespace(), &name, None).await?.to_value();
    check_host(scope, &object)?;
    if scope.subresource == Some(Subresource::Proxy) {
        return proxy::proxy(scope, &object, input).await;
    }
    let upgrade = scope.upgrade.take().zip(streams::wanted(&scope.headers));
    let upgrade = upgrade.ok_or_else(|| Status::bad_request("Upgrade request required"))?;
    match scope.subresource {
        Some(Subresource::Exec) => exec::exec(scope, &object, upgrade).await,
        Some(Subresource::Attach) => attach::attach(scope, &object, upgrade).await,
        _ => {
            let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
            port_forward::port_forward(scope, upgrade, node).await
        }
    }
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
