//! Connections to ports of a pod as channels of a websocket (`v4.channel.k8s.io`; `websocket.go` in
//! `k8s.io/kubelet/pkg/cri/streaming/portforward`): the client names the ports in its request, and has two
//! channels for each, one of them for what goes wrong.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::streams::{Channels, Message};
use crate::kubelet_client::{Duplex, KubeletLookup, PortForwardRequest};

/// What is understood; a client that asks for none of them has the first.
pub(super) const PROTOCOLS: [&str; 3] = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""];
/// So many ports have channels: their numbers go up to 255. More are refused.
pub(super) const MAX_PORTS: usize = 127;
/// So many pieces from all pods wait for the client; then the pods wait.
const PIECES: usize = 8;
/// Bytes of a piece.
const PIECE_BYTES: usize = 16 << 10;

/// The side of a pod to which the client's words go; nothing where nobody is there.
type PodSide = Option<Box<dyn AsyncWrite + Send + Unpin>>;

/// Talks until the client leaves, or all pods have said all.
pub(super) async fn serve(
    mut io: Box<dyn Channels>,
    kubelets: Arc<dyn KubeletLookup>,
    request: PortForwardRequest,
    ports: Vec<u16>,
) {
    let (pieces, mut said) = mpsc::channel(PIECES);
    let mut readers = JoinSet::new();
    let mut writers = Vec::new();
    for (at, port) in ports.into_iter().enumerate() {
        let data = u8::try_from(2 * at).unwrap_or(u8::MAX);
        for channel in [data, data + 1] {
            if io.send(channel, &port.to_le_bytes()).await.is_err() {
                return;
            }
        }
        let asked = PortForwardRequest { port, ..request.clone() };
        writers.push(match kubelets.port_forward(asked).await {
            Ok(pod) => {
                let (from, to) = tokio::io::split(pod);
                readers.spawn(read(data, from, pieces.clone()));
                Some(Box::new(to) as Box<dyn AsyncWrite + Send + Unpin>)
            }
            Err(why) => {
                let pod = &request.pod;
                let text = format!("error forwarding port {port} to pod {pod}, uid : {}", why.message);
                drop(io.send(data + 1, text.as_bytes()).await);
                None
            }
        });
    }
    drop(pieces);
    drop(converse(&mut *io, &mut said, &mut writers).await);
}

async fn converse(
    io: &mut dyn Channels,
    said: &mut mpsc::Receiver<(u8, BytesMut)>,
    writers: &mut [PodSide],
) -> std::io::Result<()> {
    loop {
        tokio::select! {
            piece = said.recv() => match piece {
                Some((channel, bytes)) => io.send(channel, &bytes).await?,
                None => return io.close().await,
            },
            message = io.next() => match message? {
                Message::Data(channel, bytes) if channel % 2 == 0 => {
                    let Some(place) = writers.get_mut(usize::from(channel / 2)) else { continue };
                    write(place, &bytes).await;
                }
                Message::Data(..) => {}
                Message::Ping(payload) => io.pong(&payload).await?,
                Message::Close => return Ok(()),
            },
        }
    }
}

/// One that takes no more is left.
async fn write(place: &mut PodSide, bytes: &[u8]) {
    let Some(to) = place else { return };
    if to.write_all(bytes).await.is_err() || to.flush().await.is_err() {
        *place = None;
    }
}

/// What a pod says, until it has said all.
async fn read(channel: u8, mut from: ReadHalf<Box<dyn Duplex>>, pieces: mpsc::Sender<(u8, BytesMut)>) {
    loop {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        match from.read_buf(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                if pieces.send((channel, piece)).await.is_err() {
                    return;
                }
            }
        }
    }
}
