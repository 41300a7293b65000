//! Answers of servers, as HTTP has them.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use machine::byte_text;
use machine::requests::WebAnswer;

pub(super) fn response(answered: WebAnswer) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(byte_text::bytes_of(&answered.body).into_owned()));
    // What is not the end of an answer is none.
    let code = StatusCode::from_u16(answered.code).ok().filter(|code| !code.is_informational());
    *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answered.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    for (name, value) in answered.own_headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
