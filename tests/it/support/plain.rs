//! One request without TLS, on a connection of its own.

use std::net::SocketAddr;

use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::wire::Error;

/// The code and the body of the answer to a line as `GET /path`.
pub(crate) async fn ask(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<(u16, String), Error> {
    let stream = tokio::net::TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = http::Request::builder().method(method).uri(path).header("host", address.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = sender.send_request(request.body(body.to_owned())?).await?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok((code, String::from_utf8(bytes.to_vec())?))
}
