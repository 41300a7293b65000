//! Reading keys: everything that a range can be asked for (`server/etcdserver/txn/range.go`).

use std::cmp::Ordering;

use bytes::Bytes;
use etcd::{KeySpan, Kv, LeaseId, Range, Revision, StoreError, Transaction};

use crate::keys::{self, KeySpans};
use crate::messages::{KeyValue, RangeRequest, RangeResponse, Repeated};
use crate::server::{header, signed};
use crate::status::EtcdStatus;
use crate::values::Values;

/// A store, or a store as a transaction sees it.
pub(crate) trait KeyReader {
    fn read(&self, span: &KeySpan<'_>, limit: usize, at: Option<Revision>) -> Result<Range, StoreError>;

    /// Where the store stands.
    fn newest(&self) -> Revision;

    fn lease_name(&self, lease: LeaseId) -> u64;
}

impl KeyReader for Kv {
    fn read(&self, span: &KeySpan<'_>, limit: usize, at: Option<Revision>) -> Result<Range, StoreError> {
        self.range_of(span, limit, at)
    }

    fn newest(&self) -> Revision {
        self.revision()
    }

    fn lease_name(&self, lease: LeaseId) -> u64 {
        Kv::lease_name(self, lease)
    }
}

impl KeyReader for Transaction<'_> {
    fn read(&self, span: &KeySpan<'_>, limit: usize, at: Option<Revision>) -> Result<Range, StoreError> {
        self.range(span, limit, at)
    }

    fn newest(&self) -> Revision {
        self.revision()
    }

    fn lease_name(&self, lease: LeaseId) -> u64 {
        Transaction::lease_name(self, lease)
    }
}

/// Reads texts and others at one revision, in the order of their bytes.
pub(crate) fn read(
    reader: &impl KeyReader,
    spans: &KeySpans<'_>,
    limit: usize,
    at: Option<Revision>,
) -> Result<Range, StoreError> {
    loop {
        let mut found = reader.read(&spans.texts, limit, at)?;
        let Some(others) = &spans.others else { return Ok(found) };
        let others = match reader.read(others, limit, Some(found.revision.min(at.unwrap_or(u64::MAX)))) {
            // Between the two: they are read anew.
            Err(StoreError::Compacted { .. }) if at.is_none() => continue,
            others => others?,
        };
        if others.count > 0 {
            found.kvs.extend(others.kvs);
            found.kvs.sort_by(|one, another| keys::order(&one.key, &another.key));
            found.kvs.truncate(limit);
            found.count += others.count;
            found.more = found.count > found.kvs.len();
        }
        return Ok(found);
    }
}

/// A key as it is sent.
pub(crate) fn shown(reader: &impl KeyReader, values: &dyn Values, kv: &etcd::KeyValue) -> KeyValue {
    KeyValue {
        key: keys::bytes(&kv.key),
        create_revision: signed(kv.create_revision),
        mod_revision: signed(kv.mod_revision),
        version: signed(kv.version),
        value: if kv.value.is_empty() { Bytes::new() } else { values.shown(&kv.key, &kv.value) },
        lease: kv.lease.map_or(0, |lease| reader.lease_name(lease).cast_signed()),
    }
}

/// Reads what is asked for.
pub(crate) fn range(
    reader: &impl KeyReader,
    values: &dyn Values,
    request: &RangeRequest,
) -> Result<RangeResponse, EtcdStatus> {
    let spans = keys::span(&request.key, &request.range_end).unwrap_or(KeySpans::NOTHING);
    let limit = usize::try_from(request.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let at = u64::try_from(request.revision).ok().filter(|at| *at > 0);
    let fetched = match (request.count_only, reads_all(request)) {
        (true, _) => 0,
        (false, true) => usize::MAX,
        // One more than is wanted tells whether there are more.
        (false, false) => limit.saturating_add(1),
    };
    let mut found = read(reader, &spans, fetched, at)?;
    found.kvs.retain(|kv| passes(request, kv));
    let more = found.kvs.len() > limit;
    if is_sorted(request) {
        sort(request, values, &mut found.kvs);
    }
    found.kvs.truncate(limit);
    if request.keys_only {
        found.kvs.iter_mut().for_each(|kv| kv.value = Bytes::new());
    }
    let shown = found.kvs.iter().map(|kv| shown(reader, values, kv));
    Ok(RangeResponse {
        // Not of the past that was read.
        header: header(if at.is_some() { reader.newest() } else { found.revision }),
        kvs: Repeated(shown.collect()),
        more,
        count: i64::try_from(found.count).unwrap_or(i64::MAX),
    })
}

const DESCEND: i64 = 2;
const ASCEND: i64 = 1;

/// Keys come in their order anyway.
fn is_sorted(request: &RangeRequest) -> bool {
    request.sort_target != 0 || request.sort_order == DESCEND
}

/// Whether the limit counts what is left after all was sorted and filtered. Without an order what is read up
/// to the limit, and one more, is sorted, whatever by.
fn reads_all(request: &RangeRequest) -> bool {
    let RangeRequest { min_mod_revision, max_mod_revision, min_create_revision, max_create_revision, .. } =
        request;
    [min_mod_revision, max_mod_revision, min_create_revision, max_create_revision]
        .into_iter()
        .any(|bound| *bound != 0)
        || request.sort_order == DESCEND
        || request.sort_order == ASCEND && request.sort_target != 0
}

fn passes(request: &RangeRequest, kv: &etcd::KeyValue) -> bool {
    let is_within = |revision: Revision, min: i64, max: i64| {
        (min == 0 || signed(revision) >= min) && (max == 0 || signed(revision) <= max)
    };
    is_within(kv.mod_revision, request.min_mod_revision, request.max_mod_revision)
        && is_within(kv.create_revision, request.min_create_revision, request.max_create_revision)
}

fn sort(request: &RangeRequest, values: &dyn Values, kvs: &mut [etcd::KeyValue]) {
    let compare = |one: &etcd::KeyValue, other: &etcd::KeyValue| -> Ordering {
        match request.sort_target {
            1 => one.version.cmp(&other.version),
            2 => one.create_revision.cmp(&other.create_revision),
            3 => one.mod_revision.cmp(&other.mod_revision),
            4 => values.shown(&one.key, &one.value).cmp(&values.shown(&other.key, &other.value)),
            _ => keys::order(&one.key, &other.key),
        }
    };
    if request.sort_order == DESCEND {
        kvs.sort_by(|one, other| compare(other, one));
    } else {
        kvs.sort_by(compare);
    }
}
