//! `Txn`: comparisons decide, then one of two lists of operations is done, which may have such transactions
//! in it (`server/etcdserver/txn/txn.go`).

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use etcd::Transaction;

use crate::check;
use crate::keys::{self, KeySpans};
use crate::kv::{delete_range_in, put_in};
use crate::messages::{
    Compare, DeleteRangeResponse, Nested, PutResponse, RangeResponse, Repeated, RequestOp, ResponseOp,
    TxnRequest, TxnResponse,
};
use crate::quota::txn_cost;
use crate::range;
use crate::server::{EtcdServer, check_size, header, header_within, signed};
use crate::status::EtcdStatus;
use crate::values::Values;

pub(crate) async fn txn(
    server: &EtcdServer,
    request: TxnRequest,
    bytes: usize,
) -> Result<TxnResponse, EtcdStatus> {
    check::txn(&request)?;
    check_size(bytes)?;
    if !is_read_only(&request) {
        server.admit(txn_cost(&request))?;
    }
    let values = Arc::clone(server.values());
    let work = move |txn: &mut Transaction<'_>| {
        // All comparisons come before all writes, those of nested transactions too.
        let mut outcomes = Vec::new();
        compare_all(txn, &*values, &request, &mut outcomes)?;
        let mut outcomes = outcomes.into_iter();
        let answer = execute(txn, &*values, &request, &mut outcomes)?;
        Ok::<_, EtcdStatus>(TxnResponse { header: header(txn.revision()), ..answer })
    };
    let answer = server.kv()?.transact(work).await?;
    server.metrics().transacted(&answer);
    Ok(answer)
}

/// Whether nothing is written, whatever the comparisons say.
fn is_read_only(request: &TxnRequest) -> bool {
    let reads = |operation: &RequestOp| match &operation.txn.0 {
        Some(nested) => is_read_only(nested),
        None => operation.put.0.is_none() && operation.delete_range.0.is_none(),
    };
    request.success.0.iter().chain(&request.failure.0).all(reads)
}

/// How the comparisons of a transaction and of those that are done in it come out, in their order.
fn compare_all(
    txn: &Transaction<'_>,
    values: &dyn Values,
    request: &TxnRequest,
    outcomes: &mut Vec<bool>,
) -> Result<(), EtcdStatus> {
    let mut succeeds = true;
    for compare in &request.compare.0 {
        succeeds = succeeds && holds(txn, values, compare)?;
    }
    outcomes.push(succeeds);
    for nested in chosen(request, succeeds).iter().filter_map(|operation| operation.txn.0.as_deref()) {
        compare_all(txn, values, nested, outcomes)?;
    }
    Ok(())
}

fn chosen(request: &TxnRequest, succeeds: bool) -> &[RequestOp] {
    if succeeds { &request.success.0 } else { &request.failure.0 }
}

/// A comparison holds for a range if it holds for each key in it.
fn holds(txn: &Transaction<'_>, values: &dyn Values, compare: &Compare) -> Result<bool, EtcdStatus> {
    let spans = keys::span(&compare.key, &compare.range_end).unwrap_or(KeySpans::NOTHING);
    let found = range::read(txn, &spans, usize::MAX, None)?.kvs;
    if found.is_empty() {
        // What does not exist has zeros for numbers, but no value.
        return Ok(compare.target != VALUE && is_so(compare, compare_numbers(compare, [0; 4])));
    }
    Ok(found.iter().all(|kv| {
        let ordering = if compare.target == VALUE {
            let expected = compare.value.clone().unwrap_or_default();
            shown_value(values, kv).cmp(&expected)
        } else {
            let lease = kv.lease.map_or(0, |lease| txn.lease_name(lease).cast_signed());
            let numbers = [signed(kv.version), signed(kv.create_revision), signed(kv.mod_revision), lease];
            compare_numbers(compare, numbers)
        };
        is_so(compare, ordering)
    }))
}

fn shown_value(values: &dyn Values, kv: &etcd::KeyValue) -> Bytes {
    if kv.value.is_empty() { Bytes::new() } else { values.shown(&kv.key, &kv.value) }
}

const VALUE: i64 = 3;

fn compare_numbers(compare: &Compare, [version, create, modified, lease]: [i64; 4]) -> Ordering {
    match compare.target {
        0 => version.cmp(&compare.version.unwrap_or(0)),
        1 => create.cmp(&compare.create_revision.unwrap_or(0)),
        2 => modified.cmp(&compare.mod_revision.unwrap_or(0)),
        4 => lease.cmp(&compare.lease.unwrap_or(0)),
        _ => Ordering::Equal,
    }
}

fn is_so(compare: &Compare, ordering: Ordering) -> bool {
    match compare.result {
        0 => ordering.is_eq(),
        1 => ordering.is_gt(),
        2 => ordering.is_lt(),
        3 => ordering.is_ne(),
        _ => true,
    }
}

fn execute(
    txn: &mut Transaction<'_>,
    values: &dyn Values,
    request: &TxnRequest,
    outcomes: &mut impl Iterator<Item = bool>,
) -> Result<TxnResponse, EtcdStatus> {
    let succeeded = outcomes.next().unwrap_or_default();
    let mut responses = Vec::new();
    for operation in chosen(request, succeeded) {
        responses.push(execute_one(txn, values, operation, outcomes)?);
    }
    Ok(TxnResponse { succeeded, responses: Repeated(responses), ..TxnResponse::default() })
}

fn execute_one(
    txn: &mut Transaction<'_>,
    values: &dyn Values,
    operation: &RequestOp,
    outcomes: &mut impl Iterator<Item = bool>,
) -> Result<ResponseOp, EtcdStatus> {
    let mut response = ResponseOp::default();
    if let Some(request) = &operation.range.0 {
        let answer = range::range(txn, values, request)?;
        response.range = Nested::some(RangeResponse { header: header_within(txn.revision()), ..answer });
    } else if let Some(request) = &operation.put.0 {
        let answer = put_in(txn, values, request)?;
        response.put = Nested::some(PutResponse { header: header_within(txn.revision()), ..answer });
    } else if let Some(request) = &operation.delete_range.0 {
        let answer = delete_range_in(txn, values, request)?;
        response.delete_range =
            Nested::some(DeleteRangeResponse { header: header_within(txn.revision()), ..answer });
    } else if let Some(request) = &operation.txn.0 {
        // As a trait object, so that the types of nested iterators end.
        let outcomes: &mut dyn Iterator<Item = bool> = outcomes;
        let answer = execute(txn, values, request, &mut { outcomes })?;
        // There, but nothing is in it.
        response.txn = Nested::some(TxnResponse { header: header_within(0), ..answer });
    }
    Ok(response)
}
