//! Reads.

use etcd::{KeyValue, Range, Revision, StoreError};
use etcd_api::messages::{RangeRequest, RangeResponse};

use super::ask::Repeat;
use super::client::EtcdClient;
use super::convert::{range_end, signed};

/// So many keys are read at once where all are wanted; the others follow, at the same revision.
pub const PAGE_KEYS: usize = 1000;

impl EtcdClient {
    /// The key as it was at a revision (None: now), and the revision that etcd stands at.
    ///
    /// # Errors
    /// [`StoreError::Compacted`], [`StoreError::FutureRevision`], [`StoreError::Etcd`],
    /// [`StoreError::Closed`].
    pub async fn get(
        &self,
        key: &str,
        at: Option<Revision>,
    ) -> Result<(Option<KeyValue>, Revision), StoreError> {
        let request = RangeRequest { key: self.outer(key), revision: wire(at), ..RangeRequest::default() };
        let answer = self.read(&request).await?;
        let found = answer.kvs.0.into_iter().next().and_then(|kv| self.key_value(kv));
        Ok((found, self.see(&answer.header)))
    }

    /// As [`etcd::Kv::range`].
    ///
    /// # Errors
    /// As [`EtcdClient::get`].
    pub async fn range(
        &self,
        prefix: &str,
        from: Option<&str>,
        limit: Option<usize>,
        at: Option<Revision>,
    ) -> Result<Range, StoreError> {
        let range_end = range_end(&self.outer(prefix));
        let key = self.outer(from.unwrap_or(prefix));
        let request = RangeRequest { key, range_end, revision: wire(at), ..RangeRequest::default() };
        match limit {
            Some(0) => self.count(request).await,
            limit => self.up_to(limit, request).await,
        }
    }

    async fn count(&self, request: RangeRequest) -> Result<Range, StoreError> {
        let answer = self.read(&RangeRequest { count_only: true, ..request.clone() }).await?;
        let revision = self.revision_of(&answer, &request);
        let count = usize::try_from(answer.count).unwrap_or(0);
        Ok(Range { kvs: Vec::new(), more: count > 0, count, revision })
    }

    /// One page, and the last key of it as etcd has it.
    async fn page(
        &self,
        request: RangeRequest,
        limit: usize,
    ) -> Result<(Range, Option<bytes::Bytes>), StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let answer = self.read(&RangeRequest { limit, ..request.clone() }).await?;
        let revision = self.revision_of(&answer, &request);
        let last = answer.kvs.0.last().map(|kv| kv.key.clone());
        let kvs = answer.kvs.0.into_iter().filter_map(|kv| self.key_value(kv)).collect();
        let count = usize::try_from(answer.count).unwrap_or(0);
        Ok((Range { kvs, more: answer.more, count, revision }, last))
    }

    /// Page by page, all at the revision of the first. Keys that are no text are left out, and so a page may
    /// have less than was asked for: then there is another one.
    async fn up_to(&self, limit: Option<usize>, mut request: RangeRequest) -> Result<Range, StoreError> {
        let (mut all, mut last) = self.page(request.clone(), limit.unwrap_or(PAGE_KEYS)).await?;
        let missing = |all: &Range| limit.map_or(PAGE_KEYS, |limit| limit.saturating_sub(all.kvs.len()));
        while let Some(key) = last.filter(|_| all.more && missing(&all) > 0) {
            request.key = [&key[..], b"\0"].concat().into();
            request.revision = signed(all.revision);
            let (next, last_of_next) = self.page(request.clone(), missing(&all)).await?;
            all.kvs.extend(next.kvs);
            all.more = next.more;
            last = last_of_next;
        }
        Ok(all)
    }

    async fn read(&self, request: &RangeRequest) -> Result<RangeResponse, StoreError> {
        let answered = self.call("KV/Range", request, Repeat::Harmless).await;
        let requested = super::convert::unsigned(request.revision);
        answered.map_err(|error| self.with_revisions(error, requested))
    }

    /// What was read is of the revision that was asked for, or of the one at which etcd stands.
    fn revision_of(&self, answer: &RangeResponse, request: &RangeRequest) -> Revision {
        let current = self.see(&answer.header);
        match request.revision {
            0 => current,
            at => super::convert::unsigned(at),
        }
    }
}

fn wire(at: Option<Revision>) -> i64 {
    at.map_or(0, signed)
}
