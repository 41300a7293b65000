//! `Accept`: which media types a client can read, in the order in which it likes them (goautoneg's
//! `ParseAccept`, `negotiation.NegotiateMediaTypeOptions`).

use http::HeaderMap;
use http::header::ACCEPT;

use super::protobuf;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// One clause of an `Accept` header: a media type with its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// As `application/json`.
    pub media_type: String,
    /// As `as=Table`.
    pub parameters: Vec<(String, String)>,
    quality: f32,
}

impl MediaType {
    /// Those that a server writes, the one that it likes best first.
    pub const ALL: [MediaType; 3] = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf];

    /// As a header says it.
    pub fn name(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Yaml => "application/yaml",
            MediaType::Protobuf => protobuf::MEDIA_TYPE,
        }
    }
}

impl Accepted {
    /// A clause that is no more than a media type.
    pub fn of(media_type: &str) -> Accepted {
        Accepted { media_type: media_type.into(), parameters: vec![], quality: 1.0 }
    }

    /// A parameter's value; empty when it is not there.
    pub fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().rev().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// Whether a server that writes this may take the clause for it.
    pub fn matches(&self, media_type: MediaType) -> bool {
        matches!(self.media_type.as_str(), "*/*" | "application/*") || self.media_type == media_type.name()
    }

    /// Upstream's order, which is none: the first of these that holds decides.
    fn is_before(&self, other: &Accepted) -> bool {
        let is_open = |clause: &Accepted| clause.media_type.starts_with("*/");
        let is_half_open = |clause: &Accepted| clause.media_type.ends_with("/*");
        self.quality > other.quality
            || !is_open(self) && is_open(other)
            || !is_half_open(self) && is_half_open(other)
    }
}

/// The clauses of the `Accept` header, best first.
pub fn accepted(headers: &HeaderMap) -> Vec<Accepted> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut clauses: Vec<Accepted> = header.split(',').filter_map(clause).collect();
    // Go sorts so few by insertion; with an order that is none, how it is sorted shows.
    for from in 1..clauses.len() {
        for at in (1..=from).rev() {
            if !clauses[at].is_before(&clauses[at - 1]) {
                break;
            }
            clauses.swap(at, at - 1);
        }
    }
    clauses
}

/// How a `Status` is written for this client: it takes no transformation, and there is always one. None where
/// the client reads nothing that the server writes.
pub fn media_type_of_status(headers: &HeaderMap) -> Option<MediaType> {
    let is_json = headers.get(ACCEPT).is_none_or(|value| value == MediaType::Json.name() || value.is_empty());
    let clauses = if is_json { Vec::new() } else { accepted(headers) };
    if clauses.is_empty() {
        return is_json.then_some(MediaType::Json);
    }
    let is_plain = |clause: &&Accepted| {
        clause.parameters.iter().all(|(name, _)| !matches!(name.as_str(), "as" | "g" | "v" | "sv"))
    };
    clauses
        .iter()
        .filter(is_plain)
        .find_map(|clause| MediaType::ALL.into_iter().find(|media_type| clause.matches(*media_type)))
}

/// Nothing for what is no media type.
fn clause(part: &str) -> Option<Accepted> {
    let mut pieces = part.split(';');
    let name = pieces.next()?.trim_matches(' ');
    let media_type =
        match name.split_once('/').map(|(main, sub)| (main.trim_matches(' '), sub.trim_matches(' '))) {
            None if name == "*" => "*/*".to_owned(),
            Some((main, sub)) if !sub.is_empty() && !sub.contains('/') => format!("{main}/{sub}"),
            _ => return None,
        };
    let mut clause = Accepted { media_type, quality: 1.0, ..Accepted::default() };
    for (name, value) in pieces.filter_map(|piece| piece.split_once('=')) {
        if value.is_empty() || value.contains('=') {
            continue;
        }
        match name.trim_matches(' ') {
            "q" => clause.quality = value.parse().unwrap_or_default(),
            name => clause.parameters.push((name.to_owned(), value.trim_matches(' ').to_owned())),
        }
    }
    Some(clause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())])
    }

    #[test]
    fn clauses_are_sorted_as_upstream_sorts_them() {
        let cases = [
            ("a/b, c/d", "a/b c/d"),
            ("a/b;q=0.5, c/d", "c/d a/b"),
            ("*/*, a/*, a/b", "a/b a/* */*"),
            ("*, a/b;q=0.1", "a/b */*"),
            ("a/b;q=x,c/d;q=0.1", "c/d a/b"),
            ("nothing, a/b/c, , a/b", "a/b"),
            ("a/b;q=0.3,*/*;q=0.9", "*/* a/b"),
        ];
        for (header, sorted) in cases {
            let names: Vec<String> =
                accepted(&headers(header)).into_iter().map(|clause| clause.media_type).collect();
            assert_eq!(names.join(" "), sorted, "{header}");
        }
    }

    #[test]
    fn a_status_is_not_transformed() {
        let protobuf = "application/vnd.kubernetes.protobuf";
        let cases = [
            ("application/json", Some(MediaType::Json)),
            ("*/*", Some(MediaType::Json)),
            (protobuf, Some(MediaType::Protobuf)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io, application/yaml", Some(MediaType::Yaml)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", None),
            ("text/plain", None),
        ];
        for (header, media_type) in cases {
            assert_eq!(media_type_of_status(&headers(header)), media_type, "{header}");
        }
        assert_eq!(media_type_of_status(&HeaderMap::new()), Some(MediaType::Json));
    }
}
