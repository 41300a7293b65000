//! Requests that servers are asked, and what they answer.

use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::questions::Question;

/// A request, as a server sees it.
#[derive(Clone, Debug, Default)]
pub struct WebRequest<'a> {
    /// `GET`
    pub method: &'a str,
    /// The path, with its query.
    pub target: &'a str,
    /// Names, in small letters, and values.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The address and the port of who asks.
    pub from: &'a str,
    /// The name of the machine that is asked.
    pub host_name: &'a str,
    /// Its address.
    pub address: &'a str,
    /// How long the server has run.
    pub uptime: Duration,
    /// The time, as RFC 3339.
    pub now: &'a str,
    /// What is sent along.
    pub body: &'a [u8],
}

/// What comes back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebAnswer {
    /// The code.
    pub code: u16,
    /// Names and values.
    pub headers: Vec<(&'static str, String)>,
    /// Those that a configuration or somebody behind it names; there may be several of a name.
    pub own_headers: Vec<(String, String)>,
    /// The page.
    pub body: String,
    /// After so long it is said.
    pub delay: Duration,
    /// It is said when the server that was begun at this port is done with its client
    /// ([`crate::server_state::ServerState::runner`]).
    pub after_client_at: Option<i64>,
    /// With this code the server ends instead.
    pub exits: Option<i32>,
}

/// What comes of a request.
#[derive(Debug)]
pub enum Served {
    /// This is answered.
    Answer(WebAnswer),
    /// So long after the request this is asked first; with the answer the request is to be served again.
    Asks(Duration, Box<Question>),
}

impl WebRequest<'_> {
    /// The address of who asks, in brackets where it is of IPv6, and the port.
    pub(crate) fn client(&self) -> (&str, &str) {
        self.from.rsplit_once(':').unwrap_or((self.from, ""))
    }

    /// A header's value; its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }
}

impl WebAnswer {
    pub(crate) fn text(code: u16, body: impl Into<String>) -> WebAnswer {
        WebAnswer::typed(code, "text/plain; charset=utf-8", body)
    }

    /// Of the type that Go's servers take a text for, if they are not told one.
    pub(crate) fn sniffed(code: u16, body: &str) -> WebAnswer {
        WebAnswer::typed(code, sniffed_type(body), body)
    }

    /// As Go's `http.Error` says it: a line that no browser takes for anything else.
    pub(crate) fn error(code: u16, why: impl std::fmt::Display) -> WebAnswer {
        let mut answer = WebAnswer::text(code, format!("{why}\n"));
        answer.headers.push(("x-content-type-options", "nosniff".to_owned()));
        answer
    }

    /// Of a path that is not there (`http.NotFound`).
    pub(crate) fn not_found() -> WebAnswer {
        WebAnswer::error(404, "404 page not found")
    }

    pub(crate) fn typed(code: u16, media_type: &str, body: impl Into<String>) -> WebAnswer {
        let headers = vec![("content-type", media_type.to_owned())];
        WebAnswer { code, headers, body: body.into(), ..WebAnswer::default() }
    }
}

/// With what HTML begins (`net/http.DetectContentType`, the sniffing standard of WHATWG); a tag ends there.
const BEGINNINGS_OF_HTML: [&str; 17] = [
    "<!doctype html",
    "<html",
    "<head",
    "<script",
    "<iframe",
    "<h1",
    "<div",
    "<font",
    "<table",
    "<a",
    "<style",
    "<title",
    "<b",
    "<body",
    "<br",
    "<p",
    "<!--",
];

fn sniffed_type(text: &str) -> &'static str {
    let begun = text.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
    let is_html = BEGINNINGS_OF_HTML.iter().any(|beginning| {
        begun.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
            && begun[beginning.len()..].starts_with([' ', '>'])
    });
    if is_html {
        "text/html; charset=utf-8"
    } else if begun.starts_with("<?xml") {
        "text/xml; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    }
}

/// A parameter of a query, decoded. As Go reads it, a pair with a semicolon is none.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter(|pair| !pair.contains(';'));
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, value)| *key == name && !value.is_empty())?;
    Some(percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned())
}

/// As Go writes the names of headers: `user-agent` is `User-Agent`.
pub fn canonical(name: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        letters
            .next()
            .map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('-').map(capital).collect::<Vec<_>>().join("-")
}

/// As Go's `encoding/json` writes it, so that no page takes it for markup.
pub(crate) fn json_text(value: &serde_json::Value) -> String {
    value.to_string().replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_would_not_read_or_write_as_it_is() {
        assert_eq!(parameter("a=b;c&d=e%3Bf", "a"), None);
        assert_eq!(parameter("a=b;c&d=e%3Bf", "d").as_deref(), Some("e;f"));
        assert_eq!(json_text(&serde_json::json!(["a->b"])), "[\"a-\\u003eb\"]");
        let gone = WebAnswer::not_found();
        assert_eq!((gone.code, &*gone.body), (404, "404 page not found\n"));
        assert_eq!(gone.headers[1], ("x-content-type-options", "nosniff".to_owned()));
    }

    #[test]
    fn a_text_is_of_the_type_that_it_looks_like() {
        let html = ["<a href=\"/rewriteme\">test</a>", "\n <HTML>", "<!DOCTYPE html>", "<!-- x", "<b>"];
        for text in html {
            assert_eq!(sniffed_type(text), "text/html; charset=utf-8", "{text}");
        }
        for text in ["", "<abc>", "<a", "x<a >", "<!DOCTYPE", "é"] {
            assert_eq!(sniffed_type(text), "text/plain; charset=utf-8", "{text}");
        }
        assert_eq!(sniffed_type(" <?xml version"), "text/xml; charset=utf-8");
    }
}
