//! Numbers, ranges and failures, between etcd's messages and the store's contract.

use bytes::Bytes;
use etcd::{LeaseId, Revision, StoreError};
use etcd_api::status::{EtcdError, EtcdStatus};
use golang::grpc_code::code_name;

/// A revision as it is sent.
pub(crate) fn signed(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// A revision as it came.
pub(crate) fn unsigned(revision: i64) -> Revision {
    u64::try_from(revision).unwrap_or(0)
}

/// The end of the range of all keys that begin so (`clientv3.GetPrefixRangeEnd`); `\0` is the end of all.
pub(crate) fn range_end(prefix: &[u8]) -> Bytes {
    let end = prefix.iter().rposition(|byte| *byte < u8::MAX).map(|last| {
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        end
    });
    end.map_or(Bytes::from_static(b"\0"), Bytes::from)
}

/// A failure that etcd tells of by its words; what is known by a type here becomes one.
pub(crate) fn error_of(status: EtcdStatus) -> StoreError {
    const KNOWN: [EtcdError; 3] = [EtcdError::Compacted, EtcdError::FutureRev, EtcdError::LeaseNotFound];
    match KNOWN.into_iter().find(|known| known.words() == status.message) {
        Some(EtcdError::Compacted) => StoreError::Compacted { compact_revision: 0, current: 0 },
        Some(EtcdError::FutureRev) => StoreError::FutureRevision { requested: 0, current: 0 },
        Some(EtcdError::LeaseNotFound) => StoreError::LeaseNotFound(LeaseId(0)),
        _ if status.message.starts_with("etcdserver: ") => StoreError::Etcd(status.message),
        _ if status.message == "context deadline exceeded" => StoreError::Etcd(status.message),
        _ => {
            let EtcdStatus { code, message } = status;
            let name = code_name(code).map_or_else(|| format!("Code({code})"), str::to_owned);
            StoreError::Etcd(format!("rpc error: code = {name} desc = {message}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_what_comes_next() {
        assert_eq!(range_end(b"/registry/pods/"), "/registry/pods0");
        assert_eq!(range_end(b"a\xff\xff"), "b");
        assert_eq!(range_end(b"\xff"), "\0");
        assert_eq!(range_end(b""), "\0");
    }

    #[test]
    fn failures_are_said_as_go_says_them() {
        let words = |code, message: &str| error_of(EtcdStatus::new(code, message)).to_string();
        assert_eq!(words(14, "etcdserver: request timed out"), "etcdserver: request timed out");
        assert_eq!(words(14, "closing"), "rpc error: code = Unavailable desc = closing");
        assert_eq!(words(99, "x"), "rpc error: code = Code(99) desc = x");
        let compacted = error_of(EtcdError::Compacted.into());
        assert!(matches!(compacted, StoreError::Compacted { .. }), "{compacted}");
    }
}
