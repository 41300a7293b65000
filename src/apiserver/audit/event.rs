//! `audit.k8s.io/v1` Event: one line of the log.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use http::header::USER_AGENT;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::context::{AuditContext, Gathered};
use super::policy::{Level, Stage};
use crate::apimachinery::time::Time;
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::{ApiRequest, RemoteAddress};
use crate::apiserver::request::RequestInfo;

/// Upstream cuts longer names of programs.
const MAX_USER_AGENT_BYTES: usize = 1024;

/// An event, in upstream's order of fields.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: Arc<str>,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    impersonated_user: Value,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    object_ref: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    response_status: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    request_object: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    response_object: Value,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    annotations: Map<String, Value>,
}

impl Event {
    /// What is known of a request before it is worked on.
    pub fn new(
        request: &ApiRequest,
        user: &UserInfo,
        info: &RequestInfo,
        (id, level): (Arc<str>, Level),
        now: Time,
    ) -> Event {
        let mut user_agent = header(request.headers(), USER_AGENT.as_str()).to_owned();
        if user_agent.len() > MAX_USER_AGENT_BYTES {
            let end = (0..=MAX_USER_AGENT_BYTES).rev().find(|at| user_agent.is_char_boundary(*at));
            user_agent.truncate(end.unwrap_or(0));
            user_agent.push_str("...TRUNCATED");
        }
        let uri = request.uri();
        Event {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level,
            audit_id: id,
            stage: Stage::RequestReceived,
            request_uri: uri.path_and_query().map_or(uri.path(), |all| all.as_str()).to_owned(),
            verb: info.verb.clone(),
            user: user.to_value(),
            impersonated_user: Value::Null,
            source_ips: source_ips(request),
            user_agent,
            object_ref: if info.is_resource_request { object_ref(info) } else { Value::Null },
            response_status: Value::Null,
            request_object: Value::Null,
            response_object: Value::Null,
            request_received_timestamp: micro_time(now),
            stage_timestamp: micro_time(now),
            annotations: Map::new(),
        }
    }

    /// The same at another stage, with what was gathered until then. `code` is the answer's.
    pub fn at(&self, stage: Stage, context: &AuditContext, code: u16, now: Time) -> Event {
        let Gathered { annotations, impersonated, request_object, response_object, response_status } =
            context.gathered();
        let mut event = Event { stage, stage_timestamp: micro_time(now), ..self.clone() };
        event.impersonated_user = impersonated.map_or(Value::Null, |user| user.to_value());
        event.annotations = annotations.into_iter().map(|(key, value)| (key, value.into())).collect();
        event.response_status = response_status.unwrap_or_else(|| json!({"metadata": {}}));
        event.response_status["code"] = code.into();
        if let Some(mut object) = request_object {
            complete_reference(&mut event.object_ref, &object);
            if self.level >= Level::Request {
                prune(&mut object, context);
                event.request_object = object;
            }
        }
        if let Some(mut object) = response_object.filter(|_| self.level >= Level::RequestResponse) {
            prune(&mut object, context);
            event.response_object = object;
        }
        event
    }

    /// How many bytes it has on the wire.
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |bytes| bytes.len())
    }

    /// The same, without what is large (`plugin/audit/truncate`).
    pub fn truncated(&self) -> Event {
        let mut event = Event { request_object: Value::Null, response_object: Value::Null, ..self.clone() };
        event.annotations.insert("audit.k8s.io/truncated".into(), "true".into());
        event
    }

    /// Whether bodies are told.
    pub fn has_bodies(&self) -> bool {
        self.level >= Level::Request
    }

    /// The line of `--audit-log-format=legacy`.
    pub fn legacy(&self) -> String {
        let text = |tree: &Value, field: &str| tree[field].as_str().unwrap_or("<none>").to_owned();
        let quoted = |text: String| format!("{text:?}");
        let groups: Vec<String> = self.user["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|group| group.as_str().map(|group| quoted(group.into())))
            .collect();
        format!(
            "{} AUDIT: id={:?} stage={:?} ip={:?} method={:?} user={} groups={:?} as={} asgroups=\"<lookup>\" \
             user-agent={:?} namespace={} uri={:?} response=\"{}\"",
            self.request_received_timestamp,
            self.audit_id,
            format!("{:?}", self.stage),
            self.source_ips.first().map_or("<unknown>", String::as_str),
            self.verb,
            quoted(text(&self.user, "username")),
            groups.join(","),
            quoted(text(&self.impersonated_user, "username").replace("<none>", "<self>")),
            self.user_agent,
            quoted(text(&self.object_ref, "namespace")),
            self.request_uri,
            self.response_status["code"].as_u64().map_or("<deferred>".into(), |code| code.to_string()),
        )
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// `utilnet.SourceIPs`: what proxies say of the client, then who is connected.
fn source_ips(request: &ApiRequest) -> Vec<String> {
    let headers = request.headers();
    let forwarded = header(headers, "x-forwarded-for").split(',').map(str::trim);
    let mut addresses: Vec<IpAddr> = forwarded.filter_map(|text| text.parse().ok()).collect();
    if let Ok(address) = header(headers, "x-real-ip").parse()
        && !addresses.contains(&address)
    {
        addresses.push(address);
    }
    // Components of this process would come over the loopback.
    let local = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let peer = request.extensions().get::<RemoteAddress>().map_or(local, |remote| remote.0.ip());
    if addresses.last() != Some(&peer) {
        addresses.push(peer);
    }
    addresses.iter().map(ToString::to_string).collect()
}

fn object_ref(info: &RequestInfo) -> Value {
    let fields = [
        ("resource", &info.resource),
        ("namespace", &info.namespace),
        ("name", &info.name),
        ("apiGroup", &info.group),
        ("apiVersion", &info.version),
        ("subresource", &info.subresource),
    ];
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// A new object's name is in its body.
fn complete_reference(reference: &mut Value, object: &Value) {
    if !reference.is_object() {
        return;
    }
    for field in ["namespace", "name", "uid", "resourceVersion"] {
        let value = object["metadata"][field].as_str().unwrap_or_default();
        if reference[field].as_str().is_none_or(str::is_empty) && !value.is_empty() {
            reference[field] = value.into();
        }
    }
    if let Some(map) = reference.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
}

fn prune(object: &mut Value, context: &AuditContext) {
    if !context.omits_managed_fields {
        return;
    }
    let strip = |object: &mut Value| {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    };
    match object["items"].as_array_mut() {
        Some(items) => items.iter_mut().for_each(strip),
        None => strip(object),
    }
}

/// `metav1.MicroTime`
fn micro_time(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
