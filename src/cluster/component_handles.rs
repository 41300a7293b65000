//! Stopping and starting components over HTTP, and reading what they count.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::component_health::ComponentHealth;
use super::component_zpages::ComponentZPages;
use super::components::UnknownComponent;
use super::inside::Inside;
use apimachinery::status::Status;
use axum::body::Body;
use axum::response::Response;
use client_go::metrics::ComponentMetrics;
use component_base::build_info;
use component_base::metrics::Render;
use handles::{ClusterHandle, HandleCall, Handles, answer};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};

const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichComponent {
    name: String,
}

/// Lists, stops and starts them.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let state = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "running": {"type": "boolean"}},
    });
    let states = json!({"type": "object", "properties": {"components": {"type": "array", "items": state}}});
    let body = json!({
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "description": "As kube-controller-manager/deployment."}},
    });
    let list = ClusterHandle::get("/components", "The components, and whether each runs.").answers(states);
    let stop = ClusterHandle::post("/components/stop", "Stops a component, or a single controller.");
    let start = ClusterHandle::post("/components/start", "Starts a component again.");
    let on = |act: fn(&Inside, &str) -> Result<(), UnknownComponent>| {
        let inside = inside.clone();
        move |call: HandleCall| change(inside.clone(), call, act)
    };
    let listing = inside.clone();
    with_pages(handles, inside)
        .with(list, move |_| {
            let components = listing.running.list();
            std::future::ready(answer(&json!({"components": components})))
        })
        .with(stop.body(body.clone()), on(|inside, name| inside.running.stop(name).map(drop)))
        .with(start.body(body), on(|inside, name| inside.running.start(name)))
}

async fn change(
    inside: Arc<Inside>,
    call: HandleCall,
    act: fn(&Inside, &str) -> Result<(), UnknownComponent>,
) -> Result<Response, Status> {
    let WhichComponent { name } = call.json().await?;
    act(&inside, &name).map_err(|unknown| Status::failure(404, "NotFound", unknown.to_string()))?;
    let done: Value = json!({"name": name});
    answer(&done)
}

/// What a component serves at a port of its own elsewhere: here there are no such ports.
fn with_pages(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let summary =
        "A page of a component that runs: metrics, slis, healthz, livez, readyz, configz, statusz or flagz.";
    let name = "As kube-controller-manager, kube-scheduler or kubelet/node-1.";
    let page = ClusterHandle::get("/components/{page}", summary).query("name", name);
    let inside = inside.clone();
    handles.with(page, move |call: HandleCall| read_page(inside.clone(), call))
}

/// What a component counts, and which build it is.
pub(super) fn counted(metrics: &ComponentMetrics) -> String {
    let mut text = String::new();
    metrics.render(&mut text);
    build_info::render(&mut text);
    text
}

async fn read_page(inside: Arc<Inside>, call: HandleCall) -> Result<Response, Status> {
    let name = call.query("name").ok_or_else(|| Status::bad_request("name: which component is meant?"))?;
    let not_found = |unknown: UnknownComponent| Status::failure(404, "NotFound", unknown.to_string());
    inside.running.check(name).map_err(not_found)?;
    let metrics = inside.running.metrics(name).ok_or_else(|| {
        Status::failure(503, "ServiceUnavailable", format!("{name} has no pages: it does not run by itself"))
    })?;
    match call.path("page") {
        "metrics" => {
            // A kubelet's page has what its client counts, too.
            let text = match own_page(&inside, name, "/metrics").await {
                Some(own) => own,
                None => counted(&metrics),
            };
            Ok(page(text, METRICS))
        }
        "slis" => {
            let own = own_page(&inside, name, "/metrics/slis").await;
            Ok(page(own.unwrap_or_else(|| health(&inside, name).slis()), METRICS))
        }
        asked @ ("healthz" | "livez" | "readyz") => {
            Ok(healthz(&inside, name, asked, call.query("verbose").is_some()).await)
        }
        "configz" => Ok(page(configz(&inside, name).await, JSON)),
        other => {
            if let Some(text) = zpages(&inside, name).page(other) {
                return Ok(page(text, PLAIN));
            }
            let why = format!(
                "no page is named {other:?}; there are metrics, slis, healthz, livez, readyz, configz, statusz and flagz"
            );
            Err(Status::failure(404, "NotFound", why))
        }
    }
}

/// How it is; a kubelet knows one path, and says it itself.
async fn healthz(inside: &Arc<Inside>, name: &str, path: &str, is_verbose: bool) -> Response {
    if own_page(inside, name, "/healthz").await.is_some() {
        return page("ok".into(), PLAIN);
    }
    let answer = health(inside, name).ask(path, is_verbose);
    let mut response = page(answer.text, PLAIN);
    if !answer.is_well {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    response
}

/// What a component looks at when it is asked how it is. Where nobody else would lead it leads.
pub(super) fn health(inside: &Arc<Inside>, name: &str) -> ComponentHealth {
    let (asked, of) = (Arc::downgrade(inside), name.to_owned());
    let look =
        move |path: &str| asked.upgrade().map_or_else(Vec::new, |it| it.running.health(&of, path, true));
    ComponentHealth::new(Arc::new(look), inside.for_handles.health.of(name))
}

async fn configz(inside: &Inside, name: &str) -> String {
    if let Some(own) = own_page(inside, name, "/configz").await {
        return own;
    }
    inside.running.configz(name).unwrap_or_else(|| json!({})).to_string()
}

/// What `statusz` and `flagz` of a component show.
pub(super) fn zpages(inside: &Arc<Inside>, name: &str) -> ComponentZPages {
    let (running, asked) = (Arc::downgrade(inside), name.to_owned());
    ComponentZPages {
        component: name.split_once('/').map_or(name, |(component, _)| component).to_owned(),
        clock: inside.clock.clone(),
        flags: Arc::new(move || {
            running.upgrade().map_or_else(BTreeMap::new, |inside| inside.running.flags(&asked))
        }),
    }
}

/// What a kubelet says of its pods.
async fn own_page(inside: &Inside, name: &str, path: &str) -> Option<String> {
    let kubelet = inside.running.kubelet(name.strip_prefix("kubelet/")?)?;
    let answer = kubelet.answer_http(&Method::GET, path).await;
    Some(String::from_utf8_lossy(answer.body()).into_owned())
}

fn page(text: String, content_type: HeaderValue) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
