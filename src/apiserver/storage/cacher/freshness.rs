//! How new what a cache answers is: waits until it has heard of a revision, or reads what it cannot wait for
//! (`storage/cacher`'s `waitUntilFreshAndBlock` and `progressRequester`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::CacherShared;
use crate::storage::errors::{interpret, too_large};
use crate::storage::metrics::ConsistentRead;
use crate::storage::request::{At, ListRequest};
use crate::storage::watch_cache::CacheSnapshot;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::status::Status;
use etcd::Revision;

/// How long a read waits for the cache to reach a revision; one that names none is then answered from etcd.
const FRESH_WITHIN: Duration = Duration::from_secs(3);
/// Of an etcd that cannot be asked how far watches are, what is not heard of so soon is read from it.
const HEARD_WITHIN: Duration = Duration::from_millis(100);
/// Whoever waits asks an etcd again and again how far the watch is (upstream's `progressRequestPeriod`): the
/// member that is asked may lag behind the one that named the revision.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a read waits for the cache to be filled for the first time.
const FILLED_WITHIN: Duration = Duration::from_secs(30);
impl CacherShared {
    /// The objects, and their revision, in the state that is asked for.
    pub(super) async fn state(&self, at: At) -> Result<(CacheSnapshot, Revision), Status> {
        let least = match at {
            At::Newest => self.store.revision(&self.kind).await.map_err(interpret)?,
            At::Any => self.acknowledged.load(Ordering::Acquire).max(1),
            At::NotOlderThan(revision) | At::Exact(revision) => revision,
        };
        if at == At::Newest && !self.store.kv().tells_progress() && !self.has_reached(least) {
            return Err(too_large(least, self.store.kv().seen_revision()));
        }
        // Who takes any state is not counted as one who waits.
        if at == At::Any {
            self.reached(least).await?
        } else {
            self.wait_until_fresh(least).await?
        }
        let cache = self.read();
        Ok((cache.objects().clone(), cache.revision()))
    }

    /// As [`CacherShared::state`]; of an old etcd what it has, if that is newer: a watch goes on from there.
    pub(super) async fn state_or_read(&self, at: At) -> Result<(CacheSnapshot, Revision), Status> {
        match self.state(at).await {
            Err(_) if !self.store.kv().tells_progress() => {
                // What comes later is told by the cache, which must be there.
                self.reached(1).await?;
                let request = ListRequest { at, ..ListRequest::everything() };
                let list = self.store.list(&self.kind, &request).await?;
                let entry = |object: &Arc<Object>| (object.shared_key().clone(), object.clone());
                Ok((list.items.iter().map(entry).collect(), list.resource_version))
            }
            state => state,
        }
    }

    /// From where on a watch tells what comes.
    pub(super) async fn newest(&self) -> Result<Revision, Status> {
        if self.store.kv().tells_progress() {
            return Ok(self.state(At::Newest).await?.1);
        }
        self.reached(1).await?;
        self.store.revision(&self.kind).await.map_err(interpret)
    }

    /// A list that the cache cannot answer, from etcd.
    pub(super) async fn list_from_store(&self, request: &ListRequest) -> Result<List, Status> {
        let is_ready = !self.cannot_fill();
        let list = self.store.list(&self.kind, request).await;
        if request.at == At::Newest && is_ready {
            let how = if list.is_ok() { ConsistentRead::FellBack } else { ConsistentRead::Failed };
            self.counters.read_consistently(how);
        }
        list
    }

    /// Waits until the cache has reached a revision, which is counted.
    pub(super) async fn wait_until_fresh(&self, revision: Revision) -> Result<(), Status> {
        if self.has_reached(revision) {
            self.counters.waited(Duration::ZERO);
            return Ok(());
        }
        let clock = self.store.clock();
        let began = clock.elapsed();
        let reached = self.reached(revision).await;
        self.counters.waited(clock.elapsed().saturating_sub(began));
        reached
    }

    async fn reached(&self, revision: Revision) -> Result<(), Status> {
        if self.has_reached(revision) {
            return Ok(());
        }
        let reached = async {
            loop {
                // Asked for before looking, so that progress in between is not missed.
                let progressed = self.progressed.notified();
                if self.has_reached(revision) || self.cannot_fill() {
                    return;
                }
                progressed.await;
            }
        };
        let patience = if self.store.kv().tells_progress() { FRESH_WITHIN } else { HEARD_WITHIN };
        let within = if self.has_reached(1) { patience } else { FILLED_WITHIN };
        let asking = async {
            tokio::select! {
                biased;
                () = reached => (),
                () = self.ask_for_progress() => (),
            }
        };
        let reached = self.store.clock().timeout(within, asking).await;
        match reached {
            Ok(()) if self.has_reached(revision) => Ok(()),
            _ => Err(too_large(revision, self.store.kv().seen_revision())),
        }
    }

    /// Never ends. Our own store needs to be asked once.
    async fn ask_for_progress(&self) {
        let kv = self.store.kv();
        kv.request_progress(self.kind.storage_prefix());
        if !kv.is_shared() {
            return std::future::pending().await;
        }
        loop {
            self.store.clock().sleep(ASK_EVERY).await;
            kv.request_progress(self.kind.storage_prefix());
        }
    }

    /// Hears of everything there is, if that can be asked for.
    pub(super) async fn catch_up_with_store(&self) {
        let kv = self.store.kv();
        if kv.tells_progress()
            && let Ok(newest) = self.store.revision(&self.kind).await
        {
            let _ = self.reached(newest).await;
        }
    }
}
