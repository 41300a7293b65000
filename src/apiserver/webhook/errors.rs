//! Why a call failed, in the words of Go's `net/http`, `crypto/tls` and client-go, which people search for.

use std::error::Error;
use std::io;

use http::Method;
use rustls::{AlertDescription, CertificateError};
use serde_json::Value;

/// Why there is no connection, in Go's words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct DialError(pub String);

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// As `Post "https://...": context deadline exceeded`.
    pub message: String,
    /// The HTTP status, when there was an answer that is none of success.
    pub code: Option<u16>,
    /// Whether the time was over.
    pub timed_out: bool,
    is_unreadable: bool,
}

impl CallError {
    /// The server could not be asked, or not heard to its end.
    pub(super) fn failed(method: &Method, url: &str, why: &str) -> CallError {
        let (first, rest) = method.as_str().split_at(1);
        let message = format!("{first}{} {url:?}: {why}", rest.to_ascii_lowercase());
        CallError { message, code: None, timed_out: false, is_unreadable: false }
    }

    /// The server did not answer in time.
    pub(super) fn timed_out(method: &Method, url: &str) -> CallError {
        CallError { timed_out: true, ..CallError::failed(method, url, "context deadline exceeded") }
    }

    /// The server answered something that cannot be read.
    pub(super) fn invalid_answer(message: String) -> CallError {
        CallError { message, code: None, timed_out: false, is_unreadable: true }
    }

    /// Whether asking again may help (`webhook.DefaultShouldRetry`): the connection was lost, or the server
    /// says that it could not answer now.
    pub fn may_pass(&self) -> bool {
        match self.code {
            Some(code) => matches!(code, 429 | 500 | 504),
            None => self.message.ends_with("connection reset by peer"),
        }
    }

    /// Whether the server took the request and answered something that is no JSON, or nothing.
    pub fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }
}

/// What an answer that is no success means (client-go's `NewGenericServerResponse` for a POST). A Status in
/// the body speaks for itself.
pub(super) fn refused(code: u16, body: &[u8]) -> CallError {
    let text = String::from_utf8_lossy(&body[..body.len().min(2048)]).trim().to_owned();
    let status = serde_json::from_slice::<Value>(body).ok().filter(|tree| tree["kind"] == "Status");
    let said = status.and_then(|tree| Some(tree["message"].as_str()?.to_owned()));
    let message = said.filter(|message| !message.is_empty()).unwrap_or_else(|| meaning(code, &text));
    CallError { message, code: Some(code), timed_out: false, is_unreadable: false }
}

fn meaning(code: u16, text: &str) -> String {
    let words = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        415 => "the body of the request was in an unknown format - accepted media types include: ",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing \
             the request"
        }
        403 | 406 => text,
        500.. => {
            let text = if text.is_empty() { "unknown" } else { text };
            return format!("an error on the server ({text:?}) has prevented the request from succeeding");
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    words.to_owned()
}

/// The innermost cause that Go has words for.
pub(super) fn describe(error: &(dyn Error + 'static), max_response_bytes: usize) -> String {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(text) = known(current, max_response_bytes) {
            return text;
        }
        // An io::Error that carries another error hides it from `source`.
        let carried = current.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match carried {
            Some(carried) => Some(carried),
            None => current.source(),
        };
    }
    innermost(error)
}

fn known(error: &(dyn Error + 'static), max_response_bytes: usize) -> Option<String> {
    if let Some(dial) = error.downcast_ref::<DialError>() {
        return Some(dial.0.clone());
    }
    if error.is::<http_body_util::LengthLimitError>() {
        return Some(format!("the response is larger than {max_response_bytes} bytes"));
    }
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(of_tls(tls));
    }
    if let Some(hyper) = error.downcast_ref::<hyper::Error>() {
        return (hyper.is_incomplete_message() || hyper.is_closed()).then(|| "EOF".into());
    }
    let io = error.downcast_ref::<io::Error>()?;
    match io.get_ref() {
        None => Some(of_system(io)),
        Some(_) if io.kind() == io::ErrorKind::UnexpectedEof => Some("EOF".into()),
        Some(_) => None,
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// What the system says of a socket, as Go's `syscall.Errno` says it.
pub(super) fn of_system(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".into(),
        io::ErrorKind::ConnectionReset => "read: connection reset by peer".into(),
        io::ErrorKind::TimedOut => "i/o timeout".into(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".into(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".into(),
        io::ErrorKind::UnexpectedEof => "EOF".into(),
        _ => error.to_string(),
    }
}

fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            format!("tls: failed to verify certificate: x509: {}", of_certificate(error))
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "remote error: tls: certificate required".into()
        }
        rustls::Error::AlertReceived(AlertDescription::BadCertificate) => {
            "remote error: tls: bad certificate".into()
        }
        rustls::Error::AlertReceived(AlertDescription::HandshakeFailure) => {
            "remote error: tls: handshake failure".into()
        }
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
            "http: server gave HTTP response to HTTPS client".into()
        }
        other => format!("tls: {other}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    use CertificateError as E;
    match error {
        E::UnknownIssuer | E::BadSignature => "certificate signed by unknown authority".into(),
        E::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            let is_address = expected.parse::<std::net::IpAddr>().is_ok();
            if !names.is_empty() {
                format!("certificate is valid for {}, not {expected}", names.join(", "))
            } else if is_address {
                format!("cannot validate certificate for {expected} because it doesn't contain any IP SANs")
            } else {
                "certificate relies on legacy Common Name field, use SANs instead".into()
            }
        }
        E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".into()
        }
        other => other.to_string(),
    }
}

/// rustls shows a name with its type: `DnsName("a.b")`.
fn plain_name(shown: &str) -> &str {
    shown.split('(').nth(1).map_or(shown, |rest| rest.trim_end_matches(')')).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::status::Status;

    #[test]
    fn refusals_read_as_client_gos() {
        for (code, body, message) in [
            (404, "404 page not found", "the server could not find the requested resource"),
            (500, "boom", "an error on the server (\"boom\") has prevented the request from succeeding"),
            (500, "", "an error on the server (\"unknown\") has prevented the request from succeeding"),
            (302, "", "the server responded with the status code 302 but did not return more information"),
        ] {
            assert_eq!(refused(code, body.as_bytes()).message, message);
        }
        let status = Status::unauthorized().to_value().to_string();
        assert_eq!(refused(401, status.as_bytes()).message, "Unauthorized");
        assert_eq!(plain_name("DnsName(\"a.b\")"), "a.b");
    }
}
