//! Streams of a command in a container, as messages of a websocket (`v5.channel.k8s.io`): what a client says,
//! and what it hears.

use serde_json::Value;

/// What the streams are spoken in.
pub(super) const PROTOCOL: &str = "v5.channel.k8s.io";

/// Channels of the protocol.
const INPUT: u8 = 0;
const OUT: u8 = 1;
const ERRORS: u8 = 2;
const STATUS: u8 = 3;
/// That a channel ends, which is named behind it.
const CLOSES: u8 = 255;

/// Kinds of frames, by the low bits of their first byte.
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
/// Frames from here on are about the connection.
const FIRST_CONTROL: u8 = 8;
/// Of the first byte: the message ends with this frame.
const LAST: u8 = 0x80;
/// Of the second byte: what follows is masked, as all is that a client says.
const MASKED: u8 = 0x80;
/// So much is in one message.
const MESSAGE_BYTES: usize = 32 << 10;

/// What was heard of a command.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HeardCommand {
    pub(super) out: Vec<u8>,
    pub(super) errors: Vec<u8>,
    /// How it ended; nothing where that was not heard.
    pub(super) status: Option<Value>,
}

/// What is typed in, and that there is no more of it.
pub(super) fn input(bytes: &[u8]) -> Vec<u8> {
    let mut said = vec![];
    for chunk in bytes.chunks(MESSAGE_BYTES) {
        write_frame(&mut said, INPUT, chunk);
    }
    write_frame(&mut said, CLOSES, &[INPUT]);
    said
}

/// A mask of zeros changes nothing: it is there since the protocol wants one.
fn write_frame(said: &mut Vec<u8>, channel: u8, bytes: &[u8]) {
    said.push(LAST | BINARY);
    let length = bytes.len() + 1;
    match u16::try_from(length) {
        Ok(short) if short < 126 => said.push(MASKED | short.to_be_bytes()[1]),
        Ok(longer) => {
            said.push(MASKED | 126);
            said.extend(longer.to_be_bytes());
        }
        Err(_) => {
            said.push(MASKED | 127);
            said.extend((length as u64).to_be_bytes());
        }
    }
    said.extend([0; 4]);
    said.push(channel);
    said.extend_from_slice(bytes);
}

/// Reads all that came; what is cut off is left out.
pub(super) fn heard(mut bytes: &[u8]) -> HeardCommand {
    let mut heard = HeardCommand::default();
    let mut channel = OUT;
    let mut status = vec![];
    while let Some((kind, payload, rest)) = take_frame(bytes) {
        bytes = rest;
        if kind == CLOSE {
            break;
        }
        if kind >= FIRST_CONTROL {
            continue;
        }
        // What goes on with a message names no channel.
        let said = match payload {
            [first, said @ ..] if kind == BINARY => {
                channel = *first;
                said
            }
            said => said,
        };
        match channel {
            OUT => heard.out.extend_from_slice(said),
            ERRORS => heard.errors.extend_from_slice(said),
            STATUS => status.extend_from_slice(said),
            _ => {}
        }
    }
    heard.status = serde_json::from_slice(&status).ok();
    heard
}

/// The first frame: its kind, what it carries, and what comes behind it. Servers mask nothing.
fn take_frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [first, second, rest @ ..] = bytes else { return None };
    let (length, rest) = match second & !MASKED {
        126 => {
            rest.split_first_chunk().map(|(length, rest)| (u64::from(u16::from_be_bytes(*length)), rest))?
        }
        127 => rest.split_first_chunk().map(|(length, rest)| (u64::from_be_bytes(*length), rest))?,
        short => (u64::from(short), rest),
    };
    let (payload, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((first & 0x0f, payload, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_in_ends_with_its_channel() {
        assert_eq!(input(b"hi"), b"\x82\x83\0\0\0\0\0hi\x82\x82\0\0\0\0\xff\0");
        let long = input(&[b'x'; MESSAGE_BYTES + 1]);
        let head = [LAST | BINARY, MASKED | 126, 0x80, 1, 0, 0, 0, 0, INPUT];
        assert_eq!(long[..head.len()], head);
        assert_eq!(long.len(), head.len() + MESSAGE_BYTES + 8 + 8);
    }

    #[test]
    fn what_is_heard_is_read_by_its_channels() {
        // The second of them is a message without its end, which the third brings.
        let said = b"\x82\x01\x01\x02\x02\x01a\x80\x01b\x89\x00\x82\x03\x02e!\x82\x0f\x03{\"code\": 500 }\x88\x00\x82\x02\x01z";
        let heard_all = heard(said);
        assert_eq!((&heard_all.out[..], &heard_all.errors[..]), (&b"ab"[..], &b"e!"[..]));
        assert_eq!(heard_all.status.unwrap()["code"], 500);
        assert_eq!(heard(b"\x82\x7e\x01"), HeardCommand::default());
        assert_eq!(heard(b"\x82\x05\x01ab"), HeardCommand::default());
    }
}
