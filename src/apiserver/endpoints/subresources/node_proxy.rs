//! `nodes/proxy`: the API of a node's kubelet (`registry/core/node/rest/rest.go`, `pkg/kubelet/server`).
//! Streams and logs go the way that those of pods go, everything else is the kubelet's own.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Method, Request, StatusCode};
use hyper::upgrade::OnUpgrade;
use serde_json::Value;

use super::asked_streams::AskedStreams;
use super::command_streams::CommandStreams;
use super::pass_on::pass_on;
use super::{attach, exec, log, port_forward, streams};
use crate::endpoints::handlers::body::Input;
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::query::Query;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::routes::debug::is_of_debug;
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
pub(super) async fn proxy(
    scope: &mut Scope,
    node: &Value,
    path: &str,
    input: Input,
) -> Result<Answer, Status> {
    let node = text(node, "metadata.name").to_owned();
    let upgrade = scope.upgrade.take();
    let query = || scope.uri.query().map_or_else(String::new, |query| format!("?{query}"));
    if scope.server.kubelets.is_elsewhere(&node) {
        return pass_on(&AskedStreams::of(scope), upgrade, &node, &format!("{path}{}", query())).await;
    }
    if is_of_debug(path) {
        let mut request = Request::new(Body::from(input.bytes(&scope.headers).await?));
        *request.method_mut() = scope.method.clone();
        *request.uri_mut() =
            format!("{path}{}", query()).parse().map_err(|_| Status::bad_request("no path of a kubelet"))?;
        // The process is one, and what its flags forbid is forbidden here.
        let server = &scope.server;
        let mut response = server.debugging.respond_as_kubelet(path, request, &server.clock).await;
        let below = scope.uri.path().strip_suffix(path).unwrap_or_default();
        if let Some(location) = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()) {
            let moved = HeaderValue::try_from(format!("{below}{location}"));
            moved.into_iter().for_each(|moved| drop(response.headers_mut().insert(LOCATION, moved)));
        }
        return Ok(Answer::Raw(response));
    }
    answer(&AskedStreams::of(scope), upgrade, node, path).await
}

/// What the kubelet of `node` answers at `path`.
pub(super) async fn answer(
    asked: &AskedStreams<'_>,
    upgrade: Option<OnUpgrade>,
    node: String,
    path: &str,
) -> Result<Answer, Status> {
    let wanted = || {
        let upgrade = upgrade.zip(streams::wanted(asked.headers));
        upgrade.ok_or_else(|| Status::bad_request("Upgrade request required"))
    };
    match KubeletPath::parse(path) {
        KubeletPath::Logs(namespace, pod, container) => logs(asked, node, (namespace, pod, container)).await,
        KubeletPath::Run(namespace, pod, container) => run(asked, node, (namespace, pod, container)).await,
        KubeletPath::Exec(namespace, pod, container) => {
            let request = exec_request(node, (namespace, pod, container), asked.query.all("command"));
            exec::exec_over(asked, request, kubelet_streams(asked.query), wanted()?)
        }
        KubeletPath::Attach(namespace, pod, container) => {
            let streams = kubelet_streams(asked.query);
            let request = AttachRequest {
                node,
                namespace: namespace.into(),
                pod: pod.into(),
                container: container.into(),
                reads: streams.reads,
            };
            attach::attach_over(asked, request, streams, wanted()?).await
        }
        KubeletPath::PortForward(namespace, pod) => {
            let request = PortForwardRequest { node, namespace: namespace.into(), pod: pod.into(), port: 0 };
            port_forward::port_forward_over(asked, wanted()?, request)
        }
        KubeletPath::Other => {
            let request = KubeletRequest { node, method: asked.method.clone(), path: path.to_owned() };
            Ok(Answer::Raw(asked.kubelets.ask(request).await?))
        }
    }
}

/// As the kubelet's query says it, and not the apiserver's.
fn kubelet_streams(query: &Query) -> CommandStreams {
    let flag = |name| query.text(name) == Some("1");
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
    asked: &AskedStreams<'_>,
    node: String,
    (namespace, pod, container): (&str, &str, &str),
) -> Result<Answer, Status> {
    let options: PodLogOptions = log::read_options(asked.query)?;
    let request = LogRequest {
        node,
        namespace: namespace.into(),
        pod: pod.into(),
        container: container.into(),
        options,
    };
    Ok(log::text(asked.kubelets.logs(request).await?))
}

/// `run`: a command whose words are parted by blanks; both its outputs come back.
async fn run(asked: &AskedStreams<'_>, node: String, target: (&str, &str, &str)) -> Result<Answer, Status> {
    if *asked.method != Method::POST {
        let mut response = ApiResponse::new(Body::from("405: Method Not Allowed"));
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return Ok(Answer::Raw(response));
    }
    let command = asked.query.text("cmd").unwrap_or_default();
    let request = exec_request(node, target, command.split(' ').collect());
    let executed = asked.kubelets.exec(request).await?;
    if executed.code != 0 {
        let errors = String::from_utf8_lossy(&executed.errors);
        let why = format!("command '{command}' exited with {}: {errors}", executed.code);
        return Err(Status::internal(why));
    }
    let said = [executed.out, executed.errors].concat();
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
