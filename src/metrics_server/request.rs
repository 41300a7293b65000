//! What is asked: a path in its parts, and selectors.

use http::Method;
use percent_encoding::percent_decode_str;

use apimachinery::accept::accepted;
use apimachinery::fields::FieldSelector;
use apimachinery::gvk::GroupResource;
use apimachinery::labels::Selector;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::wire::ApiRequest;

/// A request for metrics.
pub(super) struct MetricsRequest {
    method: Method,
    /// Of the path, behind `/apis`.
    parts: Vec<String>,
    query: Vec<(String, String)>,
    /// Whether a table is liked best.
    pub(super) wants_table: bool,
}

impl MetricsRequest {
    pub(super) fn of(request: &ApiRequest) -> MetricsRequest {
        let parts = request.uri().path().split('/').filter(|part| !part.is_empty()).skip(1);
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(&value.replace('+', " ")))
        };
        let query = request.uri().query().unwrap_or("").split('&').map(pair).collect();
        let accepted = accepted(request.headers());
        let wants_table = accepted.first().is_some_and(|first| first.parameter("as") == "Table");
        let method = request.method().clone();
        MetricsRequest { method, parts: parts.map(decoded).collect(), query, wants_table }
    }

    pub(super) fn group(&self) -> &str {
        self.parts.first().map_or("", String::as_str)
    }

    pub(super) fn version(&self) -> &str {
        self.parts.get(1).map_or("", String::as_str)
    }

    /// Behind group and version.
    pub(super) fn path(&self) -> Vec<&str> {
        self.parts.iter().skip(2).map(String::as_str).collect()
    }

    /// Refuses everything but reading, in the words of an apiserver.
    pub(super) fn must_read(&self, resource: &str) -> Result<(), Status> {
        let resource = GroupResource::new(self.group(), resource);
        let is_watch = matches!(self.parameter("watch"), Some("true" | "1" | ""));
        let action = match self.method {
            Method::GET if is_watch => "watch",
            Method::GET | Method::HEAD => return Ok(()),
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            _ => "delete",
        };
        Err(Status::method_not_supported(&resource, action))
    }

    /// Which objects.
    pub(super) fn list_options(&self) -> Result<ListOptions, Status> {
        let fields = FieldSelector::parse(self.parameter("fieldSelector").unwrap_or(""));
        let fields =
            fields.map_err(|why| Status::bad_request(format!("unable to parse requirement: {why}")))?;
        let predicate = Predicate { labels: self.selector("labelSelector")?, fields, ..Predicate::default() };
        Ok(ListOptions { predicate, ..ListOptions::default() })
    }

    pub(super) fn selector(&self, name: &str) -> Result<Selector, Status> {
        let selector = Selector::parse(self.parameter(name).unwrap_or(""));
        selector.map_err(|why| Status::bad_request(format!("unable to parse requirement: {why}")))
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
