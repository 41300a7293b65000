//! `pods/log`: what a container said, asked of the kubelet of its node (`registry/core/pod/rest.LogREST`).

use axum::body::Body;
use futures::StreamExt;
use futures::future::BoxFuture;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::asked_streams::AskedStreams;
use super::streams::{self, ChannelEncoding, Conversation};
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::query::Query;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::websocket;
use crate::kubelet_client::Duplex;
use crate::kubelet_client::{LogRequest, PodLogOptions};
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::GroupVersion;
use apimachinery::status::Status;
use apimachinery::time;
use apimachinery::wire::ApiResponse;

/// How a log comes over a websocket (`wsstream.NewDefaultReaderProtocols`).
const PROTOCOLS: &[&str] = &["binary.k8s.io", "base64.binary.k8s.io"];

/// Asks the kubelet.
pub(crate) async fn log(scope: &mut Scope) -> Result<Answer, Status> {
    let options = read_options(&scope.query)?;
    let pod = scope.server.registry.get(&scope.kind, scope.namespace(), scope.name(), None).await?;
    let tree = pod.to_value();
    let container = container(&tree, scope.name(), scope.query.text("container"))?;
    let node = tree["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        // Upstream has nothing to say of a pod that is not placed yet, and says it with success.
        return Ok(text(Body::empty()));
    }
    let request = LogRequest {
        node: node.into(),
        namespace: scope.namespace().into(),
        pod: scope.name().into(),
        container,
        options,
    };
    let body = scope.server.kubelets.logs(request).await?;
    if websocket::is_wanted(&scope.headers)
        && let Some(upgrade) = scope.upgrade.take()
    {
        return streams::accept(&AskedStreams::of(scope), upgrade, PROTOCOLS, |protocol| {
            over_websocket(body, ChannelEncoding::of(protocol))
        });
    }
    Ok(text(body))
}

/// The log as frames, without channels.
fn over_websocket(body: Body, encoding: ChannelEncoding) -> Conversation {
    Box::new(move |mut io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut chunks = body.into_data_stream();
            while let Some(Ok(chunk)) = chunks.next().await {
                if streams::send(&mut *io, encoding, None, &chunk).await.is_err() {
                    return;
                }
            }
            drop(streams::close(&mut *io).await);
        })
    })
}

pub(super) fn text(body: Body) -> Answer {
    let mut response = ApiResponse::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Answer::Raw(response)
}

/// The container that is meant: the one named, or the only one.
pub(crate) fn container(pod: &Value, name: &str, wanted: Option<&str>) -> Result<String, Status> {
    let names = |list: &str| -> Vec<String> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| Some(container["name"].as_str()?.to_owned())).collect()
    };
    let (containers, init) = (names("containers"), names("initContainers"));
    let ephemeral = names("ephemeralContainers");
    if let Some(wanted) = wanted {
        let mut all = containers.iter().chain(&init).chain(&ephemeral);
        return if all.any(|container| container == wanted) {
            Ok(wanted.into())
        } else {
            Err(Status::bad_request(format!("container {wanted} is not valid for pod {name}")))
        };
    }
    if let [only] = &containers[..] {
        return Ok(only.clone());
    }
    let list = |names: &[String]| format!("[{}]", names.join(" "));
    let mut text =
        format!("a container name must be specified for pod {name}, choose one of: {}", list(&containers));
    if !init.is_empty() {
        text += &format!(" or one of the init containers: {}", list(&init));
    }
    if !ephemeral.is_empty() {
        text += &format!(" or one of the ephemeral containers: {}", list(&ephemeral));
    }
    Err(Status::bad_request(text))
}

pub(super) fn read_options(query: &Query) -> Result<PodLogOptions, Status> {
    let since_time = match query.text("sinceTime") {
        None => None,
        Some(text) => {
            let fault = || {
                Status::bad_request(format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\" failed"))
            };
            Some(time::parse(text).ok_or_else(fault)?)
        }
    };
    let options = PodLogOptions {
        follow: query.flag("follow").unwrap_or(false),
        previous: query.flag("previous").unwrap_or(false),
        since_seconds: query.number("sinceSeconds")?,
        since_time,
        timestamps: query.flag("timestamps").unwrap_or(false),
        tail_lines: query.number("tailLines")?,
        limit_bytes: query.number("limitBytes")?,
    };
    let mut errors = FieldErrors::default();
    let mut at_least = |field: &str, value: Option<i64>, least: i64, words: &str| {
        if let Some(value) = value.filter(|value| *value < least) {
            errors.invalid(field, &value.into(), words);
        }
    };
    at_least("tailLines", options.tail_lines, 0, "must be greater than or equal to 0");
    at_least("limitBytes", options.limit_bytes, 1, "must be greater than 0");
    at_least("sinceSeconds", options.since_seconds, 1, "must be greater than 0");
    if options.since_seconds.is_some() && options.since_time.is_some() {
        errors.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified");
    }
    if errors.is_empty() {
        Ok(options)
    } else {
        Err(Status::invalid(&GroupVersion::new("", "v1").kind("PodLogOptions"), "", &errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_container_is_the_one_meant() {
        let one = json!({"spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}});
        assert_eq!(container(&one, "p", None).unwrap(), "a");
        assert_eq!(container(&one, "p", Some("i")).unwrap(), "i");
        let refused = container(&one, "p", Some("x")).unwrap_err();
        assert_eq!((refused.code, &*refused.message), (400, "container x is not valid for pod p"));
        let two = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}],
            "initContainers": [{"name": "i"}]}});
        let text = "a container name must be specified for pod p, choose one of: [a b] or one of \
            the init containers: [i]";
        assert_eq!(container(&two, "p", None).unwrap_err().message, text);
    }

    #[test]
    fn options_are_checked() {
        let read = |query: &str| read_options(&Query::parse(query));
        assert_eq!(read("tailLines=5&follow").unwrap().tail_lines, Some(5));
        assert_eq!(read("tailLines=-1").unwrap_err().code, 422);
        assert_eq!(read("sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z").unwrap_err().code, 422);
        assert_eq!(read("sinceTime=yesterday").unwrap_err().code, 400);
    }
}
