//! Streams of a command in a container, as messages of a websocket (`v5.channel.k8s.io`): what a client says,
//! and what it hears.

use bytes::BytesMut;
use serde_json::Value;

use network::websocket_frames::{BINARY, CLOSE, FIRST_CONTROL, FrameSide, frame, take_frame};

/// What the streams are spoken in.
pub(super) const PROTOCOL: &str = "v5.channel.k8s.io";

/// Channels of the protocol.
const INPUT: u8 = 0;
const OUT: u8 = 1;
const ERRORS: u8 = 2;
const STATUS: u8 = 3;
/// That a channel ends, which is named behind it.
const CLOSES: u8 = 255;

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
    let mut say = |channel, bytes| said.extend(frame(FrameSide::Client, BINARY, &[&[channel], bytes]));
    bytes.chunks(MESSAGE_BYTES).for_each(|chunk| say(INPUT, chunk));
    say(CLOSES, &[INPUT]);
    said
}

/// Reads all that came; what is cut off is left out.
pub(super) fn heard(bytes: &[u8]) -> HeardCommand {
    let mut came = BytesMut::from(bytes);
    let mut heard = HeardCommand::default();
    let mut channel = OUT;
    let mut status = vec![];
    while let Ok(Some((kind, payload))) = take_frame(&mut came, u64::MAX) {
        if kind == CLOSE {
            break;
        }
        if kind >= FIRST_CONTROL {
            continue;
        }
        // What goes on with a message names no channel.
        let said = match &payload[..] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_in_ends_with_its_channel() {
        assert_eq!(input(b"hi"), b"\x82\x83\0\0\0\0\0hi\x82\x82\0\0\0\0\xff\0");
        let long = input(&[b'x'; MESSAGE_BYTES + 1]);
        let head = [0x82, 0xfe, 0x80, 1, 0, 0, 0, 0, INPUT];
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
