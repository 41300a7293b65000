//! The bytes of an object as its store has them, whole or packed.
//!
//! Most objects have siblings: the pods of a Deployment differ in their names, addresses and times alone. One
//! that nobody reads is kept as what makes it of the bytes of a sibling, and is made anew when somebody does.

use bytes::Bytes;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};

/// Fewer bytes are not packed: what stands beside packed ones takes a hundred.
const MIN_PACKED: usize = 512;
/// Nor are more: LZ4 looks back no further into a sibling.
const MAX_PACKED: usize = 64 * 1024;

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

    /// What there is in memory, for accounting: the bytes, or the packed ones and their sibling's.
    pub(super) fn in_memory(&self) -> Vec<Bytes> {
        match self {
            StoredBytes::Whole(bytes) => vec![bytes.clone()],
            StoredBytes::Packed(packed) => vec![packed.packed.clone(), packed.sibling.clone()],
        }
    }

    /// From now on they are whole.
    pub(super) fn unpack(&mut self) {
        *self = StoredBytes::Whole(self.whole());
    }

    /// Packs them against those of `sibling`, unless they are somebody else's as well, so that they would
    /// stay. Whether they are like no other, as far as was seen: then they are the sibling of whoever comes
    /// next, as the first are, and to try again would be for nothing.
    pub(super) fn pack(&mut self, sibling: &mut Option<Bytes>) -> bool {
        let StoredBytes::Whole(bytes) = self else { return false };
        if !(MIN_PACKED..=MAX_PACKED).contains(&bytes.len()) {
            return false;
        }
        let Some(known) = sibling else {
            *sibling = Some(bytes.clone());
            return false;
        };
        if !bytes.is_unique() {
            return false;
        }
        match PackedBytes::new(bytes, known) {
            Some(packed) => *self = StoredBytes::Packed(Box::new(packed)),
            None => *sibling = Some(bytes.clone()),
        }
        matches!(self, StoredBytes::Whole(_))
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
        assert!(!all.iter_mut().any(|bytes| bytes.pack(&mut sibling)), "all are alike");
        assert_eq!(all[2].in_memory()[1], pod("web-1"), "it stays as long as anybody needs it");
        let sizes: Vec<usize> = all.iter().map(|bytes| bytes.in_memory()[0].len()).collect();
        assert!(sizes[0] > 1000 && sizes[1] < 60 && sizes[2] < 60, "{sizes:?}");
        for (bytes, name) in all.iter_mut().zip(["web-1", "web-22", "web-333"]) {
            assert_eq!(bytes.whole(), pod(name));
            bytes.unpack();
            assert!(matches!(bytes, StoredBytes::Whole(_)));
            assert_eq!(bytes.whole(), pod(name));
        }
    }

    #[test]
    fn what_gives_no_room_back_stays_whole() {
        let packed = |bytes: Bytes, sibling: &mut Option<Bytes>| {
            let mut stored = StoredBytes::Whole(bytes);
            let is_unlike = stored.pack(sibling);
            (matches!(stored, StoredBytes::Packed(_)), is_unlike)
        };
        let first = pod("web-1");
        let mut sibling = Some(first.clone());
        let shared = pod("web-2");
        assert_eq!(packed(shared.clone(), &mut sibling), (false, false), "somebody else has them");
        assert_eq!(packed(Bytes::from_static(b"{}"), &mut sibling), (false, false), "they are short");
        assert_eq!(packed(vec![b'x'; MAX_PACKED + 1].into(), &mut sibling), (false, false), "they are long");
        assert_eq!(sibling.as_ref(), Some(&first));
        let other = || -> Bytes { (0..1000_u32).flat_map(|at| (at * at).to_le_bytes()).collect() };
        assert_eq!(packed(other(), &mut sibling), (false, true), "they are like no other");
        assert_eq!(sibling.take(), Some(other()), "and may be what the next is like");
        assert_eq!(packed(pod("web-3"), &mut sibling), (false, false), "they are the first");
        assert_eq!(packed(pod("web-4"), &mut sibling), (true, false));
    }
}
