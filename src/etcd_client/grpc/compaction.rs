//! Compaction that is agreed among servers (`apiserver/pkg/storage/etcd3/compact.go`): whoever is first to
//! write the key of compaction compacts, the others learn from it how far.

use std::time::Duration;

use bytes::Bytes;
use etcd::{Revision, StoreError};
use etcd_api::messages::{
    CompactionRequest, Compare, HeaderResponse, Nested, PutRequest, RangeRequest, Repeated, RequestOp,
    TxnRequest, TxnResponse,
};

use super::ask::Repeat;
use super::client::EtcdClient;
use super::convert::signed;

/// Where servers agree; beside `--etcd-prefix`, since history is that of the whole etcd.
const COMPACT_REV_KEY: &[u8] = b"compact_rev_key";

/// What a server knows of compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CompactState {
    /// The version of the key.
    version: i64,
    /// The revision at that time: what is before it goes next time.
    revision: Revision,
}

impl EtcdClient {
    /// Every `interval` forgets the history that was there at the time before, unless another server does so.
    /// Ends when the client is closed.
    pub async fn compact_every(self, interval: Duration) {
        let mut state = CompactState::default();
        loop {
            self.clock().look_after(interval).await;
            match self.compact_once(state).await {
                Ok(next) => state = next,
                Err(StoreError::Closed) => return,
                Err(error) => tracing::error!(%error, "compaction failed"),
            }
        }
    }

    /// One round: compacts to the revision of the round before, if nobody else has been faster.
    pub(crate) async fn compact_once(&self, state: CompactState) -> Result<CompactState, StoreError> {
        let answer: TxnResponse = self.call("KV/Txn", &agreement(state), Repeat::Uncertain).await?;
        let revision = self.see(&answer.header);
        if !answer.succeeded {
            let found = answer.responses.0.into_iter().next().and_then(|read| read.range.0);
            let found = found.and_then(|range| range.kvs.0.into_iter().next()).unwrap_or_default();
            let told = str::from_utf8(&found.value).ok().and_then(|text| text.parse().ok());
            self.has_compacted(told.unwrap_or(0));
            return Ok(CompactState { version: found.version, revision });
        }
        if state.revision > 0 {
            self.compact(state.revision).await?;
        }
        Ok(CompactState { version: state.version + 1, revision })
    }

    /// Forgets the history before a revision; one that is compacted already is no error.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`], [`StoreError::Etcd`], [`StoreError::Closed`].
    pub async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        let request = CompactionRequest { revision: signed(before), physical: false };
        let compacted: Result<HeaderResponse, StoreError> =
            self.call("KV/Compact", &request, Repeat::Harmless).await;
        match compacted.map_err(|error| self.with_revisions(error, before)) {
            Ok(_) => self.has_compacted(before),
            Err(StoreError::Compacted { .. }) => {}
            Err(error) => return Err(error),
        }
        tracing::debug!(revision = before, "etcd's history before this revision is gone");
        Ok(())
    }
}

/// Writes the revision, if the key is as it was found last.
fn agreement(state: CompactState) -> TxnRequest {
    let key = Bytes::from_static(COMPACT_REV_KEY);
    let version = Some(state.version);
    let value = Bytes::from(state.revision.to_string());
    let put = PutRequest { key: key.clone(), value, ..PutRequest::default() };
    let range = RangeRequest { key: key.clone(), ..RangeRequest::default() };
    TxnRequest {
        compare: Repeated(vec![Compare { key, version, ..Compare::default() }]),
        success: Repeated(vec![RequestOp { put: Nested::some(put), ..RequestOp::default() }]),
        failure: Repeated(vec![RequestOp { range: Nested::some(range), ..RequestOp::default() }]),
    }
}
