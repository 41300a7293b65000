//! Frames, as they stand on the wire: eight bytes, and what they announce.

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::ConnectionError;

/// The version that every control frame names.
const VERSION: u16 = 3;
const CONTROL: u16 = 0x8000;
/// The flag of the last frame of a side of a stream.
pub(crate) const FIN: u8 = 1;
/// The largest control frame that is read.
pub(crate) const MAX_CONTROL_BYTES: usize = 64 << 10;
/// Stream ids have 31 bits.
pub(crate) const ID_BITS: u32 = 0x7fff_ffff;

pub(crate) const SYN_STREAM: u16 = 1;
pub(crate) const SYN_REPLY: u16 = 2;
pub(crate) const RST_STREAM: u16 = 3;
pub(crate) const PING: u16 = 6;
pub(crate) const GOAWAY: u16 = 7;
pub(crate) const HEADERS: u16 = 8;

/// Why a stream was reset.
pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const REFUSED_STREAM: u32 = 3;
pub(crate) const CANCEL: u32 = 5;

/// The beginning of a frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Head {
    /// Its payload follows, so many bytes.
    Control { kind: u16, flags: u8, length: usize },
    /// Bytes of a stream follow.
    Data { stream: u32, flags: u8, length: usize },
}

/// Reads one; none where the connection has ended between two frames.
pub(crate) async fn read_head(io: &mut (impl AsyncRead + Unpin)) -> Result<Option<Head>, ConnectionError> {
    let mut bytes = [0; 8];
    if io.read(&mut bytes[..1]).await? == 0 {
        return Ok(None);
    }
    io.read_exact(&mut bytes[1..]).await?;
    let [a, b, c, d, flags, length @ ..] = bytes;
    let length = u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize;
    let (first, kind) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    if first & CONTROL == 0 {
        return Ok(Some(Head::Data { stream: u32::from_be_bytes([a, b, c, d]), flags, length }));
    }
    if first & !CONTROL != VERSION {
        return Err(ConnectionError::Protocol("a frame of another version"));
    }
    if length > MAX_CONTROL_BYTES {
        return Err(ConnectionError::Protocol("a control frame is too large"));
    }
    Ok(Some(Head::Control { kind, flags, length }))
}

/// A control frame.
pub(crate) fn control(kind: u16, flags: u8, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(8 + payload.len());
    frame.put_u16(CONTROL | VERSION);
    frame.put_u16(kind);
    frame.put_u32(u32::from(flags) << 24 | payload.len() as u32);
    frame.put_slice(payload);
    frame.freeze()
}

/// The eight bytes before data.
pub(crate) fn data_head(stream: u32, flags: u8, length: usize) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&stream.to_be_bytes());
    head[4..].copy_from_slice(&(u32::from(flags) << 24 | length as u32).to_be_bytes());
    head
}

/// The first number of a payload, without the bit that is reserved.
pub(crate) fn id(payload: &[u8]) -> Result<u32, ConnectionError> {
    let bytes = payload.first_chunk::<4>().ok_or(ConnectionError::Protocol("a frame is cut short"))?;
    Ok(u32::from_be_bytes(*bytes) & ID_BITS)
}

/// The end of a stream, with the reason.
pub(crate) fn reset(stream: u32, status: u32) -> Bytes {
    control(RST_STREAM, 0, &[stream.to_be_bytes(), status.to_be_bytes()].concat())
}
