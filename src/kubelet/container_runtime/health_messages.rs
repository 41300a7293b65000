//! The messages of gRPC's health protocol (`grpc.health.v1`), as protobuf has them: one field each.

use bytes::{BufMut, Bytes, BytesMut};

/// Its method.
pub(crate) const CHECK: &str = "/grpc.health.v1.Health/Check";
/// `HealthCheckRequest.service`: field 1, with a length.
const SERVICE: u8 = 0x0a;
/// `HealthCheckResponse.status`: field 1, a number.
const STATUS: u8 = 0x08;
/// `HealthCheckResponse.ServingStatus`
const STATUSES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/// `HealthCheckRequest`
pub(crate) fn request(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(SERVICE);
        let mut length = service.len();
        while length > 0x7f {
            message.put_u8((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.put_u8(length as u8);
        message.put_slice(service.as_bytes());
    }
    message.freeze()
}

/// The service that a `HealthCheckRequest` is about; nothing for what is none.
pub(crate) fn service(message: &[u8]) -> Option<&str> {
    let Some((tag, mut rest)) = message.split_first() else { return Some("") };
    let mut length = 0;
    for shift in (0..28).step_by(7) {
        let (byte, others) = rest.split_first()?;
        rest = others;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (*tag == SERVICE).then(|| std::str::from_utf8(rest.get(..length)?).ok()).flatten()
}

/// `HealthCheckResponse`
pub(crate) fn response(is_serving: bool) -> Bytes {
    Bytes::from_static(if is_serving { &[STATUS, 1] } else { &[STATUS, 2] })
}

/// What a `HealthCheckResponse` says.
pub(crate) fn status(message: &[u8]) -> &'static str {
    match message {
        [STATUS, status, ..] => STATUSES.get(usize::from(*status)).copied().unwrap_or("UNKNOWN"),
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let long = "x".repeat(300);
        for name in ["", "a", "my.service.v1", &long] {
            assert_eq!(service(&request(name)), Some(name));
        }
        assert_eq!(service(b"\x0a\x05ab"), None);
        assert_eq!(service(b"\x10\x01"), None);
        assert_eq!((status(&response(true)), status(&response(false))), ("SERVING", "NOT_SERVING"));
        assert_eq!(status(b""), "UNKNOWN");
    }
}
