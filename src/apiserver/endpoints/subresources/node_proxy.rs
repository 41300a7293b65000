//! `nodes/proxy`: the API of a node's kubelet (`registry/core/node/rest/rest.go`, `pkg/kubelet/server`).
//! Streams and logs go the way that those of pods go, everything else is the kubelet's own.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use serde_json::Value;

use super::command_streams::CommandStreams;
use super::streams::UpgradeTo;
use super::{attach, exec, log, port_forward, streams};
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::kubelet_client::{
    AttachRequest, ExecRequest, KubeletRequest, LogRequest, PodLogOptions, PortForwardRequest,
};
use apimachinery::status::Status;
use apimachinery::wire::ApiResponse;
use apis::tree::text;

/// What a path of the kubelet's leads to.
#[derive(Debug, PartialEq)]
enum KubeletPath<'a> {
    Logs(&'a str, &'a str, &'a str),
    Run(&'a str, &'a str, &'a str),
    Exec(&'a str, &'a str, &'a str),
    Attach(&'a str, &'a str, &'a str),
    PortForward(&'a str, &'a str),
    Other,
}

impl KubeletPath<'_> {
    /// A pod's uid may stand behind its name.
    fn parse(path: &str) -> KubeletPath<'_> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        match segments[..] {
            ["containerLogs", namespace, pod, container] => KubeletPath::Logs(namespace, pod, container),
            [verb, namespace, pod, container] | [verb, namespace, pod, _, container] => match verb {
                "run" => KubeletPath::Run(namespace, pod, container),
                "exec" => KubeletPath::Exec(namespace, pod, container),
                "attach" => KubeletPath::Attach(namespace, pod, container),
                "portForward" if segments.len() == 4 => KubeletPath::PortForward(namespace, pod),
                _ => KubeletPath::Other,
            },
            ["portForward", namespace, pod] => KubeletPath::PortForward(namespace, pod),
            _ => KubeletPath::Other,
        }
    }
}

/// Asks the kubelet of `node` at `path`.
pub(super) async fn proxy(scope: &mut Scope, node: &Value, path: &str) -> Result<Answer, Status> {
    let node = text(node, "metadata.name").to_owned();
    let target = KubeletPath::parse(path);
    match target {
        KubeletPath::Logs(namespace, pod, container) => logs(scope, node, (namespace, pod, container)).await,
        KubeletPath::Run(namespace, pod, container) => run(scope, node, (namespace, pod, container)).await,
        KubeletPath::Exec(namespace, pod, container) => {
            let request = exec_request(node, (namespace, pod, container), scope.query.all("command"));
            let upgrade = upgrade(scope)?;
            exec::exec_over(scope, request, kubelet_streams(scope), upgrade)
        }
        KubeletPath::Attach(namespace, pod, container) => {
            let wanted = kubelet_streams(scope);
            let request = AttachRequest {
                node,
                namespace: namespace.into(),
                pod: pod.into(),
                container: container.into(),
                reads: wanted.reads,
            };
            let upgrade = upgrade(scope)?;
            attach::attach_over(scope, request, wanted, upgrade).await
        }
        KubeletPath::PortForward(namespace, pod) => {
            let request = PortForwardRequest { node, namespace: namespace.into(), pod: pod.into(), port: 0 };
            let upgrade = upgrade(scope)?;
            port_forward::port_forward_over(scope, upgrade, request)
        }
        KubeletPath::Other => {
            let request = KubeletRequest { node, method: scope.method.clone(), path: path.to_owned() };
            Ok(Answer::Raw(scope.server.kubelets.ask(request).await?))
        }
    }
}

fn upgrade(scope: &mut Scope) -> Result<(OnUpgrade, UpgradeTo), Status> {
    let upgrade = scope.upgrade.take().zip(streams::wanted(&scope.headers));
    upgrade.ok_or_else(|| Status::bad_request("Upgrade request required"))
}

/// As the kubelet's query says it, and not the apiserver's.
fn kubelet_streams(scope: &Scope) -> CommandStreams {
    let flag = |name| scope.query.text(name) == Some("1");
    CommandStreams { reads: flag("input"), is_terminal: flag("tty"), sends: (flag("output"), flag("error")) }
}

fn exec_request(
    node: String,
    (namespace, pod, container): (&str, &str, &str),
    command: Vec<&str>,
) -> ExecRequest {
    ExecRequest {
        node,
        namespace: namespace.into(),
        pod: pod.into(),
        container: container.into(),
        command: command.into_iter().map(str::to_owned).collect(),
        ..ExecRequest::default()
    }
}

async fn logs(
    scope: &Scope,
    node: String,
    (namespace, pod, container): (&str, &str, &str),
) -> Result<Answer, Status> {
    let options: PodLogOptions = log::read_options(&scope.query)?;
    let request = LogRequest {
        node,
        namespace: namespace.into(),
        pod: pod.into(),
        container: container.into(),
        options,
    };
    Ok(log::text(scope.server.kubelets.logs(request).await?))
}

/// `run`: a command whose words are parted by blanks; both its outputs come back.
async fn run(scope: &Scope, node: String, target: (&str, &str, &str)) -> Result<Answer, Status> {
    if scope.method != Method::POST {
        let mut response = ApiResponse::new(Body::from("405: Method Not Allowed"));
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return Ok(Answer::Raw(response));
    }
    let command = scope.query.text("cmd").unwrap_or_default();
    let request = exec_request(node, target, command.split(' ').collect());
    let executed = scope.server.kubelets.exec(request).await?;
    if executed.code != 0 {
        let why = format!("command '{command}' exited with {}: {}", executed.code, executed.errors);
        return Err(Status::internal(why));
    }
    let mut said = (executed.out + &executed.errors).into_bytes();
    said.extend(executed.bytes);
    let mut response = ApiResponse::new(Body::from(said));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(Answer::Raw(response))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_containers() {
        assert_eq!(KubeletPath::parse("/containerLogs/ns/p/c"), KubeletPath::Logs("ns", "p", "c"));
        assert_eq!(KubeletPath::parse("/exec/ns/p/uid/c"), KubeletPath::Exec("ns", "p", "c"));
        assert_eq!(KubeletPath::parse("/run/ns/p/c/"), KubeletPath::Run("ns", "p", "c"));
        assert_eq!(KubeletPath::parse("/portForward/ns/p/uid"), KubeletPath::PortForward("ns", "p"));
        assert_eq!(KubeletPath::parse("/portForward/ns/p"), KubeletPath::PortForward("ns", "p"));
        assert_eq!(KubeletPath::parse("/pods"), KubeletPath::Other);
        assert_eq!(KubeletPath::parse("/a/b/c/d"), KubeletPath::Other);
    }
}
