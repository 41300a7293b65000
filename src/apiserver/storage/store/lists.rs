//! Lists straight from etcd, page by page (`etcd3.store.GetList`).

use super::Store;
use crate::storage::continue_token::ContinueToken;
use crate::storage::errors::{continue_expired, interpret, too_large};
use crate::storage::metrics::EtcdOperation;
use crate::storage::page::ListedPage;
use crate::storage::request::{At, ListRequest};
use apimachinery::list::List;
use apimachinery::status::Status;
use apis::kind::Kind;
use etcd::{KeyValue, Revision, StoreError};

/// With a selector, so many keys are read at a time at first; doubled while the page does not fill.
const FIRST_CHUNK: usize = 500;

impl Store {
    /// Objects at one revision. Read from etcd, every state is the newest: `Any` and `NotOlderThan` are met
    /// by it.
    ///
    /// # Errors
    /// 410 when the revision was compacted away; 504 when it is to come.
    pub async fn list(&self, kind: &Kind, request: &ListRequest) -> Result<List, Status> {
        let at = match request.at {
            At::Exact(revision) => Some(revision),
            _ => None,
        };
        let mut cost = ListCost::default();
        let listed = self.list_at(kind, request, at, &mut cost).await;
        let returned = listed.as_ref().map_or(0, |list| list.items.len());
        self.counters(kind).listed_from_store(cost.fetched, cost.evaluated, returned);
        let list = listed.map_err(|error| match error {
            StoreFailure::Etcd(StoreError::Compacted { .. }) if request.start.is_some() => {
                let start = request.start.as_deref().unwrap_or_default();
                let start = start[request.selection.prefix().len()..].to_owned();
                continue_expired(&ContinueToken { revision: None, start }.encode())
            }
            StoreFailure::Etcd(error) => interpret(error),
            StoreFailure::Status(status) => status,
        })?;
        match request.at {
            At::NotOlderThan(revision) if revision > list.resource_version => {
                Err(too_large(revision, list.resource_version))
            }
            _ => Ok(list),
        }
    }

    /// At a revision, or now: then all of it is of the revision of the first page that is read.
    async fn list_at(
        &self,
        kind: &Kind,
        request: &ListRequest,
        mut at: Option<Revision>,
        cost: &mut ListCost,
    ) -> Result<List, StoreFailure> {
        let root = kind.storage_prefix();
        let prefix = format!("{root}{}", request.selection.prefix());
        let mut from = request.start.as_ref().map(|start| format!("{root}{start}"));
        let mut chunk = match request.limit {
            Some(limit) if !request.selection.predicate.is_everything() => Some(limit.max(FIRST_CHUNK)),
            limit => limit,
        };
        let operation =
            if request.selection.key.is_some() { EtcdOperation::Get } else { EtcdOperation::List };
        let mut page = ListedPage::new(request, kind.field_names());
        loop {
            let reading = self.kv.range(&prefix, from.as_deref(), chunk, at);
            let range = self.ask(kind, operation, reading).await?;
            cost.fetched += range.kvs.len();
            at = Some(range.revision);
            let mut left = range.count;
            for found in range.kvs.iter().filter(|found| is_wanted(request, root, found)) {
                if page.is_full() {
                    break;
                }
                left -= 1;
                cost.evaluated += 1;
                page.offer(&found.key[root.len()..], self.decode(kind, found)?);
            }
            if !range.more || page.is_full() {
                let goes_on = page.is_full() && request.selection.key.is_none();
                page.cut(if goes_on { left } else { 0 });
                return Ok(page.finish(range.revision));
            }
            from = Some(format!("{root}{}", page.next_key()));
            chunk = chunk.map(|chunk| chunk * 2);
        }
    }
}

/// What a list has cost so far: keys that were read, and objects that were held against its selectors.
#[derive(Default)]
struct ListCost {
    fetched: usize,
    evaluated: usize,
}

enum StoreFailure {
    Etcd(StoreError),
    Status(Status),
}

impl From<StoreError> for StoreFailure {
    fn from(error: StoreError) -> StoreFailure {
        StoreFailure::Etcd(error)
    }
}

impl From<Status> for StoreFailure {
    fn from(status: Status) -> StoreFailure {
        StoreFailure::Status(status)
    }
}

/// A selector that fixes the key names one object; others may begin with its name.
fn is_wanted(request: &ListRequest, root: &str, found: &KeyValue) -> bool {
    request.selection.key.as_ref().is_none_or(|key| found.key[root.len()..] == **key)
}
