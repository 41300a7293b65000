//! What the client can read: `Accept` and the media types in it (`endpoints/handlers/negotiation`).

use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

use super::query::Query;
use crate::apimachinery::status::Status;

const ALL: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const READABLE: &str = "application/json, application/yaml";

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// Into what an object is transformed before it is written (`as=` with `g=meta.k8s.io`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transform {
    /// As it is.
    None,
    /// `metav1.Table`, in this version of the group.
    Table(String),
    /// `metav1.PartialObjectMetadata`, or its list, in this version of the group.
    PartialMetadata {
        /// As `v1`.
        version: String,
        /// Whether the list was named.
        is_list: bool,
    },
}

/// The answer's form (`negotiation.MediaTypeOptions`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it is written.
    pub media_type: MediaType,
    /// Into what it is transformed.
    pub transform: Transform,
    /// With line breaks, for people.
    pub pretty: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output { media_type: MediaType::Json, transform: Transform::None, pretty: false }
    }
}

/// One part of an `Accept` header: a media type with its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// As `application/json`.
    pub media_type: String,
    /// As `as=Table`, names in lower case.
    pub parameters: Vec<(String, String)>,
    quality: f32,
}

impl Accepted {
    /// A parameter's value; empty when it is not there.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// The parts of the `Accept` headers, best first; those of the same quality in the order in which they stand.
pub fn accepted(headers: &HeaderMap) -> Vec<Accepted> {
    let values = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let mut accepted: Vec<Accepted> = values.flat_map(|value| value.split(',')).filter_map(parse).collect();
    accepted.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    accepted
}

fn parse(part: &str) -> Option<Accepted> {
    let mut pieces = part.split(';').map(str::trim);
    let media_type = pieces.next().filter(|media_type| !media_type.is_empty())?.to_ascii_lowercase();
    let mut accepted = Accepted { media_type, quality: 1.0, ..Accepted::default() };
    for (name, value) in pieces.filter_map(|piece| piece.split_once('=')) {
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => accepted.quality = value.parse().unwrap_or(1.0),
            name => accepted.parameters.push((name.to_owned(), value.to_owned())),
        }
    }
    Some(accepted)
}

/// The best form that both sides know. Protobuf is passed over: the client's next choice counts. So are
/// tables of what has none, as it is never kept.
///
/// # Errors
/// 406 when there is none.
pub fn negotiate(headers: &HeaderMap, query: &Query, has_table: bool) -> Result<Output, Status> {
    let pretty = |media_type| media_type == MediaType::Json && is_pretty(headers, query);
    // Most say just this.
    let is_json = headers.get(ACCEPT).is_some_and(|value| value == "application/json")
        && headers.get_all(ACCEPT).iter().nth(1).is_none();
    let accepted = if is_json { Vec::new() } else { accepted(headers) };
    if accepted.is_empty() {
        return Ok(Output { pretty: pretty(MediaType::Json), ..Output::default() });
    }
    for part in &accepted {
        let (Some(media_type), Some(transform)) = (media_type(part), transform(part)) else { continue };
        if !has_table && matches!(transform, Transform::Table(_)) {
            continue;
        }
        return Ok(Output { media_type, transform, pretty: pretty(media_type) });
    }
    let wants_protobuf = accepted.iter().any(|part| part.media_type == "application/vnd.kubernetes.protobuf");
    Err(not_acceptable(if wants_protobuf { READABLE } else { ALL }))
}

fn not_acceptable(types: &str) -> Status {
    let text = format!("only the following media types are accepted: {types}");
    Status::failure(406, "NotAcceptable", text)
}

/// 415. `types` are what would have been accepted.
pub fn unsupported_media_type(types: &str) -> Status {
    let text =
        format!("the body of the request was in an unknown format - accepted media types include: {types}");
    Status::failure(415, "UnsupportedMediaType", text)
}

fn media_type(part: &Accepted) -> Option<MediaType> {
    match part.media_type.as_str() {
        "application/json" | "application/*" | "*/*" => Some(MediaType::Json),
        "application/yaml" => Some(MediaType::Yaml),
        _ => None,
    }
}

/// Nothing for a transformation that no server knows: such a part is passed over.
fn transform(part: &Accepted) -> Option<Transform> {
    let kind = part.parameter("as");
    if kind.is_empty() {
        return Some(Transform::None);
    }
    let version = part.parameter("v");
    if part.parameter("g") != "meta.k8s.io" || !matches!(version, "v1" | "v1beta1") {
        return None;
    }
    match kind {
        "Table" => Some(Transform::Table(version.into())),
        "PartialObjectMetadata" | "PartialObjectMetadataList" => {
            let is_list = kind.ends_with("List");
            Some(Transform::PartialMetadata { version: version.into(), is_list })
        }
        _ => None,
    }
}

/// The query decides; without a word from it, browsers and the like get line breaks.
fn is_pretty(headers: &HeaderMap, query: &Query) -> bool {
    if let Some(pretty) = query.get("pretty") {
        return crate::apiserver::request::is_true(pretty);
    }
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(accept: &str) -> Result<Output, Status> {
        let mut headers = HeaderMap::new();
        if !accept.is_empty() {
            headers.insert(ACCEPT, accept.parse().unwrap());
        }
        negotiate(&headers, &Query::default(), true)
    }

    #[test]
    fn the_best_that_both_know_is_taken() {
        let json = |transform| (MediaType::Json, transform);
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,\
            application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let cases = [
            ("", json(Transform::None)),
            ("*/*", json(Transform::None)),
            (kubectl, json(Transform::Table("v1".into()))),
            ("application/vnd.kubernetes.protobuf,application/json", json(Transform::None)),
            ("application/json;q=0.5, application/yaml", (MediaType::Yaml, Transform::None)),
            ("application/json;as=Magic;v=v1;g=meta.k8s.io,application/json", json(Transform::None)),
            (
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
                json(Transform::PartialMetadata { version: "v1".into(), is_list: true }),
            ),
        ];
        for (accept, expected) in cases {
            let output = output(accept).unwrap();
            assert_eq!((output.media_type, output.transform), expected, "{accept}");
        }
    }

    #[test]
    fn an_unknown_type_is_not_acceptable() {
        let error = output("text/plain").unwrap_err();
        assert_eq!((error.code, &*error.reason), (406, "NotAcceptable"));
        assert!(
            error
                .message
                .ends_with("application/json, application/yaml, application/vnd.kubernetes.protobuf")
        );
        assert!(output("application/vnd.kubernetes.protobuf").is_err());
        let mut table = HeaderMap::new();
        table.insert(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io".parse().unwrap());
        assert_eq!(negotiate(&table, &Query::default(), false).unwrap_err().code, 406);
    }

    #[test]
    fn people_get_line_breaks() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, "curl/8.5.0".parse().unwrap());
        assert!(negotiate(&headers, &Query::default(), true).unwrap().pretty);
        assert!(!negotiate(&headers, &Query::parse("pretty=0"), true).unwrap().pretty);
        assert!(negotiate(&HeaderMap::new(), &Query::parse("pretty=true"), true).unwrap().pretty);
    }
}
