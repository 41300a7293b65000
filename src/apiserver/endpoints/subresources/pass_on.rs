//! Requests for streams that go on to a kubelet in another process (upstream's `UpgradeAwareHandler`): bytes
//! both ways, whatever the client and the kubelet have agreed on.

use axum::body::Body;
use http::header::{AUTHORIZATION, CONNECTION, COOKIE, HOST, HeaderValue, UPGRADE};
use http::{Request, StatusCode};
use hyper::upgrade::OnUpgrade;

use super::asked_streams::AskedStreams;
use crate::endpoints::response::answer::Answer;
use crate::webhook;
use apimachinery::status::Status;

/// Asks the kubelet of `node` at a path with its query.
pub(super) async fn pass_on(
    asked: &AskedStreams<'_>,
    upgrade: Option<OnUpgrade>,
    node: &str,
    target: &str,
) -> Result<Answer, Status> {
    let request = request(asked, target)?;
    let response = asked.kubelets.pass_on(node.to_owned(), request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let Some(client) = upgrade else { return Err(Status::bad_request("Upgrade request required")) };
        let (response, carrying) = webhook::go_on(client, response);
        asked.clock.spawn(carrying);
        return Ok(Answer::Raw(response));
    }
    Ok(Answer::Raw(response))
}

/// What the client has said, but for who it is, which is nothing to the kubelet.
fn request(asked: &AskedStreams<'_>, target: &str) -> Result<Request<Body>, Status> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = asked.method.clone();
    *request.uri_mut() = target.parse().map_err(|error| Status::bad_request(format!("{target}: {error}")))?;
    let headers = request.headers_mut();
    *headers = asked.headers.clone();
    for name in [AUTHORIZATION, COOKIE, HOST] {
        headers.remove(name);
    }
    if headers.contains_key(UPGRADE) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
    Ok(request)
}

/// The path of a container at its kubelet, and which streams are wanted (`api.PodExecOptions` as a kubelet's
/// query).
pub(super) fn container_target(
    verb: &str,
    [namespace, pod, container]: [&str; 3],
    asked: &AskedStreams<'_>,
) -> String {
    let mut target = format!("/{verb}/{namespace}/{pod}/{container}?");
    let flags = [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")];
    let is_wanted = |(name, _): &(&str, &str)| asked.query.flag(name).unwrap_or(false);
    for (_, of_kubelet) in flags.into_iter().filter(is_wanted) {
        target += &format!("{of_kubelet}=1&");
    }
    for word in asked.query.all("command") {
        let word = percent_encoding::utf8_percent_encode(word, percent_encoding::NON_ALPHANUMERIC);
        target += &format!("command={word}&");
    }
    target.truncate(target.len() - 1);
    target
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::endpoints::query::Query;
    use crate::kubelet_client::KubeletLookup;
    use clock::Clock;
    use http::{HeaderMap, Method};

    #[test]
    fn a_kubelet_is_told_what_is_wanted_and_not_by_whom() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("authorization", "Bearer x"), ("upgrade", "SPDY/3.1"), ("x-mine", "1")] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let query = Query::parse("container=c&command=echo&command=a%26b&stdin=true&tty=false&stdout=true");
        let kubelets: Arc<dyn KubeletLookup> = Arc::new(());
        let clock = Clock::real();
        let (method, kubelets) = (&Method::POST, &kubelets);
        let asked =
            AskedStreams { method, headers: &headers, query: &query, kubelets, clock: &clock, unread: None };
        let target = container_target("exec", ["ns", "p", "c"], &asked);
        assert_eq!(target, "/exec/ns/p/c?input=1&output=1&command=echo&command=a%26b");
        let request = request(&asked, &target).unwrap();
        assert_eq!(request.headers()["connection"], "Upgrade");
        assert!(!request.headers().contains_key("authorization") && request.headers().contains_key("x-mine"));
        assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/exec/ns/p/c"));
    }
}
