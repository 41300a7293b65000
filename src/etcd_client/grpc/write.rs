//! Writes: a put or a deletion that compares the key's revision first, as upstream's store makes them
//! (`kubernetes.OptimisticPut`, `OptimisticDelete`).

use bytes::Bytes;
use etcd::{Expect, Op, StoreError, Txn};
use etcd_api::messages::{
    Compare, DeleteRangeRequest, Nested, PutRequest, RangeRequest, Repeated, RequestOp, ResponseOp,
    TxnRequest, TxnResponse,
};

use super::ask::Repeat;
use super::client::EtcdClient;
use super::convert::signed;

/// `Compare_EQUAL` and `Compare_GREATER`
const EQUAL: i64 = 0;
const GREATER: i64 = 1;
/// `Compare_VERSION` and `Compare_MOD`
const VERSION: i64 = 0;
const MOD: i64 = 2;

impl EtcdClient {
    /// As [`etcd::Kv::txn`]; what a put has replaced is not told.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`]; [`StoreError::Etcd`], after which nobody knows whether it was done;
    /// [`StoreError::Closed`].
    pub async fn txn(&self, key: &str, expect: Expect, op: Op) -> Result<Txn, StoreError> {
        let deletes = op == Op::Delete;
        let key = self.outer(key);
        let read = RangeRequest { key: key.clone(), ..RangeRequest::default() };
        let request = TxnRequest {
            compare: Repeated(compare(&key, expect, deletes)),
            success: Repeated(vec![written(key, op)]),
            failure: Repeated(vec![RequestOp { range: Nested::some(read), ..RequestOp::default() }]),
        };
        let answer: TxnResponse = self.call("KV/Txn", &request, Repeat::Uncertain).await?;
        let revision = self.see(&answer.header);
        let did = answer.responses.0.into_iter().next().unwrap_or_default();
        if !answer.succeeded {
            return Ok(Txn::Conflict { current: self.found(did) });
        }
        if !deletes {
            return Ok(Txn::Committed { revision, previous: None });
        }
        let deleted = did.delete_range.0.and_then(|deleted| deleted.prev_kvs.0.into_iter().next());
        match deleted.and_then(|kv| self.key_value(kv)) {
            Some(previous) => Ok(Txn::Committed { revision, previous: Some(previous) }),
            None => Ok(Txn::Conflict { current: None }),
        }
    }

    fn found(&self, read: ResponseOp) -> Option<etcd::KeyValue> {
        let found = read.range.0?.kvs.0.into_iter().next()?;
        self.key_value(found)
    }
}

/// A key that is not there has the revision 0.
fn compare(key: &Bytes, expect: Expect, deletes: bool) -> Vec<Compare> {
    let of_key = Compare { key: key.clone(), ..Compare::default() };
    match expect {
        Expect::ModRevision(revision) => {
            let mod_revision = Some(signed(revision));
            vec![Compare { result: EQUAL, target: MOD, mod_revision, ..of_key }]
        }
        Expect::Any if deletes => {
            vec![Compare { result: GREATER, target: VERSION, version: Some(0), ..of_key }]
        }
        Expect::Any => vec![],
    }
}

fn written(key: Bytes, op: Op) -> RequestOp {
    match op {
        Op::Put { value, lease } => {
            let lease = lease.map_or(0, |lease| lease.0.cast_signed());
            let put = PutRequest { key, value, lease, ..PutRequest::default() };
            RequestOp { put: Nested::some(put), ..RequestOp::default() }
        }
        Op::Delete => {
            let delete = DeleteRangeRequest { key, prev_kv: true, ..DeleteRangeRequest::default() };
            RequestOp { delete_range: Nested::some(delete), ..RequestOp::default() }
        }
    }
}
