//! Discovery in one answer (KEP-3352, `endpoints/discovery/aggregated`): `/api` and `/apis` with everything
//! below.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::discovery::{self, names};
use super::groups::Group;
use crate::aggregator::Remote;
use crate::endpoints::response::json::in_order;
use crate::endpoints::response::messages;
use crate::endpoints::response::negotiation::Output;
use crate::endpoints::response::writers::write_bytes;
use apimachinery::accept::{Accepted, MediaType, accepted};
use apimachinery::wire::ApiResponse;
use apis::kind::Kind;

/// The order of fields in `apidiscovery.APIGroupDiscoveryList`.
const FIELDS: &[&str] = &[
    "group",
    "version",
    "kind",
    "apiVersion",
    "metadata",
    "items",
    "resource",
    "subresource",
    "resources",
    "responseKind",
    "scope",
    "singularResource",
    "acceptedTypes",
    "verbs",
    "shortNames",
    "categories",
];

/// A form of the aggregated answer: its version, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DiscoveryForm {
    version: &'static str,
    media_type: MediaType,
}

/// The aggregated form that the client likes best; nothing when it wants the old one.
pub(crate) fn wanted(headers: &HeaderMap) -> Option<DiscoveryForm> {
    let form = |part: &Accepted| {
        let media_type = MediaType::ALL.into_iter().find(|media_type| part.matches(*media_type))?;
        let version = match ["as", "g", "v"].map(|name| part.parameter(name)) {
            ["", "", ""] => return Some(None),
            ["APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"] => "v2",
            ["APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1"] => "v2beta1",
            _ => return None,
        };
        Some(Some(DiscoveryForm { version, media_type }))
    };
    accepted(headers).iter().find_map(form).flatten()
}

/// The answer: the core group at `/api`, all others at `/apis`. A client that has it already is told so.
pub(crate) fn respond(
    groups: &[Group],
    headers: &HeaderMap,
    form: DiscoveryForm,
    is_core: bool,
) -> ApiResponse {
    let DiscoveryForm { version, media_type } = form;
    let items: Vec<Value> =
        groups.iter().filter(|group| group.name.is_empty() == is_core).map(of_group).collect();
    let api_version = format!("apidiscovery.k8s.io/{version}");
    let list =
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items});
    let bytes = in_order(&list, FIELDS);
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02X}")).collect();
    let etag = format!("\"{digest}\"");
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = match known {
        Some(known) if known.split(',').any(|one| one.trim() == etag) => {
            let mut response = ApiResponse::default();
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        _ => {
            let bytes = match media_type {
                MediaType::Protobuf => messages::document(&list).unwrap_or_default(),
                MediaType::Json | MediaType::Yaml => bytes,
            };
            write_bytes(headers, &Output { media_type, ..Output::default() }, 200, bytes.into())
        }
    };
    let name = media_type.name();
    let content_type = format!("{name};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    for (name, value) in [(CONTENT_TYPE, content_type.as_str()), (ETAG, &etag)] {
        response.headers_mut().insert(name, HeaderValue::from_str(value).expect("plain text"));
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}

fn of_group(group: &Group) -> Value {
    let remotes = group.remotes.iter().map(|remote| of_remote(remote));
    let versions = group.versions.iter().map(|(name, kinds)| {
        let mut resources: Vec<&std::sync::Arc<Kind>> = kinds.iter().collect();
        resources.sort_by(|a, b| a.plural.cmp(&b.plural));
        let resources: Vec<Value> = resources.into_iter().map(|kind| of_kind(kind)).collect();
        json!({"version": &**name, "resources": resources, "freshness": "Current"})
    });
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": &*group.name}) };
    json!({"metadata": metadata, "versions": versions.chain(remotes).collect::<Vec<_>>()})
}

/// What another server said of a version; `Stale` when it says nothing.
fn of_remote(remote: &Remote) -> Value {
    let Some(list) = remote.resources() else {
        return json!({"version": remote.version, "freshness": "Stale"});
    };
    let all = list["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |resource: &Value| resource["name"].as_str().unwrap_or_default().to_owned();
    let kind = |resource: &Value| {
        let own = |field: &str, other: &str| resource[field].as_str().unwrap_or(other).to_owned();
        json!({"group": own("group", &remote.group), "version": own("version", &remote.version),
            "kind": resource["kind"]})
    };
    let main = all.iter().filter(|resource| !name(resource).contains('/')).map(|resource| {
        let prefix = format!("{}/", name(resource));
        let part = |other: &Value| name(other).strip_prefix(&prefix).map(str::to_owned);
        let below = all.iter().filter_map(|other| Some((part(other)?, other)));
        let below: Vec<Value> = below
            .map(|(part, other)| json!({"subresource": part, "responseKind": kind(other), "verbs": other["verbs"]}))
            .collect();
        let scope = if resource["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let mut found = json!({"resource": resource["name"], "responseKind": kind(resource), "scope": scope,
            "singularResource": resource["singularName"], "verbs": resource["verbs"]});
        for field in ["shortNames", "categories"] {
            if resource[field].is_array() {
                found[field] = resource[field].clone();
            }
        }
        if !below.is_empty() {
            found["subresources"] = below.into();
        }
        found
    });
    json!({"version": remote.version, "resources": main.collect::<Vec<_>>(), "freshness": "Current"})
}

fn of_kind(kind: &Kind) -> Value {
    let version = &kind.group_version;
    // Upstream leaves out what is the same as of the list that it stands in.
    let response_kind = |(group, name, kind): (String, String, String)| {
        let is_own = *group == *version.group && *name == *version.version;
        let (group, name) = if is_own { Default::default() } else { (group, name) };
        json!({"group": group, "version": name, "kind": kind})
    };
    let own = (version.group.to_string(), version.version.to_string(), kind.kind.to_string());
    let mut resource = json!({
        "resource": &*kind.plural,
        "responseKind": response_kind(own),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": &*kind.singular,
        "verbs": names(&kind.verbs),
    });
    let mut insert = |name: &str, value: Value| {
        if value.as_array().is_some_and(|list| !list.is_empty()) {
            resource[name] = value;
        }
    };
    insert("shortNames", names(&kind.short_names));
    insert("categories", names(&kind.categories));
    let mut subresources = kind.subresources.clone();
    subresources.sort_by_key(|subresource| subresource.name());
    insert(
        "subresources",
        subresources
            .into_iter()
            .map(|subresource| {
                let response = response_kind(discovery::response_kind(kind, subresource));
                json!({"subresource": subresource.name(), "verbs": subresource.verbs(),
                    "responseKind": response})
            })
            .collect(),
    );
    resource
}

#[cfg(test)]
mod tests {
    use super::super::groups::groups;
    use super::*;
    use apis::scheme::Scheme;
    use http::header::ACCEPT;

    const V2: DiscoveryForm = DiscoveryForm { version: "v2", media_type: MediaType::Json };

    #[test]
    fn clients_say_which_form_they_read() {
        let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        let protobuf =
            "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let cases = [
            (format!("{new},{old},application/json"), Some(("v2", MediaType::Json))),
            (format!("{old},application/json"), Some(("v2beta1", MediaType::Json))),
            (format!("{protobuf},{new},application/json"), Some(("v2", MediaType::Protobuf))),
            ("application/json".into(), None),
            ("*/*".into(), None),
            (String::new(), None),
        ];
        for (accept, form) in cases {
            let form = form.map(|(version, media_type)| DiscoveryForm { version, media_type });
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(wanted(&headers), form, "{accept}");
        }
    }

    #[test]
    fn what_is_known_is_not_sent_again() {
        let groups = groups(&Scheme::builtin());
        let first = respond(&groups, &HeaderMap::new(), V2, false);
        assert_eq!(first.headers()[CACHE_CONTROL], "public", "whoever has it may keep it, and ask again");
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        let again = respond(&groups, &headers, V2, false);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[CACHE_CONTROL], "public");
        assert_eq!(respond(&groups, &headers, V2, true).status(), StatusCode::OK);
    }
}
