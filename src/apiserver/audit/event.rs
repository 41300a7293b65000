//! `audit.k8s.io/v1` Event: one line of the log.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use golang::first_bytes::first_bytes;
use http::HeaderMap;
use http::header::USER_AGENT;
use serde::Serialize;
use serde_json::{Map, Value};

use super::policy::AuditStage;
use crate::audit_context::{AuditContext, Gathered, Level};
use crate::request::RequestInfo;
use apimachinery::managed_fields;
use apimachinery::status::{Status, StatusDetails};
use apimachinery::time::Time;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, RemoteAddress};
use golang::go_text::quote;

/// Upstream cuts longer names of programs.
const MAX_USER_AGENT_BYTES: usize = 1024;

/// An event, in upstream's order of fields.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditEvent {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: Arc<str>,
    stage: AuditStage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: Person,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<Person>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<AuthenticationMetadata>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<AuditObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<ResponseStatus>,
    #[serde(skip_serializing_if = "Value::is_null")]
    request_object: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    response_object: Value,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// `authentication.k8s.io/v1` UserInfo, in upstream's order of fields.
#[derive(Clone, Debug, Serialize)]
struct Person {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: Arc<str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

/// By which verb somebody may act as another.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthenticationMetadata {
    impersonation_constraint: &'static str,
}

/// What the request is about.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
}

/// Of a Status what has a bound.
#[derive(Clone, Debug, Default, Serialize)]
struct ResponseStatus {
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "String::is_empty")]
    status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<StatusDetails>>,
    code: u16,
}

impl AuditEvent {
    /// What is known of a request before it is worked on.
    pub(super) fn new(
        request: &ApiRequest,
        user: &UserInfo,
        info: &RequestInfo,
        (id, level): (Arc<str>, Level),
        now: Time,
    ) -> AuditEvent {
        let mut user_agent = header(request.headers(), USER_AGENT.as_str()).to_owned();
        if user_agent.len() > MAX_USER_AGENT_BYTES {
            user_agent.truncate(first_bytes(&user_agent, MAX_USER_AGENT_BYTES).len());
            user_agent.push_str("...TRUNCATED");
        }
        let uri = request.uri();
        AuditEvent {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level,
            audit_id: id,
            stage: AuditStage::RequestReceived,
            request_uri: uri.path_and_query().map_or(uri.path(), |all| all.as_str()).to_owned(),
            verb: info.verb.clone(),
            user: Person::from(user),
            impersonated_user: None,
            authentication_metadata: None,
            source_ips: source_ips(request),
            user_agent,
            object_ref: info.is_resource_request.then(|| AuditObjectReference::from(info)),
            response_status: None,
            request_object: Value::Null,
            response_object: Value::Null,
            request_received_timestamp: micro_time(now),
            stage_timestamp: micro_time(now),
            annotations: BTreeMap::new(),
        }
    }

    /// This event at another stage, with what was gathered until then. `code` is the answer's.
    pub(super) fn at(&self, stage: AuditStage, context: &AuditContext, code: u16, now: Time) -> AuditEvent {
        let gathered = context.gathered();
        let Gathered { request_object, response_object, .. } = gathered;
        let mut event = AuditEvent { stage, stage_timestamp: micro_time(now), ..self.clone() };
        event.impersonated_user = gathered.impersonated.map(|user| Person::from(&*user));
        event.authentication_metadata = gathered
            .impersonation_constraint
            .map(|impersonation_constraint| AuthenticationMetadata { impersonation_constraint });
        event.annotations = gathered.annotations;
        let status = gathered.response_status.map(ResponseStatus::from).unwrap_or_default();
        event.response_status = Some(ResponseStatus { code, ..status });
        if let Some(mut object) = request_object {
            if let Some(reference) = &mut event.object_ref {
                reference.complete(&object);
            }
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
    pub(super) fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(0, |bytes| bytes.len())
    }

    /// This event, without what is large (`plugin/audit/truncate`).
    pub(super) fn truncated(&self) -> AuditEvent {
        let mut event =
            AuditEvent { request_object: Value::Null, response_object: Value::Null, ..self.clone() };
        event.annotations.insert("audit.k8s.io/truncated".into(), "true".into());
        event
    }

    /// Whether bodies are told.
    pub(super) fn has_bodies(&self) -> bool {
        self.level >= Level::Request
    }

    /// The line of `--audit-log-format=legacy`.
    pub(super) fn legacy(&self) -> String {
        let or = |text: &str, other: &str| quote(if text.is_empty() { other } else { text });
        let groups = |person: &Person| match &person.groups[..] {
            [] => None,
            groups => Some(groups.iter().map(|group| quote(group)).collect::<Vec<_>>().join(",")),
        };
        let (person, acted) = (&self.user, self.impersonated_user.as_ref());
        let namespace = self.object_ref.as_ref().map_or("", |reference| &reference.namespace);
        let code =
            self.response_status.as_ref().map_or("<deferred>".into(), |status| status.code.to_string());
        format!(
            "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} \
             namespace={} uri={} response=\"{code}\"",
            self.request_received_timestamp,
            quote(&self.audit_id),
            quote(&format!("{:?}", self.stage)),
            or(self.source_ips.first().map_or("", String::as_str), "<unknown>"),
            quote(&self.verb),
            or(&person.username, "<none>"),
            quote(&groups(person).unwrap_or_else(|| "<none>".into())),
            or(acted.map_or("", |acted| &acted.username), "<self>"),
            quote(&acted.and_then(groups).unwrap_or_else(|| "<lookup>".into())),
            quote(&self.user_agent),
            or(namespace, "<none>"),
            quote(&self.request_uri),
        )
    }
}

impl From<&UserInfo> for Person {
    fn from(user: &UserInfo) -> Person {
        let UserInfo { name, uid, groups, extra } = user.clone();
        Person { username: name, uid, groups, extra }
    }
}

impl From<&RequestInfo> for AuditObjectReference {
    fn from(info: &RequestInfo) -> AuditObjectReference {
        AuditObjectReference {
            resource: info.resource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            api_group: info.group.clone(),
            api_version: info.version.clone(),
            subresource: info.subresource.clone(),
            ..AuditObjectReference::default()
        }
    }
}

impl AuditObjectReference {
    /// A new object's name is in its body.
    fn complete(&mut self, object: &Value) {
        let fields = [
            (&mut self.namespace, "namespace"),
            (&mut self.name, "name"),
            (&mut self.uid, "uid"),
            (&mut self.resource_version, "resourceVersion"),
        ];
        for (own, field) in fields {
            if own.is_empty() {
                *own = object["metadata"][field].as_str().unwrap_or_default().to_owned();
            }
        }
    }
}

impl From<Status> for ResponseStatus {
    fn from(status: Status) -> ResponseStatus {
        let Status { status, message, reason, details, code, .. } = status;
        ResponseStatus { metadata: Map::new(), status, message, reason, details, code }
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

/// Managed fields as clients see them, or none.
fn prune(object: &mut Value, context: &AuditContext) {
    let strip = |object: &mut Value| {
        if !context.omits_managed_fields {
            managed_fields::expand(object);
        } else if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    };
    match object.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(strip),
        None => strip(object),
    }
}

/// `metav1.MicroTime`
fn micro_time(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
