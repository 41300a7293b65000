//! `KV`: reading, putting, deleting and compacting (`v3rpc/key.go`).

use std::sync::Arc;

use etcd::Transaction;

use crate::check;
use crate::keys::{self, KeySpans};
use crate::messages::{
    CompactionRequest, DeleteRangeRequest, DeleteRangeResponse, HeaderResponse, Nested, PutRequest,
    PutResponse, RangeRequest, RangeResponse, Repeated,
};
use crate::quota::put_cost;
use crate::range::{self, shown};
use crate::server::{EtcdServer, check_size, header, header_only};
use crate::status::{EtcdError, EtcdStatus};
use crate::values::Values;

pub(crate) fn range(server: &EtcdServer, request: &RangeRequest) -> Result<RangeResponse, EtcdStatus> {
    check::range(request)?;
    server.metrics().ranged();
    range::range(&server.kv()?, &**server.values(), request)
}

pub(crate) async fn put(
    server: &EtcdServer,
    request: PutRequest,
    bytes: usize,
) -> Result<PutResponse, EtcdStatus> {
    check::put(&request)?;
    check_size(bytes)?;
    server.admit(put_cost(&request))?;
    let values = Arc::clone(server.values());
    server.metrics().put();
    server.kv()?.transact(move |txn| put_in(txn, &*values, &request)).await
}

/// A put as a part of a transaction.
pub(crate) fn put_in(
    txn: &mut Transaction<'_>,
    values: &dyn Values,
    request: &PutRequest,
) -> Result<PutResponse, EtcdStatus> {
    let key = &*keys::text(&request.key);
    let current = if request.ignore_value || request.ignore_lease {
        Some(txn.get(key)?.ok_or(EtcdError::KeyNotFound)?)
    } else {
        None
    };
    let lease = match (&current, request.lease) {
        (Some(current), _) if request.ignore_lease => current.lease,
        (_, 0) => None,
        (_, name) => Some(txn.lease_named(name.cast_unsigned()).ok_or(EtcdError::LeaseNotFound)?),
    };
    let value = match current {
        Some(current) if request.ignore_value => current.value,
        _ => request.value.clone(),
    };
    let previous = txn.put(key, value, lease)?;
    let prev_kv = previous.filter(|_| request.prev_kv).map(|previous| shown(txn, values, &previous));
    Ok(PutResponse { header: header(txn.revision()), prev_kv: Nested(prev_kv.map(Box::new)) })
}

pub(crate) async fn delete_range(
    server: &EtcdServer,
    request: DeleteRangeRequest,
) -> Result<DeleteRangeResponse, EtcdStatus> {
    check::delete_range(&request)?;
    server.admit(0)?;
    let values = Arc::clone(server.values());
    server.metrics().deleted();
    server.kv()?.transact(move |txn| delete_range_in(txn, &*values, &request)).await
}

/// A deletion as a part of a transaction.
pub(crate) fn delete_range_in(
    txn: &mut Transaction<'_>,
    values: &dyn Values,
    request: &DeleteRangeRequest,
) -> Result<DeleteRangeResponse, EtcdStatus> {
    let spans = keys::span(&request.key, &request.range_end).unwrap_or(KeySpans::NOTHING);
    let found = range::read(txn, &spans, usize::MAX, None)?;
    for kv in &found.kvs {
        txn.delete(&kv.key)?;
    }
    let previous = found.kvs.iter().filter(|_| request.prev_kv).map(|kv| shown(txn, values, kv));
    Ok(DeleteRangeResponse {
        prev_kvs: Repeated(previous.collect()),
        header: header(txn.revision()),
        deleted: i64::try_from(found.kvs.len()).unwrap_or(i64::MAX),
    })
}

/// Answers when what is superfluous is gone, whether `physical` asks for that or not.
pub(crate) async fn compact(
    server: &EtcdServer,
    request: &CompactionRequest,
) -> Result<HeaderResponse, EtcdStatus> {
    server.admit(0)?;
    let kv = server.kv()?;
    if request.revision <= server.compact_revision(&kv) {
        return Err(EtcdError::Compacted.into());
    }
    match u64::try_from(request.revision).unwrap_or(0) {
        0 => server.compacted_nothing(),
        before => kv.compact(before).await?,
    }
    Ok(header_only(kv.revision()))
}
