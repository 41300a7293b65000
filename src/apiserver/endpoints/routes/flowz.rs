//! `/flowz`: the flow record of one object, as `kubarium trace` prints it. Ours: upstream has no such page.
//!
//! `?resource=deployments.apps&namespace=test&name=web` gives the steps as JSON; `&format=text` the rendered
//! lanes, `&format=story` the story of it; `&standing=true` gives beside the steps what the story ends with:
//! what is in the way, and what would help. `?all=true` is about everything that is remembered. The resource
//! may be named as kubectl lets people name it (`deploy`); the namespace of a
//! cluster-scoped one does not matter. Of several objects of that name `&uid=` chooses one by the beginning
//! of its uid, else it is the newest. Without a name: the refused requests about the resource that name none.
//! Values of objects are told to those who may read them (see `request::told_values`).

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderMap, StatusCode};
use serde::Serialize;

use crate::authorizer::may_read;
use crate::endpoints::EndpointContext;
use crate::endpoints::query::Query;
use crate::endpoints::response::negotiation::Output;
use crate::endpoints::response::writers::write_bytes;
use crate::request::{RequestContext, hide_unreadable};
use apimachinery::wire::{ApiResponse, text_response};
use apis::scheme::Scheme;
use flow::story::Look;
use flow::{Flow, StoragePlace, Trace, TracedObject};

/// The story of the object that the query names.
pub(crate) async fn respond(
    server: &EndpointContext,
    ctx: &RequestContext,
    query: &Query,
    headers: &HeaderMap,
) -> ApiResponse {
    let EndpointContext { scheme, flow, .. } = server;
    let text = |name: &str| query.text(name).unwrap_or_default();
    if text("all") == "true" {
        let trace = readable(server, ctx, flow.trace_all()).await;
        return answer(scheme, trace, query, headers);
    }
    if text("resource").is_empty() {
        let usage = "flowz: say which object: ?resource=pods&namespace=default&name=web[&uid=...]\n";
        return text_response(StatusCode::BAD_REQUEST, usage);
    }
    let (name, uid) = (text("name"), text("uid"));
    let trace = if let Some(kind) = scheme.named(text("resource")) {
        let kind = kind.storage_kind();
        let namespace = if kind.namespaced { text("namespace") } else { "" };
        flow.trace_of(&TracedObject { resource: kind.resource(), namespace, name, uid })
    } else {
        let known = server.aggregator.resource_named(text("resource")).await;
        let resource = known.as_deref().unwrap_or(text("resource"));
        let trace = of_another(flow, &TracedObject { resource, namespace: text("namespace"), name, uid });
        if known.is_none() && trace.steps.is_empty() {
            let unknown = format!("the server doesn't have a resource type {:?}\n", text("resource"));
            return text_response(StatusCode::NOT_FOUND, unknown);
        }
        trace
    };
    answer(scheme, readable(server, ctx, trace).await, query, headers)
}

/// Of an object that another server has: whether it is in a namespace is known of the record.
fn of_another(flow: &Flow, subject: &TracedObject<'_>) -> Trace {
    let trace = flow.trace_of(subject);
    if !trace.steps.is_empty() {
        return trace;
    }
    let of_cluster = flow.trace_of(&TracedObject { namespace: "", ..*subject });
    if of_cluster.steps.is_empty() { trace } else { of_cluster }
}

/// Without the values that whoever asks may not read.
async fn readable(server: &EndpointContext, ctx: &RequestContext, mut trace: Trace) -> Trace {
    let may_read = may_read(&server.authorizer, &ctx.user);
    hide_unreadable(&server.flow, &mut trace.steps, &may_read).await;
    trace
}

/// A trace, and how it stands where that is asked for.
#[derive(Serialize)]
struct ToldTrace<'a> {
    #[serde(flatten)]
    trace: &'a Trace,
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<Vec<String>>,
}

fn answer(scheme: &Scheme, mut trace: Trace, query: &Query, headers: &HeaderMap) -> ApiResponse {
    trace.storage = storage(scheme, &trace);
    let text = |name: &str| query.text(name).unwrap_or_default();
    match text("format") {
        "text" => text_response(StatusCode::OK, trace.render()),
        "story" => text_response(
            StatusCode::OK,
            trace.story().print(Look { whole: true, details: true, ..Look::default() }),
        ),
        _ => {
            let standing = (text("standing") == "true").then(|| trace.story().standing);
            let json = serde_json::to_vec(&ToldTrace { trace: &trace, standing }).unwrap_or_default();
            write_bytes(headers, &Output::default(), 200, json.into())
        }
    }
}

/// Of the resources that the trace tells writes of: under which keys of etcd they are, and in which version.
fn storage(scheme: &Scheme, trace: &Trace) -> BTreeMap<String, StoragePlace> {
    let written: BTreeSet<&str> = trace.steps.iter().filter_map(|step| step.step.stores()).collect();
    let stored = |resource: &&str| {
        let kind = scheme.named(resource)?;
        let kind = kind.storage_kind();
        let prefix = format!("/registry/{}/", kind.etcd_resource());
        Some(((*resource).to_owned(), StoragePlace { prefix, version: kind.group_version.to_string() }))
    };
    written.iter().filter_map(stored).collect()
}
