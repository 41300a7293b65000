//! `/flowz`: the flow record of one object, as `kubarium trace` prints it. Ours: upstream has no such page.
//!
//! `?resource=deployments.apps&namespace=test&name=web` gives the steps as JSON; `&format=text` the rendered
//! lanes. The resource may be named as kubectl lets people name it (`deploy`); the namespace of a
//! cluster-scoped one does not matter. Of several objects of that name `&uid=` chooses one by the beginning
//! of its uid, else it is the newest. Without a name: the refused requests about the resource that name none.

use http::{HeaderMap, StatusCode};

use crate::endpoints::query::Query;
use crate::endpoints::response::negotiation::Output;
use crate::endpoints::response::writers::write_bytes;
use apimachinery::wire::{ApiResponse, text_response};
use apis::scheme::Scheme;
use flow::{Flow, Subject};

/// The story of the object that the query names.
pub(crate) fn respond(scheme: &Scheme, flow: &Flow, query: &Query, headers: &HeaderMap) -> ApiResponse {
    let text = |name: &str| query.text(name).unwrap_or_default();
    if text("resource").is_empty() {
        let usage = "flowz: say which object: ?resource=pods&namespace=default&name=web[&uid=...]\n";
        return text_response(StatusCode::BAD_REQUEST, usage);
    }
    let Some(kind) = scheme.named(text("resource")) else {
        let unknown = format!("the server doesn't have a resource type {:?}\n", text("resource"));
        return text_response(StatusCode::NOT_FOUND, unknown);
    };
    let kind = kind.storage_kind();
    let namespace = if kind.namespaced { text("namespace") } else { "" };
    let (name, uid) = (text("name"), text("uid"));
    let trace = flow.trace_of(&Subject { resource: kind.resource(), namespace, name, uid });
    if text("format") == "text" {
        return text_response(StatusCode::OK, trace.render());
    }
    let json = serde_json::to_vec(&trace).unwrap_or_default();
    write_bytes(headers, &Output::default(), 200, json.into())
}
