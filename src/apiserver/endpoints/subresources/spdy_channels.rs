//! The channels of a command as streams of SPDY (`k8s.io/kubelet/pkg/cri/streaming/remotecommand`,
//! `httpstream.go`): the client opens one for each, and says in a header which it is.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use spdy::{Incoming, Sender, Stream};

use super::streams::{Channels, Message, RESIZE};
use crate::kubelet_client::Duplex;

/// The header that says what a stream is.
pub(super) const STREAM_TYPE: &str = "streamtype";
const INPUT: u8 = 0;
/// That the channel that is named has ended.
const CLOSED: u8 = 255;

/// Which streams the client opens, beside that of the outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedStreams {
    pub reads: bool,
    pub sends: bool,
    pub sends_errors: bool,
    pub resizes: bool,
}

impl WantedStreams {
    fn count(self) -> usize {
        let flags = [self.reads, self.sends, self.sends_errors, self.resizes];
        1 + flags.into_iter().filter(|is_wanted| *is_wanted).count()
    }
}

/// The streams of one command.
pub(super) struct SpdyChannels {
    incoming: Option<Incoming>,
    input: Option<Stream>,
    resize: Option<Stream>,
    /// What comes on these is not kept.
    streams: BTreeMap<u8, Sender>,
}

/// Talks over a connection until its end, when the client has opened all that is wanted.
pub(super) async fn converse<F>(io: Box<dyn Duplex>, wanted: WantedStreams, talk: F)
where
    F: FnOnce(SpdyChannels) -> BoxFuture<'static, ()> + Send,
{
    let (incoming, work) = spdy::serve(io);
    let talking = async move {
        if let Some(channels) = SpdyChannels::open(incoming, wanted).await {
            talk(channels).await;
        }
    };
    // The work ends behind what was said last, or when the client is gone.
    let (worked, ()) = tokio::join!(work, talking);
    if let Err(error) = worked {
        tracing::debug!(%error, "a stream of a command ended");
    }
}

impl SpdyChannels {
    /// None when the client ends before it has opened them, or opens what nobody knows.
    async fn open(mut incoming: Incoming, wanted: WantedStreams) -> Option<SpdyChannels> {
        let mut streams = BTreeMap::new();
        let mut input = None;
        let mut resize = None;
        let of = |stream: &Option<Stream>| usize::from(stream.is_some());
        while streams.len() + of(&input) + of(&resize) < wanted.count() {
            let stream = incoming.next().await?;
            let channel = match stream.headers.get(STREAM_TYPE)?.as_str() {
                "stdin" => INPUT,
                "stdout" => 1,
                "stderr" => 2,
                "error" => 3,
                "resize" => RESIZE,
                _ => return None,
            };
            match channel {
                INPUT => input = Some(stream),
                RESIZE => resize = Some(stream),
                _ => drop(streams.insert(channel, stream.split().1)),
            }
        }
        Some(SpdyChannels { incoming: Some(incoming), input, resize, streams })
    }

    async fn send_on(&mut self, channel: u8, bytes: &[u8]) -> std::io::Result<()> {
        // The first message of a websocket is empty; a stream is there when it was answered.
        if bytes.is_empty() {
            return Ok(());
        }
        let stream = self.streams.get_mut(&channel).ok_or(ErrorKind::NotConnected)?;
        unless_reset(stream.write(Bytes::copy_from_slice(bytes)).await)
    }

    async fn receive_next(&mut self) -> Message {
        loop {
            let is_read = self.input.is_some();
            tokio::select! {
                biased;
                said = read(&mut self.resize) => match said {
                    Some(bytes) => return Message::Data(RESIZE, bytes),
                    None => self.resize = None,
                },
                said = read(&mut self.input) => {
                    let Some(bytes) = said else {
                        self.input = None;
                        return Message::Data(CLOSED, vec![INPUT]);
                    };
                    return Message::Data(INPUT, bytes);
                }
                () = drained(&mut self.incoming), if !is_read => return Message::Close,
            }
        }
    }

    async fn end(&mut self) -> std::io::Result<()> {
        for stream in self.streams.values_mut() {
            unless_reset(stream.finish().await)?;
        }
        if let Some(incoming) = self.incoming.take() {
            incoming.close().await;
        }
        Ok(())
    }
}

/// Whoever resets one stream still wants the others, and how the command ends (`spdystream` writes on).
fn unless_reset(written: std::io::Result<()>) -> std::io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        written => written,
    }
}

/// What comes on a stream; of one that is not there nothing ever.
async fn read(stream: &mut Option<Stream>) -> Option<Vec<u8>> {
    match stream {
        Some(stream) => stream.read().await.map(Into::into),
        None => std::future::pending().await,
    }
}

/// Whatever else it opens is not wanted; at its end there is nothing more to come.
async fn drained(incoming: &mut Option<Incoming>) {
    if let Some(incoming) = incoming {
        while incoming.next().await.is_some() {}
    }
}

impl Channels for SpdyChannels {
    fn send<'a>(&'a mut self, channel: u8, bytes: &'a [u8]) -> BoxFuture<'a, std::io::Result<()>> {
        self.send_on(channel, bytes).boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, std::io::Result<Message>> {
        self.receive_next().map(Ok).boxed()
    }

    /// Nobody asks: those of SPDY are the connection's.
    fn pong<'a>(&'a mut self, _payload: &'a [u8]) -> BoxFuture<'a, std::io::Result<()>> {
        std::future::ready(Ok(())).boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, std::io::Result<()>> {
        self.end().boxed()
    }
}
