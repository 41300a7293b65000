//! A connection through bad weather: what is sent arrives later.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

use crate::pipe::WINDOW_BYTES;
use crate::weather::Mishaps;
use clock::Clock;
use entropy::Entropy;

/// When what was lost is sent again (`TCP_RTO_MIN`); twice as long each further time.
const RETRANSMISSION: Duration = Duration::from_millis(200);
/// So often in a row one piece is lost at most: a connection that stands is slow and not dead.
const MAX_LOSSES: u32 = 8;

/// How each piece travels.
#[derive(Clone)]
pub(crate) struct Voyage {
    pub(crate) conditions: Mishaps,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
}

/// Hands on what both sides say, late, until both have said all. One window is on its way at a time: how much
/// gets through falls with the latency, as over TCP.
pub(crate) async fn relay(near: DuplexStream, far: DuplexStream, journey: Voyage) {
    let (near_out, near_in) = tokio::io::split(near);
    let (far_out, far_in) = tokio::io::split(far);
    tokio::join!(carry(near_out, far_in, &journey), carry(far_out, near_in, &journey));
}

async fn carry(mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>, journey: &Voyage) {
    let mut piece = vec![0; WINDOW_BYTES];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        journey.travel().await;
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
    journey.travel().await;
    // A side that has hung up hears nothing more.
    let _ = to.shutdown().await;
}

impl Voyage {
    async fn travel(&self) {
        let losses = self.conditions.losses(&self.entropy, MAX_LOSSES);
        let late = RETRANSMISSION * ((1 << losses) - 1);
        self.clock.sleep(self.conditions.latency + late).await;
    }
}
