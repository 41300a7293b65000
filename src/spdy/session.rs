//! One connection: what comes is handed to its streams, what they say is written.

use std::collections::HashMap;
use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use sync::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, watch};

use crate::compression::{Compressor, Decompressor, Headers};
use crate::error::ConnectionError;
use crate::frame::{self, FIN, Head};

/// So many streams may be open at once, those among them on which only we still speak; a further one is
/// refused.
pub(crate) const MAX_STREAMS: usize = 2048;
/// So many pieces wait for a stream's reader; then the connection is not read any more.
const READ_AHEAD: usize = 2;
/// So many frames wait to be written; then whoever writes waits.
const WRITE_AHEAD: usize = 16;
/// A data frame is read in pieces of so many bytes, whatever length it announces.
pub(crate) const PIECE_BYTES: usize = 32 << 10;
/// So many streams wait to be taken.
const BACKLOG: usize = 16;

/// The streams that the client opens.
pub struct Incoming {
    opened: mpsc::Receiver<Stream>,
    out: mpsc::Sender<Outgoing>,
}

impl Incoming {
    /// The next one; none when the connection has ended.
    pub async fn next(&mut self) -> Option<Stream> {
        self.opened.recv().await
    }

    /// Ends the connection, behind what was sent before.
    pub async fn close(self) {
        // Where nobody writes any more, it has ended.
        drop(self.out.send(Outgoing::Farewell).await);
    }
}

/// One stream. Dropped before both sides have ended, it is reset.
pub struct Stream {
    /// What it is for.
    pub headers: Headers,
    received: mpsc::Receiver<Bytes>,
    sender: Sender,
}

/// The side of a [`Stream`] that is written.
pub struct Sender {
    id: u32,
    out: mpsc::Sender<Outgoing>,
    resets: Arc<Resets>,
    /// Whether the client has reset it.
    is_reset: watch::Receiver<bool>,
    has_finished: bool,
}

/// Tells when the client wants to hear no more of a stream.
pub struct StreamReset(watch::Receiver<bool>);

impl StreamReset {
    /// Waits until the client has reset it, or the connection has ended.
    pub async fn happens(mut self) {
        // An error is the end of the connection.
        drop(self.0.wait_for(|is_reset| *is_reset).await);
    }
}

impl Stream {
    /// What the client sent next; none when it has said that there is no more, or the stream was reset.
    pub async fn read(&mut self) -> Option<Bytes> {
        self.received.recv().await
    }

    /// Sends. An error is that nobody listens any more: see [`Sender::write`].
    pub async fn write(&mut self, bytes: Bytes) -> std::io::Result<()> {
        self.sender.write(bytes).await
    }

    /// Says that nothing more will be sent.
    pub async fn finish(&mut self) -> std::io::Result<()> {
        self.sender.finish().await
    }

    /// To hear of it when the client resets the stream.
    pub fn reset(&self) -> StreamReset {
        self.sender.reset()
    }

    /// Both sides, for two who work at once.
    pub fn split(self) -> (mpsc::Receiver<Bytes>, Sender) {
        (self.received, self.sender)
    }
}

impl Sender {
    /// To hear of it when the client resets the stream.
    pub fn reset(&self) -> StreamReset {
        StreamReset(self.is_reset.clone())
    }

    /// Sends. An error is that nobody listens any more: `ConnectionReset` where the client has reset this
    /// stream alone.
    pub async fn write(&mut self, bytes: Bytes) -> std::io::Result<()> {
        self.send(bytes, false).await
    }

    /// Says that nothing more will be sent.
    pub async fn finish(&mut self) -> std::io::Result<()> {
        self.send(Bytes::new(), true).await?;
        self.has_finished = true;
        Ok(())
    }

    async fn send(&mut self, bytes: Bytes, is_last: bool) -> std::io::Result<()> {
        if *self.is_reset.borrow() {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let frame = Outgoing::Data { stream: self.id, bytes, is_last };
        self.out.send(frame).await.map_err(|_| ErrorKind::BrokenPipe.into())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.has_finished && !*self.is_reset.borrow() {
            self.resets.add(self.id);
        }
    }
}

enum Outgoing {
    Reply(u32),
    Data { stream: u32, bytes: Bytes, is_last: bool },
    Control(Bytes),
    Farewell,
}

/// Streams that were given up, to be told to the client. Bound: [`MAX_STREAMS`], and those that wait to
/// be taken.
#[derive(Default)]
struct Resets {
    streams: Mutex<Vec<u32>>,
    added: Notify,
}

impl Resets {
    fn add(&self, stream: u32) {
        self.streams.lock().push(stream);
        self.added.notify_one();
    }

    fn count(&self) -> usize {
        self.streams.lock().len()
    }

    async fn take(&self) -> Vec<u32> {
        self.added.notified().await;
        std::mem::take(&mut *self.streams.lock())
    }
}

/// Speaks SPDY/3.1 over `io`, as the side that did not open the connection. The future does the work,
/// and ends with the connection.
pub fn serve<Io>(io: Io) -> (Incoming, impl Future<Output = Result<(), ConnectionError>>)
where
    Io: AsyncRead + AsyncWrite,
{
    let (opened, incoming) = mpsc::channel(BACKLOG);
    let (out, outgoing) = mpsc::channel(WRITE_AHEAD);
    let resets = Arc::new(Resets::default());
    let own = out.clone();
    let work = async move {
        let (reader, writer) = tokio::io::split(io);
        let reading = Reading {
            decompressor: Decompressor::new(),
            streams: HashMap::new(),
            last: 0,
            opened,
            out,
            resets: resets.clone(),
        };
        let (mut reader, mut writer) = (std::pin::pin!(reader), std::pin::pin!(writer));
        // Whichever ends first: without a reader nobody asks, without a writer nobody is answered.
        tokio::select! {
            read = reading.run(&mut reader) => read,
            written = write(&mut writer, outgoing, &resets) => written,
        }
    };
    (Incoming { opened: incoming, out: own }, work)
}

async fn write(
    io: &mut (impl AsyncWrite + Unpin),
    mut outgoing: mpsc::Receiver<Outgoing>,
    resets: &Resets,
) -> Result<(), ConnectionError> {
    let mut compressor = Compressor::new();
    loop {
        tokio::select! {
            // What was sent before a stream was given up comes before its end.
            biased;
            frame = outgoing.recv() => match frame {
                None => return Ok(()),
                Some(Outgoing::Reply(stream)) => {
                    let block = compressor.write(&Headers::new());
                    let payload = [&stream.to_be_bytes()[..], &block].concat();
                    io.write_all(&frame::control(frame::SYN_REPLY, 0, &payload)).await?;
                }
                Some(Outgoing::Control(frame)) => io.write_all(&frame).await?,
                Some(Outgoing::Farewell) => {
                    io.write_all(&frame::control(frame::GOAWAY, 0, &[0; 8])).await?;
                    io.flush().await?;
                    return Ok(io.shutdown().await?);
                }
                Some(Outgoing::Data { stream, bytes, is_last }) => {
                    write_data(io, stream, bytes, is_last).await?;
                }
            },
            given_up = resets.take() => {
                for stream in given_up {
                    io.write_all(&frame::reset(stream, frame::CANCEL)).await?;
                }
            }
        }
        io.flush().await?;
    }
}

/// In frames of no more than [`PIECE_BYTES`].
async fn write_data(
    io: &mut (impl AsyncWrite + Unpin),
    stream: u32,
    mut bytes: Bytes,
    is_last: bool,
) -> Result<(), ConnectionError> {
    loop {
        let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
        let flags = if is_last && bytes.is_empty() { FIN } else { 0 };
        io.write_all(&frame::data_head(stream, flags, piece.len())).await?;
        io.write_all(&piece).await?;
        if bytes.is_empty() {
            return Ok(());
        }
    }
}

struct Reading {
    decompressor: Decompressor,
    /// Bound: [`MAX_STREAMS`].
    streams: HashMap<u32, OpenStream>,
    /// The last stream that was opened: ids only grow.
    last: u32,
    opened: mpsc::Sender<Stream>,
    out: mpsc::Sender<Outgoing>,
    resets: Arc<Resets>,
}

/// A stream that is not over.
struct OpenStream {
    /// Who takes what comes; gone when the client has said its last.
    taker: Option<mpsc::Sender<Bytes>>,
    /// Heard by whoever writes to it.
    is_reset: watch::Sender<bool>,
}

impl OpenStream {
    /// Nobody reads it or writes to it any more.
    fn is_over(&self) -> bool {
        self.is_reset.is_closed() && self.taker.as_ref().is_none_or(mpsc::Sender::is_closed)
    }
}

impl Reading {
    async fn run(mut self, io: &mut (impl AsyncRead + Unpin)) -> Result<(), ConnectionError> {
        while let Some(head) = frame::read_head(io).await? {
            match head {
                Head::Data { stream, flags, length } => self.data(io, stream, flags, length).await?,
                Head::Control { kind, flags, length } => {
                    let mut payload = vec![0; length];
                    io.read_exact(&mut payload).await?;
                    self.control(kind, flags, &payload).await?;
                }
            }
        }
        Ok(())
    }

    /// Settings, window updates and farewells change nothing here.
    async fn control(&mut self, kind: u16, flags: u8, payload: &[u8]) -> Result<(), ConnectionError> {
        match kind {
            frame::SYN_STREAM => self.open(flags, payload).await,
            frame::RST_STREAM => {
                if let Some(stream) = self.streams.remove(&frame::id(payload)?) {
                    stream.is_reset.send_replace(true);
                }
                Ok(())
            }
            frame::PING => self.say(Outgoing::Control(frame::control(frame::PING, 0, payload))).await,
            // Nobody wants them, but what comes later may point back into them.
            frame::HEADERS => {
                let block = payload.get(4..).ok_or(ConnectionError::Protocol("a frame is cut short"))?;
                self.decompressor.read(block).map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn open(&mut self, flags: u8, payload: &[u8]) -> Result<(), ConnectionError> {
        let id = frame::id(payload)?;
        // The stream that it belongs to, its priority and its slot are for others.
        let block = payload.get(10..).ok_or(ConnectionError::Protocol("a frame is cut short"))?;
        let headers = self.decompressor.read(block)?;
        if id.is_multiple_of(2) || id <= self.last {
            return self.say(Outgoing::Control(frame::reset(id, frame::PROTOCOL_ERROR))).await;
        }
        self.last = id;
        if self.resets.count() >= MAX_STREAMS {
            return Err(ConnectionError::Protocol("streams are opened faster than they can be refused"));
        }
        if self.streams.len() >= MAX_STREAMS {
            self.streams.retain(|_, stream| !stream.is_over());
        }
        if self.streams.len() >= MAX_STREAMS {
            return self.say(Outgoing::Control(frame::reset(id, frame::REFUSED_STREAM))).await;
        }
        let (taker, received) = mpsc::channel(READ_AHEAD);
        let (reset, is_reset) = watch::channel(false);
        let taker = Some(taker).filter(|_| flags & FIN == 0);
        self.streams.insert(id, OpenStream { taker, is_reset: reset });
        let (out, resets) = (self.out.clone(), self.resets.clone());
        let sender = Sender { id, out, resets, is_reset, has_finished: false };
        self.say(Outgoing::Reply(id)).await?;
        // Where nobody takes streams, it is given up with this one.
        drop(self.opened.send(Stream { headers, received, sender }).await);
        Ok(())
    }

    async fn data(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        stream: u32,
        flags: u8,
        mut length: usize,
    ) -> Result<(), ConnectionError> {
        while length > 0 {
            let mut piece = BytesMut::zeroed(length.min(PIECE_BYTES));
            io.read_exact(&mut piece).await?;
            length -= piece.len();
            if let Some(taker) = self.streams.get(&stream).and_then(|stream| stream.taker.as_ref()) {
                // Whoever has stopped reading gets no more.
                drop(taker.send(piece.freeze()).await);
            }
        }
        if flags & FIN != 0
            && let Some(stream) = self.streams.get_mut(&stream)
        {
            stream.taker = None;
        }
        Ok(())
    }

    async fn say(&self, frame: Outgoing) -> Result<(), ConnectionError> {
        self.out.send(frame).await.map_err(|_| ConnectionError::Io(ErrorKind::BrokenPipe.into()))
    }
}
