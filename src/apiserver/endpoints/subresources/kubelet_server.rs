//! The API of one kubelet at a port of its own (`pkg/kubelet/server.Server`): what `nodes/proxy` leads to in
//! one process, for an apiserver that is in another. Who asks and whether he may is asked before.

use std::sync::Arc;

use hyper::upgrade::OnUpgrade;

use super::asked_streams::AskedStreams;
use super::node_proxy;
use crate::endpoints::query::Query;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::unread_watches::UnreadWatches;
use crate::endpoints::routes::debug::{Debugging, is_of_debug};
use crate::kubelet_client::KubeletLookup;
use apimachinery::wire::{ApiRequest, ApiResponse, text_response};
use clock::Clock;
use http::StatusCode;

/// Answers a request to the kubelet of `node`. What goes wrong is said as a kubelet says it, in plain text.
pub async fn serve(
    request: ApiRequest,
    node: &str,
    kubelets: &Arc<dyn KubeletLookup>,
    clock: &Clock,
    debugging: &Debugging,
) -> ApiResponse {
    let path = request.uri().path().to_owned();
    if is_of_debug(&path) {
        return debugging.respond_as_kubelet(&path, request, clock).await;
    }
    let (mut parts, _) = request.into_parts();
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let unread = parts.extensions.remove::<UnreadWatches>();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let asked = AskedStreams {
        method: &parts.method,
        headers: &parts.headers,
        query: &query,
        kubelets,
        clock,
        unread: unread.as_ref(),
    };
    match node_proxy::answer(&asked, upgrade, node.to_owned(), parts.uri.path()).await {
        Ok(Answer::Raw(response)) => response,
        // A kubelet answers with nothing else.
        Ok(_) => text_response(StatusCode::NOT_FOUND, "404 page not found\n"),
        Err(status) => {
            let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            text_response(code, status.message + "\n")
        }
    }
}
