//! `Quota`: how large the store may become (`server/storage/quota.go`). What would be too much is refused,
//! and from then on everything that needs room, until somebody has made some and disarms the alarm.

use sync::Mutex;

use crate::messages::{PutRequest, RequestOp, TxnRequest};

/// `--quota-backend-bytes` when it is 0 (`DefaultQuotaBytes`).
pub const DEFAULT_QUOTA_BYTES: i64 = 2 << 30;

/// What a key needs beside its name and its value (`kvOverhead`).
const KEY_COST: u64 = 256;
/// What a lease needs (`leaseOverhead`).
pub(crate) const LEASE_COST: u64 = 64;
/// Its files are looked at again when what was written since is this part of the room that was left: they
/// may grow by several times of it.
const SHARE: u64 = 16;

/// How large the store may become.
pub(crate) struct Quota {
    bytes: i64,
    looked: Mutex<Option<SeenSize>>,
}

/// The store as it was seen last.
struct SeenSize {
    size: u64,
    /// What was written since then.
    since: u64,
}

impl Quota {
    /// Of so many bytes; 0 is [`DEFAULT_QUOTA_BYTES`], and less is no quota.
    pub(crate) fn new(bytes: i64) -> Quota {
        Quota { bytes: if bytes == 0 { DEFAULT_QUOTA_BYTES } else { bytes }, looked: Mutex::default() }
    }

    /// As it is told.
    pub(crate) fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Whether so much more may be written to what is so large.
    pub(crate) fn has_room(&self, cost: u64, size: impl Fn() -> u64) -> bool {
        let Ok(most) = u64::try_from(self.bytes) else { return true };
        let mut looked = self.looked.lock();
        let is_old = |at: &SeenSize| (at.since + cost) * SHARE > most.saturating_sub(at.size);
        if looked.as_ref().is_none_or(is_old) {
            *looked = Some(SeenSize { size: size(), since: 0 });
        }
        looked.as_mut().is_none_or(|at| {
            at.since += cost;
            at.size + cost < most
        })
    }
}

pub(crate) fn put_cost(request: &PutRequest) -> u64 {
    KEY_COST + (request.key.len() + request.value.len()) as u64
}

/// Of the outcome that needs more; what is in nested transactions is not looked at, as in etcd.
pub(crate) fn txn_cost(request: &TxnRequest) -> u64 {
    let cost =
        |operations: &[RequestOp]| operations.iter().filter_map(|op| op.put.0.as_deref()).map(put_cost).sum();
    let (success, failure): (u64, u64) = (cost(&request.success.0), cost(&request.failure.0));
    success.max(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn there_is_room_until_the_quota_is_reached() {
        let looks = Cell::new(0);
        let look = |size: u64| {
            looks.set(looks.get() + 1);
            size
        };
        let quota = Quota::new(10_000);
        assert!(quota.has_room(500, || look(1_000)) && quota.has_room(50, || look(1_000)));
        assert_eq!(looks.get(), 1, "far from it nobody looks");
        assert!(!quota.has_room(9_000, || look(1_000)), "it would be reached");
        assert!(!quota.has_room(1, || look(9_999)) && quota.has_room(1, || look(9_998)));
        assert_eq!(looks.get(), 4, "near it everybody does");
        assert!(Quota::new(-1).has_room(u64::MAX, || 0));
        assert_eq!((Quota::new(0).bytes(), Quota::new(-1).bytes()), (DEFAULT_QUOTA_BYTES, -1));
    }
}
