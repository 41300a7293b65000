//! Frames of a websocket (RFC 6455), as the ends of one write and read them: the apiserver, and the `kubectl`
//! of a container. What they carry is their business.

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What goes on with the message of the frame before.
pub const CONTINUATION: u8 = 0;
/// A message of text begins.
pub const TEXT: u8 = 1;
/// A message of bytes begins.
pub const BINARY: u8 = 2;
/// The end.
pub const CLOSE: u8 = 8;
/// Wants to be answered.
pub const PING: u8 = 9;
/// The answer to a ping.
pub const PONG: u8 = 10;
/// Frames from here on are about the connection.
pub const FIRST_CONTROL: u8 = CLOSE;

/// Of the first byte: the message ends with this frame.
const LAST: u8 = 0x80;
/// Of the second byte: what follows is masked, as all is that a client says.
const MASKED: u8 = 0x80;
/// So long the head of a frame is at most.
const LONGEST_HEAD: usize = 2 + 8 + 4;

/// Whose frame it is: clients mask what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSide {
    /// Who was asked.
    Server,
    /// Who has asked. Its mask is of zeros, which changes nothing: it is there since the protocol wants one.
    Client,
}

/// A frame announces more than anybody takes.
#[derive(Debug)]
pub struct FrameTooLong;

/// A whole message in one frame, put together of parts.
pub fn frame(side: FrameSide, opcode: u8, payload: &[&[u8]]) -> Vec<u8> {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(LONGEST_HEAD + length);
    let mask_bit = if side == FrameSide::Client { MASKED } else { 0 };
    out.push(LAST | opcode);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..126), _) => out.push(mask_bit | short),
        (_, Ok(length)) => {
            out.push(mask_bit | 126);
            out.extend(length.to_be_bytes());
        }
        _ => {
            out.push(mask_bit | 127);
            out.extend((length as u64).to_be_bytes());
        }
    }
    if side == FrameSide::Client {
        out.extend([0; 4]);
    }
    payload.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// What stands in front of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// What it is.
    pub opcode: u8,
    /// How many bytes it carries.
    pub length: u64,
    mask: [u8; 4],
}

impl FrameHead {
    /// The one that bytes begin with, and how long it is itself; nothing where it is not whole.
    pub fn parse(bytes: &[u8]) -> Option<(FrameHead, usize)> {
        let [first, second, rest @ ..] = bytes else { return None };
        let more = rest.get(..bytes_behind(*second))?;
        let (length, mask) = match second & !MASKED {
            126 => {
                more.split_first_chunk().map(|(length, rest)| (u16::from_be_bytes(*length).into(), rest))?
            }
            127 => more.split_first_chunk().map(|(length, rest)| (u64::from_be_bytes(*length), rest))?,
            short => (short.into(), more),
        };
        let mask = mask.first_chunk().copied().unwrap_or_default();
        Some((FrameHead { opcode: first & 0x0f, length, mask }, 2 + more.len()))
    }

    /// The next one.
    ///
    /// # Errors
    /// The connection's.
    pub async fn read(reader: &mut (impl AsyncRead + Unpin + ?Sized)) -> std::io::Result<FrameHead> {
        let mut bytes = [0; LONGEST_HEAD];
        reader.read_exact(&mut bytes[..2]).await?;
        let end = 2 + bytes_behind(bytes[1]);
        reader.read_exact(&mut bytes[2..end]).await?;
        let head = FrameHead::parse(&bytes[..end]).map(|(head, _)| head);
        head.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
    }

    /// All behind it, as it was meant. The caller has looked at its length.
    ///
    /// # Errors
    /// The connection's.
    pub async fn payload(&self, reader: &mut (impl AsyncRead + Unpin + ?Sized)) -> std::io::Result<Vec<u8>> {
        let mut payload = vec![0; usize::try_from(self.length).unwrap_or_default()];
        reader.read_exact(&mut payload).await?;
        self.unmask(&mut payload);
        Ok(payload)
    }

    fn unmask(&self, payload: &mut [u8]) {
        payload.iter_mut().zip(self.mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// How many bytes of a head come behind its second one.
fn bytes_behind(second: u8) -> usize {
    let length = match second & !MASKED {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    length + if second & MASKED == 0 { 0 } else { 4 }
}

/// Takes the first frame out of what came, when it is whole: what it is, and what it carries.
///
/// # Errors
/// One that carries more than `most`.
pub fn take_frame(buffer: &mut BytesMut, most: u64) -> Result<Option<(u8, Vec<u8>)>, FrameTooLong> {
    let Some((head, head_bytes)) = FrameHead::parse(buffer) else { return Ok(None) };
    if head.length > most {
        return Err(FrameTooLong);
    }
    let length = usize::try_from(head.length).map_err(|_| FrameTooLong)?;
    let end = head_bytes.checked_add(length).ok_or(FrameTooLong)?;
    if buffer.len() < end {
        return Ok(None);
    }
    let mut payload = buffer.split_to(end)[head_bytes..].to_vec();
    head.unmask(&mut payload);
    Ok(Some((head.opcode, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_one_end_writes_the_other_reads() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            for side in [FrameSide::Server, FrameSide::Client] {
                let payload = vec![7; length];
                let written = frame(side, BINARY, &[&payload, b"end"]);
                let whole = [&payload[..], b"end"].concat();
                let mut reader = &written[..];
                let head = FrameHead::read(&mut reader).await.unwrap();
                assert_eq!((head.opcode, head.length), (BINARY, whole.len() as u64), "{length} of {side:?}");
                assert_eq!(head.payload(&mut reader).await.unwrap(), whole);
                let mut buffer = BytesMut::from(&written[..written.len() - 1]);
                assert!(take_frame(&mut buffer, u64::MAX).unwrap().is_none(), "it is not whole");
                buffer.extend_from_slice(&written[written.len() - 1..]);
                assert_eq!(take_frame(&mut buffer, u64::MAX).unwrap(), Some((BINARY, whole)));
                assert!(buffer.is_empty());
            }
        }
    }

    #[test]
    fn what_is_masked_is_read_as_it_was_meant() {
        let mut buffer = BytesMut::from(&b"\x89\x81\x01\x01\x01\x01b\x88\x00"[..]);
        assert_eq!(take_frame(&mut buffer, 8).unwrap(), Some((PING, b"c".to_vec())));
        assert_eq!(take_frame(&mut buffer, 8).unwrap(), Some((CLOSE, vec![])));
        let mut long = BytesMut::from(&b"\x82\x09"[..]);
        assert!(take_frame(&mut long, 8).is_err());
        let mut endless = BytesMut::from(&b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff0123456789"[..]);
        assert!(take_frame(&mut endless, u64::MAX).is_err());
        assert_eq!(FrameHead::parse(b"\x82\x7e\x01"), None);
        assert_eq!(FrameHead::parse(b"\x82\x81\0\0\0"), None);
    }
}
