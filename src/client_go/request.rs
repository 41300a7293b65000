//! Requests as client-go writes them: path, query and body (client-go's `rest.Request`).

use std::sync::Arc;

use axum::body::Body;
use http::{Method, header};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, DecodedBody, WantsObjects};
use apis::kind::Kind;

/// What cannot stand in a path segment as it is.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// A request that can be made more than once.
pub(super) struct RepeatableRequest {
    method: Method,
    target: String,
    body: Option<Arc<Value>>,
    content_type: &'static str,
    /// The body goes as bytes.
    is_text: bool,
}

impl RepeatableRequest {
    /// Without a body.
    pub(super) fn new(method: Method, target: String) -> RepeatableRequest {
        RepeatableRequest { method, target, body: None, content_type: "application/json", is_text: false }
    }

    /// With a body.
    pub(super) fn with(mut self, body: Value) -> RepeatableRequest {
        self.body = Some(body.into());
        self
    }

    /// With delete options; none are sent when all have their defaults.
    pub(super) fn with_options(mut self, options: &DeleteOptions) -> RepeatableRequest {
        if *options != DeleteOptions::default() {
            let mut body = serde_json::to_value(options).unwrap_or_default();
            body["apiVersion"] = "v1".into();
            body["kind"] = "DeleteOptions".into();
            self.body = Some(body.into());
        }
        self
    }

    /// With a body of another media type than JSON.
    pub(super) fn of_type(mut self, content_type: &'static str) -> RepeatableRequest {
        self.content_type = content_type;
        self
    }

    /// With the body as bytes: the server is to trust nothing in it.
    pub(super) fn in_text(mut self) -> RepeatableRequest {
        self.is_text = true;
        self
    }

    /// The request, asking for objects. The body is kept: the answer may be that it has to be sent again.
    pub(super) fn request(&self) -> Result<ApiRequest, Status> {
        let mut builder = http::Request::builder()
            .method(self.method.clone())
            .uri(&self.target)
            .header(header::ACCEPT, "application/json")
            .extension(WantsObjects);
        let mut bytes = Body::empty();
        if let Some(body) = &self.body {
            builder = builder.header(header::CONTENT_TYPE, self.content_type);
            if self.is_text {
                bytes = Body::from(body.to_string());
            } else {
                builder = builder.extension(DecodedBody(body.clone()));
            }
        }
        builder.body(bytes).map_err(|error| Status::bad_request(format!("{}: {error}", self.target)))
    }
}

/// The path of an object, with what a name may contain written so that it stays one segment.
pub(super) fn object_path(kind: &Kind, namespace: &str, name: &str) -> String {
    format!("{}/{}", kind.collection_path(namespace), utf8_percent_encode(name, SEGMENT))
}

/// `metav1.ListOptions` as a query, with its question mark; nothing when every option has its default.
pub(super) fn query(options: &ListOptions, watch: bool) -> String {
    let predicate = &options.predicate;
    let text = |selector: String| Some(selector).filter(|text| !text.is_empty());
    let flag = |set: bool| set.then(|| "true".to_owned());
    let parameters = [
        ("watch", flag(watch)),
        ("labelSelector", text(predicate.labels.to_string())),
        ("fieldSelector", text(predicate.fields.to_string())),
        ("resourceVersion", options.resource_version.clone()),
        ("resourceVersionMatch", options.resource_version_match.clone()),
        ("limit", options.limit.map(|limit| limit.to_string())),
        ("continue", options.continue_token.clone()),
        ("allowWatchBookmarks", flag(options.allow_watch_bookmarks)),
        ("sendInitialEvents", options.send_initial_events.map(|send| send.to_string())),
        ("timeoutSeconds", options.timeout_seconds.map(|seconds| seconds.to_string())),
    ];
    let mut out = String::new();
    for (name, value) in parameters {
        let Some(value) = value else { continue };
        out.push(if out.is_empty() { '?' } else { '&' });
        out.push_str(name);
        out.push('=');
        out.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::fields::FieldSelector;
    use apimachinery::labels::Selector;
    use apimachinery::selectable::Predicate;
    use apis::core::config_map::CONFIG_MAPS;

    #[test]
    fn a_query_says_what_the_options_say() {
        let predicate = Predicate {
            labels: Selector::parse("a in (b,c)").unwrap(),
            fields: FieldSelector::equal("spec.nodeName", "n"),
            ..Predicate::default()
        };
        let options = ListOptions { predicate, resource_version: Some("7".into()), ..ListOptions::default() };
        let text = "?watch=true&labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=spec%2EnodeName%3Dn&resourceVersion=7";
        assert_eq!(query(&options, true), text);
        assert_eq!(query(&ListOptions::default(), false), "");
        assert!(object_path(&CONFIG_MAPS, "ns", "a/b%?").ends_with("/configmaps/a%2Fb%25%3F"));
    }
}
