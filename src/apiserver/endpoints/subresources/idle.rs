//! Streams on which nobody says anything are ended (`--streaming-connection-idle-timeout` of kubelets), and
//! all of them with their server.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::endpoints::response::unread_watches::Sending;
use crate::kubelet_client::Duplex;
use clock::Clock;

/// A connection of which it is counted how often something came or went. When its server ends, it is as if
/// the client had hung up, so that the conversation says goodbye.
struct CountedIo {
    io: Box<dyn Duplex>,
    count: Arc<AtomicU64>,
    /// Where it is known when the server ends.
    sending: Option<Sending>,
}

/// Goes on until its end, or until nothing has come or gone for so long; zero is for ever.
pub(super) async fn until_idle(
    clock: &Clock,
    limit: Duration,
    (io, sending): (Box<dyn Duplex>, Option<Sending>),
    conversation: impl FnOnce(Box<dyn Duplex>) -> BoxFuture<'static, ()>,
) {
    let count = Arc::<AtomicU64>::default();
    let io = CountedIo { io, count: count.clone(), sending };
    if limit.is_zero() {
        return conversation(Box::new(io)).await;
    }
    let mut talk: BoxFuture<'static, ()> = conversation(Box::new(io));
    loop {
        let seen = count.load(Ordering::Relaxed);
        let is_over = clock.timeout(limit, &mut talk).await.is_ok();
        if is_over || count.load(Ordering::Relaxed) == seen {
            return;
        }
    }
}

impl CountedIo {
    fn note<T>(&self, outcome: &Poll<std::io::Result<T>>) {
        if matches!(outcome, Poll::Ready(Ok(_))) {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AsyncRead for CountedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_read(context, buffer);
        self.note(&outcome);
        match &self.sending {
            Some(sending) if outcome.is_pending() => sending.poll_over(context).map(Ok),
            _ => outcome,
        }
    }
}

impl AsyncWrite for CountedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write(context, bytes);
        self.note(&outcome);
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::response::unread_watches::{HangUp, UnreadWatches};
    use futures::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn who_says_something_is_kept_and_who_does_not_is_left() {
        let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
        let (mut client, server) = tokio::io::duplex(64);
        let own = clock.clone();
        let talk = |mut io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
            async move { while io.read_u8().await.is_ok() {} }.boxed()
        };
        let minute = Duration::from_secs(60);
        let talking =
            tokio::spawn(async move { until_idle(&own, minute, (Box::new(server), None), talk).await });
        for _ in 0..3 {
            client.write_all(b"x").await.unwrap();
            while clock.next_wake().is_none() {
                tokio::task::yield_now().await;
            }
            clock.advance(minute / 2);
            tokio::task::yield_now().await;
            assert!(!talking.is_finished());
        }
        while !talking.is_finished() {
            match clock.next_wake() {
                Some(wake) => clock.advance(wake),
                None => tokio::task::yield_now().await,
            }
        }
        assert!(clock.elapsed() <= 4 * minute, "{:?}", clock.elapsed());
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn who_is_there_when_the_server_ends_is_told_goodbye() {
        let watches = UnreadWatches::default();
        let goodbye = |mut io: Box<dyn Duplex>| -> BoxFuture<'static, ()> {
            async move {
                while io.read_u8().await.is_ok() {}
                io.write_all(b"goodbye").await.unwrap();
            }
            .boxed()
        };
        for limit in [Duration::ZERO, Duration::from_secs(60)] {
            let (mut client, server) = tokio::io::duplex(64);
            let (clock, sending) = (Clock::real(), watches.begin(&HangUp::default()));
            let io = (Box::new(server) as Box<dyn Duplex>, Some(sending));
            let talking = tokio::spawn(async move { until_idle(&clock, limit, io, goodbye).await });
            client.write_all(b"x").await.unwrap();
            tokio::task::yield_now().await;
            // The second one finds it ended.
            watches.end();
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            assert_eq!(said, "goodbye");
            talking.await.unwrap();
        }
    }
}
