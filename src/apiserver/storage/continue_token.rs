//! Continue tokens (`storage/continue.go`): the revision of the first page, and the key that comes next.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use apimachinery::decode::{base64_error, syntax_error};
use apimachinery::status::Status;

const VERSION: &str = "meta.k8s.io/v1";

/// What a token says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContinueToken {
    /// The revision to read at; none is the newest, at the price of an inconsistent list.
    pub revision: Option<u64>,
    /// The first key that may be answered, relative to what is listed.
    pub start: String,
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    /// As it is sent.
    pub(super) fn encode(&self) -> String {
        let rv = self.revision.and_then(|revision| i64::try_from(revision).ok()).unwrap_or(-1);
        let encoded = Encoded { v: VERSION.into(), rv, start: self.start.clone() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&encoded).expect("strings and a number are JSON"))
    }

    /// Reads what a client sent back.
    pub(super) fn decode(text: &str) -> Result<ContinueToken, Status> {
        let refuse = |why: String| Status::bad_request(format!("invalid continue token: {why}"));
        let not_valid = |error: String| refuse(format!("continue key is not valid: {error}"));
        let no_base64 = |error| not_valid(base64_error(text.as_bytes(), &error));
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(no_base64)?;
        let no_json =
            |error: serde_json::Error| not_valid(syntax_error(&bytes).unwrap_or_else(|| error.to_string()));
        let token: Encoded = serde_json::from_slice(&bytes).map_err(no_json)?;
        if token.v != VERSION {
            let why = format!("server does not recognize this encoded version {}", token.v);
            return Err(not_valid(why));
        }
        if token.rv == 0 {
            return Err(not_valid(format!("incorrect encoded start resourceVersion (version {VERSION})")));
        }
        if token.start.is_empty() {
            return Err(not_valid(format!("encoded start key empty (version {VERSION})")));
        }
        let start = token.start.strip_prefix('/').unwrap_or(&token.start);
        // A key that leads upwards would read what is not this list's.
        if start.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(not_valid(token.start));
        }
        Ok(ContinueToken { revision: u64::try_from(token.rv).ok(), start: start.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_upstreams_form() {
        let token = ContinueToken { revision: Some(10), start: "default/pod-a\0".into() };
        let json = URL_SAFE_NO_PAD.decode(token.encode()).unwrap();
        let expected = r#"{"v":"meta.k8s.io/v1","rv":10,"start":"default/pod-a\u0000"}"#;
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        assert_eq!(ContinueToken::decode(&token.encode()).unwrap(), token);
        let inconsistent = ContinueToken { revision: None, start: "a".into() };
        assert_eq!(ContinueToken::decode(&inconsistent.encode()).unwrap(), inconsistent);
    }

    #[test]
    fn bad_tokens_are_refused() {
        let encode = |json: &str| URL_SAFE_NO_PAD.encode(json);
        let cases = [
            ("%".to_owned(), "continue key is not valid: illegal base64 data at input byte 0"),
            (encode("x"), "continue key is not valid: invalid character 'x' looking for beginning of value"),
            (encode(r#"{"v":"v2","rv":1,"start":"a"}"#), "does not recognize this encoded version v2"),
            (encode(r#"{"v":"meta.k8s.io/v1","start":"a"}"#), "incorrect encoded start resourceVersion"),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":1}"#), "encoded start key empty"),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#), "continue key is not valid: ../a"),
        ];
        for (text, message) in cases {
            let status = ContinueToken::decode(&text).unwrap_err();
            assert_eq!(status.code, 400);
            assert!(status.message.starts_with("invalid continue token: "), "{}", status.message);
            assert!(status.message.contains(message), "{}", status.message);
        }
    }
}
