//! What the client can read: `Accept` and the media types in it (`endpoints/handlers/negotiation`).

use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

use crate::endpoints::query::Query;
use apimachinery::accept::{Accepted, MediaType, accepted};
use apimachinery::status::{Status, StatusDetails};

const ALL: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// YAML has no frames.
const STREAMS: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Into what an object is transformed before it is written (`as=` with `g=meta.k8s.io`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transform {
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
pub(crate) struct Output {
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

/// What an endpoint can write (`negotiation.EndpointRestrictions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restrictions {
    /// One document, as it is.
    Document,
    /// Objects of a kind: as they are, or their metadata.
    Objects {
        /// As rows of a table too: of what is never kept there is none.
        with_table: bool,
        /// Only their metadata can be protobuf.
        is_custom: bool,
    },
}

/// Whether a built-in kind is asked for a form that its route can write, whatever its parameters: upstream's
/// router (go-restful) looks before anybody negotiates, in other words, and knows no `application/*`.
///
/// # Errors
/// 406 when there is none.
pub(crate) fn route(headers: &HeaderMap, is_list: bool) -> Result<(), Status> {
    let Some(header) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else { return Ok(()) };
    let is_written = |clause: &str| {
        let media_type = clause.split(';').next().unwrap_or_default().trim();
        media_type == "*/*" || MediaType::ALL.iter().any(|known| known.name() == media_type)
    };
    if header.is_empty() || header.split(',').any(is_written) {
        return Ok(());
    }
    let types = if is_list { format!("{ALL}, {STREAMS}") } else { ALL.to_owned() };
    let text = format!("406: Not Acceptable\n\nAvailable representations: {types}");
    Err(Status::failure(406, "NotAcceptable", text).with_details(StatusDetails::default()))
}

/// The best form that both sides know.
///
/// # Errors
/// 406 when there is none.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    query: &Query,
    restrictions: Restrictions,
) -> Result<Output, Status> {
    let pretty = |media_type| media_type == MediaType::Json && is_pretty(headers, query);
    // Most say just this.
    let is_json = headers.get(ACCEPT).is_none_or(|value| value == MediaType::Json.name() || value.is_empty());
    if is_json {
        return Ok(Output { pretty: pretty(MediaType::Json), ..Output::default() });
    }
    for clause in &accepted(headers) {
        for media_type in MediaType::ALL.into_iter().filter(|media_type| clause.matches(*media_type)) {
            if let Some(transform) = restrictions.allowed(clause, media_type) {
                let pretty =
                    pretty(media_type) || media_type == MediaType::Json && clause.parameter("pretty") == "1";
                return Ok(Output { media_type, transform, pretty });
            }
        }
    }
    Err(not_acceptable(ALL))
}

/// 406 for what cannot be watched in a form of answers that has no frames.
pub(crate) fn not_a_stream() -> Status {
    not_acceptable(STREAMS)
}

fn not_acceptable(types: &str) -> Status {
    let text = format!("only the following media types are accepted: {types}");
    Status::failure(406, "NotAcceptable", text)
}

/// 415. `types` are what would have been accepted.
pub(crate) fn unsupported_media_type(types: &str) -> Status {
    let text =
        format!("the body of the request was in an unknown format - accepted media types include: {types}");
    Status::failure(415, "UnsupportedMediaType", text)
}

impl Restrictions {
    /// What a clause asks for; nothing where the endpoint cannot do that: then the next clause counts.
    fn allowed(self, clause: &Accepted, media_type: MediaType) -> Option<Transform> {
        let stream = clause.parameter("stream");
        if !stream.is_empty() && (media_type == MediaType::Yaml || stream != "watch") {
            return None;
        }
        let is_object = matches!(self, Restrictions::Objects { .. });
        if !matches!((clause.parameter("sv"), is_object), ("", _) | ("v1", true)) {
            return None;
        }
        let transform = transform(clause)?;
        let is_allowed = match (self, &transform) {
            (Restrictions::Document, transform) => *transform == Transform::None,
            (Restrictions::Objects { is_custom, .. }, Transform::None) => {
                !(is_custom && media_type == MediaType::Protobuf)
            }
            (Restrictions::Objects { with_table, .. }, Transform::Table(_)) => {
                with_table && media_type != MediaType::Protobuf
            }
            (_, Transform::PartialMetadata { .. }) => true,
        };
        is_allowed.then_some(transform)
    }
}

/// Nothing for a transformation that no server knows.
fn transform(clause: &Accepted) -> Option<Transform> {
    let [kind, group, version] = ["as", "g", "v"].map(|name| clause.parameter(name));
    if (kind, group, version) == ("", "", "") {
        return Some(Transform::None);
    }
    if group != "meta.k8s.io" || !matches!(version, "v1" | "v1beta1") {
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
        return crate::request::is_true(pretty);
    }
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTS: Restrictions = Restrictions::Objects { with_table: true, is_custom: false };
    const CUSTOM: Restrictions = Restrictions::Objects { with_table: true, is_custom: true };
    const REVIEWS: Restrictions = Restrictions::Objects { with_table: false, is_custom: false };

    fn output(accept: &str, restrictions: Restrictions) -> Result<(MediaType, Transform), Status> {
        let mut headers = HeaderMap::new();
        if !accept.is_empty() {
            headers.insert(ACCEPT, accept.parse().unwrap());
        }
        let output = negotiate(&headers, &Query::default(), restrictions)?;
        Ok((output.media_type, output.transform))
    }

    #[test]
    fn the_best_that_both_know_is_taken() {
        let protobuf = "application/vnd.kubernetes.protobuf";
        let table = Transform::Table("v1".into());
        let metadata = Transform::PartialMetadata { version: "v1".into(), is_list: true };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,\
            application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let of_metadata = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        let of_table = "as=Table;v=v1;g=meta.k8s.io";
        let magic = "application/json;as=Magic;v=v1;g=meta.k8s.io,application/json";
        let both = format!("{protobuf},application/json");
        let json = (MediaType::Json, Transform::None);
        let cases = [
            ("", OBJECTS, json.clone()),
            ("*/*", OBJECTS, json.clone()),
            (kubectl, OBJECTS, (MediaType::Json, table.clone())),
            (&both, OBJECTS, (MediaType::Protobuf, Transform::None)),
            (&both, CUSTOM, json.clone()),
            (&format!("{protobuf};{of_metadata}"), CUSTOM, (MediaType::Protobuf, metadata.clone())),
            (&format!("{protobuf};{of_table},application/json"), OBJECTS, json.clone()),
            (&format!("application/yaml;{of_table}"), OBJECTS, (MediaType::Yaml, table)),
            (kubectl, REVIEWS, json.clone()),
            (kubectl, Restrictions::Document, json.clone()),
            ("application/json;q=0.5, application/yaml", OBJECTS, (MediaType::Yaml, Transform::None)),
            ("application/*;stream=watch", OBJECTS, json.clone()),
            ("application/json;stream=else, application/json;sv=v1", OBJECTS, json.clone()),
            (magic, OBJECTS, json),
            (&format!("application/json;{of_metadata}"), OBJECTS, (MediaType::Json, metadata)),
        ];
        for (accept, restrictions, expected) in cases {
            assert_eq!(output(accept, restrictions).unwrap(), expected, "{accept}");
        }
    }

    #[test]
    fn an_unknown_type_is_not_acceptable() {
        let error = output("text/plain", OBJECTS).unwrap_err();
        assert_eq!((error.code, &*error.reason), (406, "NotAcceptable"));
        assert_eq!(error.message, format!("only the following media types are accepted: {ALL}"));
        for (accept, restrictions) in [
            ("application/vnd.kubernetes.protobuf", CUSTOM),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", REVIEWS),
            ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", OBJECTS),
            ("application/yaml;stream=watch", OBJECTS),
            ("application/json;v=v1", OBJECTS),
        ] {
            assert_eq!(output(accept, restrictions).unwrap_err().code, 406, "{accept}");
        }
    }

    #[test]
    fn a_route_knows_what_it_can_write() {
        let routed = |accept: &str, is_list| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            route(&headers, is_list).map_err(|status| status.message)
        };
        let lists = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
            application/vnd.kubernetes.protobuf, application/json;stream=watch, \
            application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(routed("text/html, text/plain;q=0.5", true).unwrap_err(), lists);
        assert!(routed("application/*", false).unwrap_err().ends_with(ALL));
        for accept in ["text/html, */*;q=0.1", "application/json;as=Chart;v=v1", "", "x, application/yaml"] {
            routed(accept, false).unwrap();
        }
    }

    #[test]
    fn people_get_line_breaks() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, "curl/8.5.0".parse().unwrap());
        let pretty = |headers: &HeaderMap, query: &str| {
            negotiate(headers, &Query::parse(query), OBJECTS).unwrap().pretty
        };
        assert!(pretty(&headers, ""));
        assert!(!pretty(&headers, "pretty=0"));
        assert!(pretty(&HeaderMap::new(), "pretty=true"));
        headers.insert(ACCEPT, "application/json;pretty=1".parse().unwrap());
        assert!(pretty(&headers, "pretty=0"));
    }
}
