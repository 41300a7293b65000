//! SPDY in the messages of a websocket (`tunneling`, as kubectl asks from 1.31 on).

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::streams;
use crate::endpoints::response::websocket::{NORMAL, frame};
use crate::kubelet_client::Duplex;
use network::websocket_frames::{BINARY, CLOSE, FrameHead, PING, PONG};

/// Bytes on their way through a tunnel.
const TUNNEL_BYTES: usize = 64 << 10;

/// Takes SPDY out of the messages of a websocket, and puts it in (`portforward.NewTunnelingHandler`).
pub(super) async fn tunnel<Served: Future<Output = ()>>(
    io: Box<dyn Duplex>,
    serve: impl FnOnce(Box<dyn Duplex>) -> Served,
) {
    let (inner, outer) = tokio::io::duplex(TUNNEL_BYTES);
    let (reader, writer) = tokio::io::split(io);
    let (from, mut to) = tokio::io::split(outer);
    // One ping is answered at a time: a client that sends more of them waits.
    let (pings, asked) = mpsc::channel(1);
    let carrying = async {
        tokio::select! {
            // When the client is gone SPDY reads its end, and then ends the other way.
            () = async {
                drop(unwrap(reader, &mut to, pings).await);
                drop(to.shutdown().await);
                std::future::pending().await
            } => {}
            wrapped = wrap(from, writer, asked) => drop(wrapped),
        }
    };
    tokio::join!(carrying, serve(Box::new(inner)));
}

/// What stands in the client's messages.
pub(super) async fn unwrap(
    mut reader: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    pings: mpsc::Sender<Vec<u8>>,
) -> std::io::Result<()> {
    loop {
        let head = FrameHead::read(&mut reader).await?;
        if head.length > streams::MAX_MESSAGE_BYTES || head.opcode == CLOSE {
            return Ok(());
        }
        let payload = head.payload(&mut reader).await?;
        match head.opcode {
            PING => drop(pings.send(payload).await),
            PONG => {}
            _ => to.write_all(&payload).await?,
        }
    }
}

/// As messages to the client.
async fn wrap(
    mut from: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    mut pings: mpsc::Receiver<Vec<u8>>,
) -> std::io::Result<()> {
    let mut said = vec![0; TUNNEL_BYTES];
    loop {
        tokio::select! {
            Some(ping) = pings.recv() => writer.write_all(&frame(PONG, &ping[..ping.len().min(125)])).await?,
            count = from.read(&mut said) => match count? {
                0 => {
                    writer.write_all(&frame(CLOSE, &NORMAL)).await?;
                    writer.flush().await?;
                    return writer.shutdown().await;
                }
                count => writer.write_all(&frame(BINARY, &said[..count])).await?,
            },
        }
        writer.flush().await?;
    }
}
