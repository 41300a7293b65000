//! Connections to listeners that a pod declares.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Semaphore;

use super::forward;
use super::read::DeclaredPort;
use super::routes::{self, WebRoutes};
use super::talk::Talk;
use clock::Clock;

/// So many connections may a declared listener have at once; whoever comes then sees its own end at once.
pub(crate) const MAX_CONNECTIONS: usize = 1024;
/// So much may come in that no exchange expects; a connection that goes on ends.
const MAX_UNMET_BYTES: usize = 64 << 10;

/// A listener that a pod declares, with what its routes count.
#[derive(Debug)]
pub(crate) struct DeclaredListener {
    /// The annotation that it was made of: of another one another is made.
    pub(crate) text: String,
    pub(crate) declaration: DeclaredPort,
    places: Semaphore,
}

impl DeclaredListener {
    pub(crate) fn new(text: String, declaration: DeclaredPort) -> DeclaredListener {
        DeclaredListener { text, declaration, places: Semaphore::new(MAX_CONNECTIONS) }
    }

    /// Serves a connection until its end. Whatever takes time takes it on `clock`.
    pub(crate) async fn serve(self: Arc<DeclaredListener>, io: DuplexStream, clock: Clock) {
        let Ok(_place) = self.places.try_acquire() else {
            return tracing::warn!("a declared listener has {MAX_CONNECTIONS} connections and takes no more");
        };
        match &self.declaration {
            DeclaredPort::Http(routes) => {
                network::http_server::serve(io, |request| answer(routes, request, &clock)).await;
            }
            // Whoever hangs up in the middle has heard enough.
            DeclaredPort::Tcp(talk) => talk_with(talk, io, &clock).await.unwrap_or_default(),
            DeclaredPort::Forward(address) => forward::serve(io, *address, &clock).await,
        }
    }
}

fn answer(
    routes: &WebRoutes,
    request: Request<Bytes>,
    clock: &Clock,
) -> impl Future<Output = Response<Bytes>> {
    let (delay, response) = routes::answer(routes, &request);
    async move {
        if !delay.is_zero() {
            clock.sleep(delay).await;
        }
        response
    }
}

async fn talk_with(talk: &Talk, mut io: DuplexStream, clock: &Clock) -> std::io::Result<()> {
    io.write_all(talk.greeting.as_bytes()).await?;
    let (mut received, mut letters, mut bytes) = (String::new(), vec![], vec![0; 4096]);
    loop {
        let count = io.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        if talk.is_echo {
            io.write_all(&bytes[..count]).await?;
            continue;
        }
        letters.extend_from_slice(&bytes[..count]);
        let mut searched = received.len();
        let rest = letters.split_off(whole_letters(&letters));
        received.push_str(&String::from_utf8_lossy(&letters));
        letters = rest;
        while let Some((exchange, taken)) = talk.met(&received, searched) {
            received.drain(..taken);
            searched = 0;
            if !exchange.delay.is_zero() {
                clock.sleep(exchange.delay).await;
            }
            io.write_all(exchange.send.as_bytes()).await?;
            if exchange.close {
                return Ok(());
            }
        }
        if received.len() > MAX_UNMET_BYTES {
            return Ok(());
        }
    }
}

/// How much of it is not the beginning of a letter in UTF-8 whose end is yet to come.
fn whole_letters(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3)..bytes.len();
    let first = last.rev().find(|at| bytes[*at] & 0xC0 != 0x80);
    let length = |first: u8| match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    first.filter(|at| at + length(bytes[*at]) > bytes.len()).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::time::Time;
    use network::connection;

    fn tcp(text: &str) -> Arc<DeclaredListener> {
        Arc::new(DeclaredListener::new(text.into(), DeclaredPort::Tcp(Talk::parse(text).unwrap())))
    }

    async fn talked(listener: Arc<DeclaredListener>, said: &[u8]) -> String {
        let (mut client, server) = connection();
        let serving = tokio::spawn(listener.serve(server, Clock::stepped(Time::UNIX_EPOCH)));
        let _ = client.write_all(said).await;
        let _ = client.shutdown().await;
        let mut heard = Vec::new();
        let _ = client.read_to_end(&mut heard).await;
        serving.await.unwrap();
        String::from_utf8(heard).unwrap()
    }

    #[tokio::test]
    async fn exchanges_go_on_until_one_closes() {
        let mail = "{greeting: \"220 hi\\n\", exchanges: [{expect: HELO, send: \"250 ok\\n\"}, \
                    {expect: QUIT, send: \"221 bye\\n\", close: true}]}";
        let heard = talked(tcp(mail), b"HELO a\nHELO b\nQUIT\nHELO c\n").await;
        assert_eq!(heard, "220 hi\n250 ok\n250 ok\n221 bye\n");
        assert_eq!(talked(tcp("echo"), b"again").await, "again");
    }

    #[tokio::test]
    async fn letters_and_words_may_come_in_pieces() {
        let (mut client, server) = connection();
        let listener = tcp("[{expect: \"gr\u{fc}\u{df}e\", send: \"ja\", close: true}]");
        let serving = tokio::spawn(listener.serve(server, Clock::stepped(Time::UNIX_EPOCH)));
        for byte in "viele gr\u{fc}\u{df}e".bytes() {
            client.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "ja");
        serving.await.unwrap();
        assert_eq!(
            (whole_letters(b"a\xc3"), whole_letters(b"\xf0\x9f\x98"), whole_letters(b"a\xff")),
            (1, 0, 2)
        );
        assert_eq!((whole_letters("\u{e9}".as_bytes()), whole_letters(b"\x80\x80\x80\x80")), (2, 4));
    }

    #[tokio::test]
    async fn what_nobody_expects_is_taken_up_to_a_bound() {
        let (mut client, server) = connection();
        let listener = tcp("[{expect: never, send: a}]");
        let serving = tokio::spawn(listener.serve(server, Clock::stepped(Time::UNIX_EPOCH)));
        while client.write_all(&[b'x'; 4096]).await.is_ok() {}
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn connections_are_taken_up_to_a_bound() {
        let listener = tcp("echo");
        let open: Vec<_> = (0..MAX_CONNECTIONS)
            .map(|_| {
                let (client, server) = connection();
                (client, tokio::spawn(listener.clone().serve(server, Clock::stepped(Time::UNIX_EPOCH))))
            })
            .collect();
        while listener.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(talked(listener.clone(), b"hi").await, "");
        for (client, serving) in open {
            drop(client);
            serving.await.unwrap();
        }
        assert_eq!(talked(listener, b"hi").await, "hi");
    }
}
