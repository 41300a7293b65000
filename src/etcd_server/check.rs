//! What is refused before anything is done (`v3rpc/key.go`).

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::messages::{DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest};
use crate::status::{EtcdError, EtcdStatus};

/// etcd's `--max-txn-ops`: so many comparisons, and so many operations for each outcome; less one for each
/// transaction in another.
pub const MAX_TXN_OPS: usize = 128;

/// Refuses what cannot be read.
///
/// # Errors
/// No key.
pub fn range(request: &RangeRequest) -> Result<(), EtcdStatus> {
    has_key(&request.key)
}

/// Refuses what cannot be put.
///
/// # Errors
/// No key; a value or a lease beside the wish to keep the one that is there.
pub fn put(request: &PutRequest) -> Result<(), EtcdStatus> {
    has_key(&request.key)?;
    if request.ignore_value && !request.value.is_empty() {
        return Err(EtcdError::ValueProvided.into());
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(EtcdError::LeaseProvided.into());
    }
    Ok(())
}

/// Refuses what cannot be deleted.
///
/// # Errors
/// No key.
pub fn delete_range(request: &DeleteRangeRequest) -> Result<(), EtcdStatus> {
    has_key(&request.key)
}

fn has_key(key: &Bytes) -> Result<(), EtcdStatus> {
    if key.is_empty() { Err(EtcdError::EmptyKey.into()) } else { Ok(()) }
}

/// Refuses what cannot be one transaction.
///
/// # Errors
/// Too much, something incomplete, or a key that is written twice.
pub fn txn(request: &TxnRequest) -> Result<(), EtcdStatus> {
    operations(request, MAX_TXN_OPS)?;
    written(&request.success.0)?;
    written(&request.failure.0)?;
    Ok(())
}

fn operations(request: &TxnRequest, allowed: usize) -> Result<(), EtcdStatus> {
    let TxnRequest { compare, success, failure } = request;
    let most = compare.0.len().max(success.0.len()).max(failure.0.len());
    let Some(left) = allowed.checked_sub(most) else { return Err(EtcdError::TooManyOps.into()) };
    compare.0.iter().try_for_each(|compare| has_key(&compare.key))?;
    success.0.iter().chain(&failure.0).try_for_each(|operation| self::operation(operation, left))
}

fn operation(operation: &RequestOp, allowed: usize) -> Result<(), EtcdStatus> {
    let RequestOp { range, put, delete_range, txn } = operation;
    match (&range.0, &put.0, &delete_range.0, &txn.0) {
        (Some(request), ..) => self::range(request),
        (_, Some(request), ..) => self::put(request),
        (_, _, Some(request), _) => self::delete_range(request),
        (.., Some(request)) => operations(request, allowed),
        _ => Err(EtcdError::KeyNotFound.into()),
    }
}

/// What operations write.
#[derive(Default)]
struct WrittenKeys<'a> {
    puts: BTreeSet<&'a [u8]>,
    deletions: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> WrittenKeys<'a> {
    fn is_deleted(&self, key: &[u8]) -> bool {
        self.deletions.iter().any(|(start, end)| match *end {
            [] => key == *start,
            [0] => key >= *start,
            end => (*start..end).contains(&key),
        })
    }

    /// A key may be put once, and not be deleted as well.
    fn put(&mut self, key: &'a [u8]) -> Result<(), EtcdStatus> {
        if self.is_deleted(key) || !self.puts.insert(key) {
            return Err(EtcdError::DuplicateKey.into());
        }
        Ok(())
    }
}

fn written(operations: &[RequestOp]) -> Result<WrittenKeys<'_>, EtcdStatus> {
    let mut all = WrittenKeys::default();
    let deletions = operations.iter().filter_map(|operation| operation.delete_range.0.as_deref());
    all.deletions.extend(deletions.map(|request| (&request.key[..], &request.range_end[..])));
    for nested in operations.iter().filter_map(|operation| operation.txn.0.as_deref()) {
        let success = written(&nested.success.0)?;
        let failure = written(&nested.failure.0)?;
        // One of the two is done: what both put is put once.
        for key in success.puts.union(&failure.puts) {
            all.put(key)?;
        }
        all.deletions.extend(success.deletions.into_iter().chain(failure.deletions));
    }
    for request in operations.iter().filter_map(|operation| operation.put.0.as_deref()) {
        all.put(&request.key)?;
    }
    Ok(all)
}
