//! The bytes of an object as its store has them, whole or packed.
//!
//! Most objects have siblings: the pods of a Deployment differ in their names, addresses and times alone. One
//! that nobody reads is kept as what makes it of the bytes of a sibling, and is made anew when somebody does.

use bytes::Bytes;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};

/// Of fewer bytes packing them saves nothing: what it takes beside them is as much.
const MIN_PACKED: usize = 512;

/// The bytes of one object.
pub(super) enum StoredBytes {
    /// As they are.
    Whole(Bytes),
    /// Against those of a sibling.
    Packed(Box<PackedBytes>),
}

/// What makes the bytes of an object of those of its sibling.
pub(super) struct PackedBytes {
    sibling: Bytes,
    packed: Bytes,
    len: usize,
}

impl StoredBytes {
    /// The bytes; of packed ones a copy.
    pub(super) fn whole(&self) -> Bytes {
        match self {
            StoredBytes::Whole(bytes) => bytes.clone(),
            StoredBytes::Packed(packed) => packed.unpacked(),
        }
    }

    /// What there is in memory, for accounting.
    pub(super) fn in_memory(&self) -> Bytes {
        match self {
            StoredBytes::Whole(bytes) => bytes.clone(),
            StoredBytes::Packed(packed) => packed.packed.clone(),
        }
    }

    /// From now on they are whole.
    pub(super) fn unpack(&mut self) {
        *self = StoredBytes::Whole(self.whole());
    }

    /// Packs them against those of `sibling`. Those that cannot be packed, or are somebody else's as well, so
    /// that they would stay, become the sibling of whoever comes next.
    pub(super) fn pack(&mut self, sibling: &mut Option<Bytes>) {
        let StoredBytes::Whole(bytes) = self else { return };
        if bytes.len() < MIN_PACKED {
            return;
        }
        let packed =
            sibling.as_ref().filter(|_| bytes.is_unique()).and_then(|it| PackedBytes::new(bytes, it));
        match packed {
            Some(packed) => *self = StoredBytes::Packed(Box::new(packed)),
            None => *sibling = Some(bytes.clone()),
        }
    }
}

impl PackedBytes {
    /// Nothing where more than a quarter would be left.
    fn new(bytes: &Bytes, sibling: &Bytes) -> Option<PackedBytes> {
        let packed = compress_with_dict(bytes, sibling);
        let is_worth_it = packed.len() <= bytes.len() / 4;
        // Without the room that was taken for the worst case.
        let packed = || Bytes::from(packed.into_boxed_slice());
        is_worth_it.then(packed).map(|packed| PackedBytes {
            sibling: sibling.clone(),
            packed,
            len: bytes.len(),
        })
    }

    fn unpacked(&self) -> Bytes {
        let bytes = decompress_with_dict(&self.packed, self.len, &self.sibling);
        bytes.expect("it was packed here, and neither it nor its sibling is ever changed").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Bytes {
        let of_all = r#""spec":{"containers":[{"name":"nginx","image":"nginx"}]},"#.repeat(20);
        format!(r#"{{"metadata":{{"name":"{name}"}},{of_all}"status":{{}}}}"#).into()
    }

    #[test]
    fn siblings_are_packed_and_come_back_as_they_were() {
        let mut sibling = None;
        let mut all: Vec<StoredBytes> =
            ["web-1", "web-22", "web-333"].map(|name| StoredBytes::Whole(pod(name))).into();
        all.iter_mut().for_each(|bytes| bytes.pack(&mut sibling));
        let sizes: Vec<usize> = all.iter().map(|bytes| bytes.in_memory().len()).collect();
        assert!(sizes[0] > 1000 && sizes[1] < 60 && sizes[2] < 60, "{sizes:?}");
        for (bytes, name) in all.iter_mut().zip(["web-1", "web-22", "web-333"]) {
            assert_eq!(bytes.whole(), pod(name));
            bytes.unpack();
            assert!(matches!(bytes, StoredBytes::Whole(_)));
            assert_eq!(bytes.whole(), pod(name));
        }
    }

    #[test]
    fn what_gives_no_room_back_stays_whole_and_is_the_next_ones_sibling() {
        let is_packed = |bytes: Bytes, sibling: &mut Option<Bytes>| {
            let mut stored = StoredBytes::Whole(bytes);
            stored.pack(sibling);
            matches!(stored, StoredBytes::Packed(_))
        };
        let mut sibling = Some(pod("web-1"));
        let shared = pod("web-2");
        assert!(!is_packed(shared.clone(), &mut sibling), "somebody else has them");
        assert_eq!(sibling, Some(shared));
        let other: Bytes = (0..1000_u32).flat_map(|at| (at * at).to_le_bytes()).collect();
        assert!(!is_packed(other.clone(), &mut sibling), "it is like no other");
        assert_eq!(sibling.take(), Some(other));
        assert!(!is_packed(Bytes::from_static(b"{}"), &mut sibling) && sibling.is_none(), "it is short");
        assert!(!is_packed(pod("web-3"), &mut sibling) && sibling.is_some(), "it is the first");
        assert!(is_packed(pod("web-4"), &mut sibling));
    }
}
