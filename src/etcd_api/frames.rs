//! Messages on a stream of gRPC: each behind a byte that says whether it is compressed, and its length.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;

use crate::status::{EtcdStatus, INTERNAL, RESOURCE_EXHAUSTED, UNIMPLEMENTED};
use crate::wire::ProtoMessage;

/// The longest message that is read: what may be written (`--max-request-bytes`), and half a mebibyte for
/// what is around it (`grpcOverheadBytes`). A longer one ends its call, before it is read.
pub const MAX_RECEIVED_BYTES: usize = crate::status::MAX_REQUEST_BYTES + 512 * 1024;
/// What is before a message.
const HEAD_BYTES: usize = 5;

/// The messages of a body, one after the other.
#[derive(Debug)]
pub struct ReceivedMessages<B> {
    body: B,
    unread: BytesMut,
    /// The longest message that is read.
    max_bytes: usize,
    /// How long the newest one was.
    message_bytes: usize,
    trailers: HeaderMap,
}

impl<B> ReceivedMessages<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    /// Of a request's body.
    pub fn new(body: B) -> ReceivedMessages<B> {
        ReceivedMessages::up_to(MAX_RECEIVED_BYTES, body)
    }

    /// Of a body whose messages may be so long.
    pub fn up_to(max_bytes: usize, body: B) -> ReceivedMessages<B> {
        ReceivedMessages {
            body,
            unread: BytesMut::new(),
            max_bytes,
            message_bytes: 0,
            trailers: HeaderMap::new(),
        }
    }

    /// The next message; None at the end. Can be dropped and called again without losing anything.
    ///
    /// # Errors
    /// It is too long, compressed, or not whole.
    pub async fn next<M: ProtoMessage>(&mut self) -> Result<Option<M>, EtcdStatus> {
        loop {
            if let Some(message) = self.take()? {
                return decode(message).map(Some);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.unread.extend_from_slice(&data),
                    Err(frame) => self.trailers = frame.into_trailers().unwrap_or_default(),
                },
                Some(Err(error)) => return Err(EtcdStatus::new(INTERNAL, error.to_string())),
                None if self.unread.is_empty() => return Ok(None),
                None => return Err(EtcdStatus::new(INTERNAL, "unexpected EOF")),
            }
        }
    }

    /// What stood behind the last message, once that has been read.
    pub fn trailers(&self) -> &HeaderMap {
        &self.trailers
    }

    /// How long the message was that was read last.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// The only message of a call.
    ///
    /// # Errors
    /// As [`ReceivedMessages::next`], or there is none.
    pub async fn only<M: ProtoMessage>(&mut self) -> Result<M, EtcdStatus> {
        self.next().await?.ok_or_else(|| EtcdStatus::new(INTERNAL, "EOF"))
    }

    fn take(&mut self) -> Result<Option<Bytes>, EtcdStatus> {
        let Some(mut head) = self.unread.get(..HEAD_BYTES) else { return Ok(None) };
        if head.get_u8() != 0 {
            return Err(EtcdStatus::new(
                UNIMPLEMENTED,
                "grpc: compressed messages are not read here: send them plain",
            ));
        }
        let length = head.get_u32() as usize;
        if length > self.max_bytes {
            let words = format!("grpc: received message larger than max ({length} vs. {})", self.max_bytes);
            return Err(EtcdStatus::new(RESOURCE_EXHAUSTED, words));
        }
        if self.unread.len() < HEAD_BYTES + length {
            return Ok(None);
        }
        self.unread.advance(HEAD_BYTES);
        self.message_bytes = length;
        Ok(Some(self.unread.split_to(length).freeze()))
    }
}

fn decode<M: ProtoMessage>(message: Bytes) -> Result<M, EtcdStatus> {
    M::decode(message).map_err(|error| {
        EtcdStatus::new(INTERNAL, format!("grpc: error unmarshalling request: proto: {}", error.0))
    })
}

/// A message as it is sent.
pub fn framed<M: ProtoMessage>(message: &M) -> Bytes {
    let mut framed = vec![0; HEAD_BYTES];
    message.write(&mut framed);
    let length = u32::try_from(framed.len() - HEAD_BYTES).unwrap_or(u32::MAX);
    (&mut framed[1..HEAD_BYTES]).put_u32(length);
    framed.into()
}
