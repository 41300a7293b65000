//! A stretch of a list on its way to the socket: the bytes of the stored objects where they lie, and between
//! them what the answer adds.
//!
//! Written into one piece, all of a long list would travel through the processor's caches once more on its
//! way to the cipher, which copies it anyway.

use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Of an object that is shorter it costs less to copy the bytes than to send a piece more.
const MIN_SHARED_BYTES: usize = 1024;
/// As many pieces are handed to a socket at once, less those of the answer's head.
const MAX_PIECES: usize = 60;

/// A buffer of several pieces. It shares the bytes of the objects, and copies only the short ones.
#[derive(Default)]
pub struct Segments {
    /// The bytes that are not shared, of all pieces.
    own: Vec<u8>,
    pieces: Vec<WrittenPiece>,
    /// The piece that comes next, and how much of it is gone.
    next: usize,
    gone: usize,
    left: usize,
}

/// None is empty.
enum WrittenPiece {
    /// Of the segments' own bytes.
    Own { from: usize, upto: usize },
    /// The end of an object.
    Item(Bytes),
}

impl Segments {
    /// Adds what `write` writes.
    pub fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.own.len();
        write(&mut self.own);
        let upto = self.own.len();
        self.left += upto - before;
        match self.pieces.last_mut() {
            _ if upto == before => {}
            Some(WrittenPiece::Own { upto: end, .. }) => *end = upto,
            _ => self.pieces.push(WrittenPiece::Own { from: before, upto }),
        }
    }

    /// Adds the end of an object: what stands in all answers as it is stored.
    pub fn put_item(&mut self, bytes: Bytes) {
        if bytes.len() < MIN_SHARED_BYTES {
            return self.put(|own| own.extend_from_slice(&bytes));
        }
        self.left += bytes.len();
        self.pieces.push(WrittenPiece::Item(bytes));
    }

    /// Whether it has as many pieces as can be sent at once.
    pub fn is_full(&self) -> bool {
        self.pieces.len() >= MAX_PIECES
    }

    fn piece(&self, at: usize) -> &[u8] {
        match self.pieces.get(at) {
            Some(WrittenPiece::Own { from, upto }) => &self.own[*from..*upto],
            Some(WrittenPiece::Item(bytes)) => bytes,
            None => &[],
        }
    }
}

impl Buf for Segments {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        &self.piece(self.next)[self.gone..]
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.left, "as for every buffer");
        self.left -= count;
        self.gone += count;
        while self.gone > 0 && self.gone >= self.piece(self.next).len() {
            self.gone -= self.piece(self.next).len();
            self.next += 1;
        }
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let mut gone = self.gone;
        let pieces = out.iter_mut().zip(self.next..self.pieces.len());
        pieces.fold(0, |count, (slice, at)| {
            *slice = IoSlice::new(&self.piece(at)[std::mem::take(&mut gone)..]);
            count + 1
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use apimachinery::object::Object;

    fn segments() -> (Segments, Vec<u8>) {
        let object = |size: usize| {
            let tree = json!({"metadata": {"name": "a"}, "data": {"text": "x".repeat(size)}});
            Object::from_value(&tree, vec![]).unwrap()
        };
        let sizes = [3, 2 * MIN_SHARED_BYTES, 5, MIN_SHARED_BYTES, 4000];
        let mut segments = Segments::default();
        let mut whole = Vec::new();
        for (at, object) in sizes.into_iter().map(object).enumerate() {
            segments.put(|own| own.extend_from_slice(format!("<{at}>").as_bytes()));
            segments.put_item(object.stored_end());
            whole.extend_from_slice(format!("<{at}>").as_bytes());
            whole.extend_from_slice(&object.stored_end());
        }
        segments.put(|_| {});
        segments.put(|own| own.push(b'.'));
        whole.push(b'.');
        (segments, whole)
    }

    #[test]
    fn however_it_is_read_it_is_the_same() {
        let (segments, whole) = segments();
        assert_eq!((segments.remaining(), segments.pieces.len()), (whole.len(), 7));
        for step in [1, 2, 7, 1000, 1 << 20] {
            let (mut segments, mut read) = (self::segments().0, Vec::new());
            while segments.has_remaining() {
                assert_eq!(segments.remaining(), whole.len() - read.len());
                let count = step.min(segments.chunk().len());
                read.extend_from_slice(&segments.chunk()[..count]);
                segments.advance(count);
            }
            assert!(read == whole && segments.chunk().is_empty(), "in steps of {step}");
        }
    }

    #[test]
    fn pieces_are_handed_over_from_anywhere() {
        let whole = segments().1;
        for start in (0..=whole.len()).step_by(97).chain([whole.len()]) {
            let mut segments = segments().0;
            segments.advance(start);
            let mut slices = [IoSlice::new(&[]); 16];
            let count = segments.chunks_vectored(&mut slices);
            assert!(slices[..count].iter().all(|slice| !slice.is_empty()), "from {start}");
            let read: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            assert!(read == whole[start..], "from {start}");
        }
        let (segments, mut slices) = (segments().0, [IoSlice::new(&[]); 2]);
        assert_eq!(segments.chunks_vectored(&mut slices), 2);
        assert_eq!(slices[0].len() + slices[1].len(), segments.piece(0).len() + segments.piece(1).len());
    }
}
