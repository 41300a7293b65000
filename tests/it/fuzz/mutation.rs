//! Breaks samples: a few edits, each at a place of its own.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// What decoders fear.
const FEARED: &[&[u8]] = &[
    b"",
    b"\0",
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"-1",
    b"9223372036854775808",
    b"1e999",
    b"0.1",
    b"true",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\\ud800",
    b"\xf0\x9f\xa6\x80",
    b"[[[[[[[[[[[[[[[[",
    b"{\"a\":",
    b"\n- ",
    b"\n  ",
    b": ",
    b"*x",
    b"&x",
    b"!!binary ",
    b"%",
    b"%00",
    b"..",
    b"//",
    b",",
    b"=",
    b"~",
    b"$patch",
    b"metadata",
    b"spec",
    b"99999999999999999999Gi",
    b"((((((((",
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x12\x80\x80",
];

/// An edit: what is done, where, and how far.
type Edit = (u8, Index, Index, &'static [u8]);

/// One of the samples, broken in up to six places.
pub(crate) fn mutated(samples: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let edit = (0_u8..7, any::<Index>(), any::<Index>(), select(FEARED));
    (select(samples), prop::collection::vec(edit, 0..6))
        .prop_map(|(sample, edits)| edits.into_iter().fold(sample.to_vec(), apply))
}

fn apply(mut bytes: Vec<u8>, (what, at, other, feared): Edit) -> Vec<u8> {
    let (at, other) = (at.index(bytes.len() + 1), other.index(bytes.len() + 1));
    let (from, to) = (at.min(other), at.max(other));
    // A long way is a small step more often than not.
    let near = to.min(from + 12);
    match what {
        0 => drop(bytes.splice(from..near, [])),
        1 => drop(bytes.splice(at..at, feared.iter().copied())),
        2 => drop(bytes.splice(from..near, feared.iter().copied())),
        3 => {
            let piece = bytes[from..near].to_vec();
            drop(bytes.splice(at..at, piece));
        }
        4 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte ^= 1 << (to % 8);
            }
        }
        5 => bytes.truncate(to),
        _ => {
            let piece: Vec<u8> = bytes.drain(from..near).collect();
            let place = other.min(bytes.len());
            drop(bytes.splice(place..place, piece));
        }
    }
    bytes
}
