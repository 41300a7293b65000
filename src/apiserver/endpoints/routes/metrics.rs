//! `/metrics`: what the server counts, and what it costs, in Prometheus' text format.

use std::sync::Arc;

use http::HeaderValue;
use http::header::CONTENT_TYPE;

use crate::endpoints::EndpointContext;
use apimachinery::wire::{ApiResponse, text_response};
use apis::kind::Kind;
use component_base::build_info;
use component_base::features;
use component_base::metrics::{Render, gauge};

/// The whole text.
pub(crate) async fn respond(server: &EndpointContext) -> ApiResponse {
    let mut out = String::new();
    server.metrics.render(&mut out);
    server.flow_control.render(&mut out);
    server.aggregator.render(&mut out);
    storage_objects(server, &mut out).await;
    server.registry.render(&mut out);
    build_info::render(&mut out);
    features::render(&mut out, server.registry.gates().states());
    plain(out)
}

/// `/metrics/slis`: what came of the checks of its health, which are made now if nobody has asked for them.
pub(crate) async fn slis(server: &EndpointContext) -> ApiResponse {
    if server.health.slis.is_empty() {
        server.health.ask_everything().await;
    }
    let mut out = String::new();
    server.health.slis.render(&mut out);
    plain(out)
}

fn plain(out: String) -> ApiResponse {
    let mut response = text_response(http::StatusCode::OK, out);
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

async fn storage_objects(server: &EndpointContext, out: &mut String) {
    let mut counts = Vec::new();
    // Of what is only answered, as reviews, nothing is stored.
    let is_stored = |kind: &Arc<Kind>| kind.verbs.iter().any(|verb| &**verb == "list");
    for kind in server.scheme.storage_kinds().into_iter().filter(is_stored) {
        // Who counts them asks for them. A store that fails here fails to count, too.
        drop(server.registry.bootstrap(&kind).await);
        let count = server.registry.count(&kind).await;
        counts.push((kind, count.ok().and_then(|count| i64::try_from(count).ok()).unwrap_or(-1)));
    }
    let help = "Number of stored objects at the time of last check split by kind. In case of a fetching error, \
                the value will be -1.";
    let of = counts.iter().map(|(kind, count)| ([&kind.group_version.group, &kind.plural], count));
    gauge(out, ("apiserver_resource_objects", &format!("[ALPHA] {help}")), ["group", "resource"], of);
    let since = "[STABLE] (Deprecated since 1.34.0)";
    let deprecated =
        format!("{since} [DEPRECATED, consider using apiserver_resource_objects instead] {help}");
    let of = counts.iter().map(|(kind, count)| ([kind.resource()], count));
    gauge(out, ("apiserver_storage_objects", &deprecated), ["resource"], of);
}
