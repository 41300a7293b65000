//! Clients that speak HTTP where TLS is expected: how Go's servers recognise them and what they answer
//! (`net/http`, `tlsRecordHeaderLooksLikeHTTP` and `conn.serve`).

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::rewound::{HEAD_BYTES, Rewound};

/// The answer, before the connection is closed.
const REFUSAL: &str = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// What the server's log says of it.
const LOGGED: &str = "client sent an HTTP request to an HTTPS server";

/// How HTTP begins, in as many bytes as a record of TLS has before its content; other methods are not
/// looked for.
const BEGINNINGS: [&[u8; HEAD_BYTES]; 5] = [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"];

/// The connection of a client that does not begin with HTTP, its first bytes to be read once more. Who does
/// is told so, and hung up on.
///
/// # Errors
/// The connection's, or that the client speaks HTTP, as Go's server logs it.
pub async fn expect_tls<Io>(io: Io) -> io::Result<Rewound<Io>>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let io = Rewound::after_head(io).await?;
    if !looks_like_http(io.head()) {
        return Ok(io);
    }
    let mut io = io.into_rest();
    io.write_all(REFUSAL.as_bytes()).await?;
    io.shutdown().await?;
    Err(io::Error::other(LOGGED))
}

fn looks_like_http(head: &[u8]) -> bool {
    BEGINNINGS.iter().any(|beginning| beginning[..] == *head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_told_from_tls() {
        assert!(looks_like_http(b"GET /") && looks_like_http(b"OPTIO") && looks_like_http(b"PUT /"));
        assert!(
            !looks_like_http(b"DELET") && !looks_like_http(&[22, 3, 1, 2, 0]) && !looks_like_http(b"GET")
        );
    }
}
