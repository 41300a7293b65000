//! `RangeAllocation`: which numbers of a range are given to somebody, where several servers give them
//! (`registry/core/service/allocator/storage`). One key in the etcd that they share, and compare-and-put.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::errors::interpret;
use super::interface::Storage;
use apimachinery::protobuf;
use apimachinery::status::Status;
use etcd::{Expect, Op, Revision, Txn};

/// A range and who of it is taken, as upstream keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeAllocation {
    /// As `30000-32767`.
    pub range: String,
    /// A number of which each bit is a place, as `big.Int` writes it: the highest byte first.
    bits: Vec<u8>,
}

/// The numbers of its fields.
const METADATA: u32 = 1;
const RANGE: u32 = 2;
const DATA: u32 = 3;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptRange {
    kind: String,
    api_version: String,
    #[serde(default)]
    range: String,
    #[serde(default)]
    data: String,
}

impl RangeAllocation {
    /// Nothing of it is taken.
    pub fn of(range: impl Into<String>) -> RangeAllocation {
        RangeAllocation { range: range.into(), bits: Vec::new() }
    }

    /// Whether a place is taken.
    pub fn has(&self, place: usize) -> bool {
        let byte = self.bits.iter().rev().nth(place / 8);
        byte.is_some_and(|byte| byte & (1 << (place % 8)) != 0)
    }

    /// Takes a place.
    pub fn take(&mut self, place: usize) {
        let missing = (place / 8 + 1).saturating_sub(self.bits.len());
        self.bits.splice(0..0, std::iter::repeat_n(0, missing));
        let at = self.bits.len() - 1 - place / 8;
        self.bits[at] |= 1 << (place % 8);
    }

    /// Gives a place back.
    pub fn free(&mut self, place: usize) {
        if let Some(byte) = self.bits.iter_mut().rev().nth(place / 8) {
            *byte &= !(1 << (place % 8));
        }
    }

    /// The places that are taken.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.bits.len() * 8).filter(|place| self.has(*place))
    }

    fn encode(&self, as_protobuf: bool) -> Vec<u8> {
        if as_protobuf {
            return self.message();
        }
        let kept = KeptRange {
            kind: "RangeAllocation".into(),
            api_version: "v1".into(),
            range: self.range.clone(),
            data: STANDARD.encode(&self.bits),
        };
        serde_json::to_vec(&kept).unwrap_or_default()
    }

    /// As upstream's apiserver keeps it (`core/v1/generated.proto`).
    fn message(&self) -> Vec<u8> {
        let mut out = Vec::new();
        protobuf::seal(&mut out, "v1", "RangeAllocation", |out| {
            protobuf::write_bytes(out, METADATA, &[]);
            protobuf::write_bytes(out, RANGE, self.range.as_bytes());
            protobuf::write_bytes(out, DATA, &self.bits);
        });
        out
    }

    fn of_message(message: &[u8]) -> Option<RangeAllocation> {
        let mut kept = RangeAllocation::default();
        for (number, bytes) in protobuf::pieces(message).ok()? {
            match number {
                RANGE => kept.range = str::from_utf8(bytes).ok()?.to_owned(),
                DATA => kept.bits = bytes.to_vec(),
                _ => {}
            }
        }
        Some(kept)
    }

    /// None for what somebody else keeps in another form.
    fn decode(value: &[u8]) -> Option<RangeAllocation> {
        if let Ok(envelope) = protobuf::open(value) {
            return RangeAllocation::of_message(envelope.raw);
        }
        let kept: KeptRange = serde_json::from_slice(value).ok()?;
        Some(RangeAllocation { range: kept.range, bits: STANDARD.decode(kept.data).ok()? })
    }
}

impl Storage {
    /// A range, if it can be read, and the revision at which its key is.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn range_allocation(&self, name: &str) -> Result<(Option<RangeAllocation>, Revision), Status> {
        let found = self.kv().get(&key(name), None).await.map_err(interpret)?;
        let revision = found.as_ref().map_or(0, |found| found.mod_revision);
        Ok((found.and_then(|found| RangeAllocation::decode(&found.value)), revision))
    }

    /// Writes a range, if its key is at a revision; whether it was.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn put_range_allocation(
        &self,
        name: &str,
        range: &RangeAllocation,
        expected: Revision,
    ) -> Result<bool, Status> {
        let put = Op::Put { value: range.encode(self.writes_protobuf()).into(), lease: None };
        let written = self.kv().txn(&key(name), Expect::ModRevision(expected), put).await;
        Ok(matches!(written.map_err(interpret)?, Txn::Committed { .. }))
    }
}

fn key(name: &str) -> String {
    format!("/registry/ranges/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bits_of_a_number_as_go_writes_it() {
        let mut range = RangeAllocation::of("30000-32767");
        for place in [0, 9, 3] {
            range.take(place);
        }
        assert_eq!(range.bits, [0b10, 0b1001]);
        assert!(range.has(0) && range.has(3) && range.has(9) && !range.has(1) && !range.has(1000));
        range.free(3);
        range.free(1000);
        assert!(!range.has(3) && range.has(9));
        assert_eq!(range.places().collect::<Vec<_>>(), [0, 9]);
        for as_protobuf in [false, true] {
            let kept = range.encode(as_protobuf);
            assert_eq!(
                (kept.starts_with(b"k8s\0"), RangeAllocation::decode(&kept)),
                (as_protobuf, Some(range.clone()))
            );
        }
        assert_eq!(RangeAllocation::decode(b"k8s\0\xff"), None);
    }
}
