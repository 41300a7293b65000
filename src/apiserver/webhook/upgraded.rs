//! Connections that go on with another protocol than HTTP, from a client to whoever answers it.

use axum::body::Body;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use apimachinery::wire::ApiResponse;

/// The answer that goes on (101), and the bytes both ways until both have said all
/// (`proxy.UpgradeAwareHandler`).
pub fn go_on<B>(
    client: OnUpgrade,
    mut response: http::Response<B>,
) -> (ApiResponse, impl Future<Output = ()> + Send + 'static) {
    let server = hyper::upgrade::on(&mut response);
    (response.map(|_| Body::empty()), carry(client, server))
}

async fn carry(client: OnUpgrade, server: OnUpgrade) {
    let (Ok(client), Ok(server)) = (client.await, server.await) else { return };
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    // An end that goes away is the end.
    drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
}
