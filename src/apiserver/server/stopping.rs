//! The end of a server: what is under way is finished, what would go on for ever is told goodbye
//! (`ServerShutdownSignal`, `http.Server.Shutdown`).

use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::sync::Semaphore;

use crate::endpoints::response::unread_watches::UnreadWatches;
use clock::Clock;

/// How long requests under way, and streams that say goodbye, may go on after a stop; then they are cut.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Ends watches and upgraded streams, and waits for whatever is under way on all connections, of which each
/// has a place: those that were upgraded are HTTP's no more, and give theirs back when they have gone.
pub(super) async fn drain(
    watches: &UnreadWatches,
    graceful: Arc<GracefulShutdown>,
    (places, count): (&Semaphore, usize),
) {
    watches.end();
    let Some(graceful) = Arc::into_inner(graceful) else { return };
    let all = u32::try_from(count).unwrap_or(u32::MAX);
    let drained = async {
        graceful.shutdown().await;
        let _ = places.acquire_many(all).await;
    };
    let _ = Clock::real().timeout(DRAIN_TIMEOUT, drained).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::SocketAddr;

    use axum::body::Body;
    use futures::StreamExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use crate::server::{Server, bind};
    use apimachinery::wire::{ApiService, WatchStream};

    /// A watch of which one event is there, and then no other.
    fn quiet_watch() -> ApiService {
        ApiService::new(tower::service_fn(|_| async {
            let first = futures::stream::iter([Ok::<_, Infallible>("event\n")]);
            let mut answer = http::Response::new(Body::from_stream(first.chain(futures::stream::pending())));
            answer.extensions_mut().insert(WatchStream);
            Ok(answer)
        }))
    }

    #[tokio::test]
    async fn watches_end_as_if_they_had_no_more_to_say_when_the_server_stops() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let server = Server::start(listener, None, quiet_watch()).unwrap();
        let mut client = TcpStream::connect(server.address()).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut said = vec![];
        while !said.ends_with(b"event\n\r\n") {
            said.push(client.read_u8().await.unwrap());
        }
        let mut rest = String::new();
        let (_, read) = tokio::join!(server.stop(), client.read_to_string(&mut rest));
        read.unwrap();
        assert_eq!(rest, "0\r\n\r\n", "the last chunk, and no cut connection");
    }
}
