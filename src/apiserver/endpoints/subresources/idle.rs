//! Streams on which nobody says anything are ended (`--streaming-connection-idle-timeout` of kubelets).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::kubelet_client::Duplex;
use clock::Clock;

/// A connection of which it is counted how often something came or went.
struct CountedIo {
    io: Box<dyn Duplex>,
    count: Arc<AtomicU64>,
}

/// Goes on until its end, or until nothing has come or gone for so long; zero is for ever.
pub(super) async fn until_idle(
    clock: &Clock,
    limit: Duration,
    io: Box<dyn Duplex>,
    conversation: impl FnOnce(Box<dyn Duplex>) -> BoxFuture<'static, ()>,
) {
    if limit.is_zero() {
        return conversation(io).await;
    }
    let count = Arc::<AtomicU64>::default();
    let io = CountedIo { io, count: count.clone() };
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
        outcome
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
        let talking = tokio::spawn(async move { until_idle(&own, minute, Box::new(server), talk).await });
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
}
