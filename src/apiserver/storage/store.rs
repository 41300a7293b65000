//! `Store`: objects straight in etcd (`storage/etcd3.store`).
//! Next: src/etcd/kv.rs

mod lists;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::byte_store::ByteStore;
use super::encryption::Encryption;
use super::errors::{corrupt, interpret, too_large};
use super::foreign;
use super::fresh::Fresh;
use super::lease_manager::LeaseManager;
use super::metrics::{EtcdOperation, KindMetrics, StorageMetrics};
use super::recorder::{RecordedChange, Recorder};
use super::size_limit;
use apimachinery::object::{Object, encode_for_storage, split_key};
use apimachinery::options::WatchCut;
use apimachinery::status::Status;
use apis::kind::Kind;
use clock::Clock;
use etcd::{Expect, KeyValue, Op, Revision, StoreError, Txn};
use flow::Flow;
use tokio::sync::Notify;

/// Objects in etcd. Cloning shares it. Kinds are storage kinds, keys are relative to the kind.
#[derive(Clone, Debug)]
pub struct Store {
    kv: ByteStore,
    clock: Clock,
    leases: Arc<LeaseManager>,
    recorder: Arc<Recorder>,
    encryption: Encryption,
    event_ttl: Option<Duration>,
    writes_protobuf: bool,
    is_read_only: bool,
    fresh: Arc<Fresh>,
    metrics: Arc<StorageMetrics>,
    /// The counters of the one kind that this handle is used for.
    own_counters: Option<Arc<KindMetrics>>,
    /// Watches were cut: who serves one that is read straight from etcd looks whether it is among them.
    cuts: Arc<Notify>,
}

/// What became of a write.
#[derive(Clone, Debug)]
pub enum Written {
    /// It is stored: the object as it now is; of a deletion the last state, at the revision of the deletion.
    Committed(Arc<Object>),
    /// The object is not at the revision that was expected; this is there instead.
    Conflict(Option<Arc<Object>>),
}

impl Store {
    /// Over a store of bytes.
    pub fn new(kv: impl Into<ByteStore>, clock: Clock) -> Store {
        let kv = kv.into();
        let metrics: Arc<StorageMetrics> = Arc::default();
        let leases = Arc::new(LeaseManager::new(kv.clone(), clock.clone(), metrics.clone()));
        let recorder = Arc::new(Recorder::new(Flow::off()));
        let encryption = Encryption::default();
        let event_ttl = None;
        Store {
            kv,
            clock,
            leases,
            recorder,
            encryption,
            event_ttl,
            writes_protobuf: false,
            is_read_only: false,
            fresh: Arc::default(),
            metrics,
            own_counters: None,
            cuts: Arc::default(),
        }
    }

    /// A store that notes in `flow` what is stored and delivered.
    pub fn recording(self, flow: Flow) -> Store {
        Store { recorder: Arc::new(Recorder::new(flow)), ..self }
    }

    /// A store that encrypts what it stores.
    pub fn encrypting(self, encryption: Encryption) -> Store {
        Store { encryption, ..self }
    }

    /// A store in which what expires lives so long instead of as its kind says (`--event-ttl`); 0 is for
    /// ever.
    pub fn keeping_events(self, event_ttl: Duration) -> Store {
        Store { event_ttl: Some(event_ttl), ..self }
    }

    /// A store that keeps objects as protobuf, those of custom kinds aside; what is there is read in either
    /// form.
    pub fn writing_protobuf(self, writes_protobuf: bool) -> Store {
        Store { writes_protobuf, ..self }
    }

    /// Whether it keeps objects as protobuf.
    pub(super) fn is_protobuf(&self) -> bool {
        self.writes_protobuf
    }

    /// A store that refuses to be written to, if `is_read_only`.
    pub fn read_only(self, is_read_only: bool) -> Store {
        Store { is_read_only, ..self }
    }

    fn check_writable(&self, kind: &Kind, key: &str) -> Result<(), Status> {
        if !self.is_read_only {
            return Ok(());
        }
        let why = "this server only shows what is there (--read-only)";
        Err(Status::forbidden(&kind.group_resource(), split_key(key).1, why))
    }

    fn time_to_live(&self, kind: &Kind) -> Option<Duration> {
        let own = kind.time_to_live?;
        Some(self.event_ttl.unwrap_or(own)).filter(|time| !time.is_zero())
    }

    /// A handle that is used for one kind alone, whose counters need not be looked up each time.
    pub(super) fn for_kind(&self, kind: &Kind) -> Store {
        Store { own_counters: Some(self.counters(kind)), ..self.clone() }
    }

    /// What is counted of a kind.
    pub(super) fn counters(&self, kind: &Kind) -> Arc<KindMetrics> {
        self.own_counters.clone().unwrap_or_else(|| self.metrics.of(kind))
    }

    /// What is counted of all kinds.
    pub(super) fn metrics(&self) -> &StorageMetrics {
        &self.metrics
    }

    /// Asks the bytes underneath for something of a kind, which is counted.
    async fn ask<T>(
        &self,
        kind: &Kind,
        operation: EtcdOperation,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let began = self.clock.elapsed();
        let answer = answer.await;
        let took = self.clock.elapsed().saturating_sub(began);
        match &self.own_counters {
            Some(own) => own.requests.record(operation, took, answer.is_err()),
            None => self.metrics.of(kind).requests.record(operation, took, answer.is_err()),
        }
        answer
    }

    /// The newest revision, which is asked for because of a kind (upstream's `GetCurrentResourceVersion`,
    /// a get).
    pub(super) async fn revision(&self, kind: &Kind) -> Result<Revision, StoreError> {
        self.ask(kind, EtcdOperation::Get, self.kv.revision()).await
    }

    async fn find(&self, kind: &Kind, key: &str) -> Result<Option<KeyValue>, Status> {
        let whole = full_key(kind, key);
        self.ask(kind, EtcdOperation::Get, self.kv.get(&whole, None)).await.map_err(interpret)
    }

    /// What notes it.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The objects of the last writes.
    pub(super) fn fresh(&self) -> &Fresh {
        &self.fresh
    }

    /// Ends the watches straight from etcd that were cut.
    pub(super) fn end_cut_watches(&self) {
        self.cuts.notify_waiters();
    }

    /// Waits until a watch straight from etcd is cut, for ever if nothing can cut it.
    pub(super) async fn cut(&self, cut: Option<WatchCut>) {
        let Some(cut) = cut else { return std::future::pending().await };
        loop {
            let mut told = std::pin::pin!(self.cuts.notified());
            told.as_mut().enable();
            if cut.is_cut() {
                return;
            }
            told.await;
        }
    }

    /// The bytes underneath.
    pub fn kv(&self) -> &ByteStore {
        &self.kv
    }

    /// The cluster's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The newest state of an object.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn get(&self, kind: &Kind, key: &str) -> Result<Option<Arc<Object>>, Status> {
        let found = self.find(kind, key).await?;
        found.map(|found| self.decode(kind, &found)).transpose()
    }

    /// Reads an object as [`Store::get`] does, if the store has come to a revision.
    ///
    /// # Errors
    /// 504 when the revision is to come; 500 when the store fails.
    pub async fn get_not_older(
        &self,
        kind: &Kind,
        key: &str,
        revision: Revision,
    ) -> Result<Option<Arc<Object>>, Status> {
        let current = self.revision(kind).await.map_err(interpret)?;
        if revision > current {
            return Err(too_large(revision, current));
        }
        self.get(kind, key).await
    }

    /// Reads an object as [`Store::get`] does; `cached` is what a cache has of it, which is taken if it
    /// is the newest: a cache that lags behind lags mostly because of other objects.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn get_newest(
        &self,
        kind: &Kind,
        key: &str,
        cached: Option<Arc<Object>>,
    ) -> Result<Option<Arc<Object>>, Status> {
        // Where a look costs as much as the whole, the whole is read.
        let ByteStore::Own(kv) = &self.kv else { return self.get(kind, key).await };
        let whole = full_key(kind, key);
        let look = async {
            let newest = kv.mod_revision(&whole)?;
            let known = cached.filter(|cached| Some(cached.metadata.resource_version) == newest);
            let is_unknown = known.is_none() && newest.is_some();
            Ok((known, if is_unknown { self.kv.get(&whole, None).await? } else { None }))
        };
        match self.ask(kind, EtcdOperation::Get, look).await.map_err(interpret)? {
            (_, Some(found)) => self.decode(kind, &found).map(Some),
            (known, None) => Ok(known),
        }
    }

    /// How many objects there are now.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn count(&self, kind: &Kind) -> Result<usize, Status> {
        let counting = self.kv.range(kind.storage_prefix(), None, Some(0), None);
        let range = self.ask(kind, EtcdOperation::ListWithCount, counting).await.map_err(interpret)?;
        Ok(range.count)
    }

    /// Writes an object if it is at the revision `expected` (0: it does not exist). `cause` is the step of
    /// the causal record that led here.
    ///
    /// # Errors
    /// 500 when the store fails, and when the object is too large for it (see [`size_limit`]).
    pub async fn put(
        &self,
        kind: &Kind,
        key: &str,
        expected: Revision,
        new: &Value,
        cause: Option<u64>,
    ) -> Result<Written, Status> {
        self.check_writable(kind, key)?;
        let value = encode_for_storage(new).map_err(Status::internal)?;
        let whole = full_key(kind, key);
        size_limit::check(kind, &whole, new, &value)?;
        let object = kind.object_of_tree(new, value.clone(), 0).map_err(Status::internal)?;
        let lease = match self.time_to_live(kind) {
            Some(time) => Some(self.leases.lease(time).await.map_err(interpret)?),
            None => None,
        };
        let protobuf = if self.writes_protobuf { foreign::as_protobuf(kind, new) } else { None };
        let form = match protobuf {
            Some(message) => message,
            None if self.kv.is_shared() => foreign::as_json(kind, &value),
            None => value,
        };
        let kept = self.encryption.to_storage(kind, &whole, form);
        let op = Op::Put { value: kept.map_err(Status::internal)?, lease };
        match self.write(kind, key, expected, op, cause, Some(&object)).await?.0 {
            Txn::Committed { revision, .. } => {
                let made = || Ok(Arc::new(object.written_at(revision)));
                Ok(Written::Committed(self.fresh_object(kind, revision, &whole, made)?))
            }
            Txn::Conflict { current } => self.conflict(kind, current),
        }
    }

    /// Removes an object if it is at the revision `expected`; `cause` as in [`Store::put`].
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &str,
        expected: Revision,
        cause: Option<u64>,
    ) -> Result<Written, Status> {
        self.check_writable(kind, key)?;
        match self.write(kind, key, expected, Op::Delete, cause, None).await? {
            (Txn::Committed { .. }, Some(last)) => Ok(Written::Committed(last?)),
            (Txn::Committed { .. }, None) => Err(Status::internal(format!("{key} was deleted twice"))),
            (Txn::Conflict { current }, _) => self.conflict(kind, current),
        }
    }

    /// `object` is what is put. Of a deletion, its last state comes back as well.
    async fn write(
        &self,
        kind: &Kind,
        key: &str,
        expected: Revision,
        op: Op,
        cause: Option<u64>,
        object: Option<&Object>,
    ) -> Result<(Txn, Option<Result<Arc<Object>, Status>>), Status> {
        let whole = full_key(kind, key);
        let (deleted, bytes) = match &op {
            Op::Delete => (true, 0),
            Op::Put { value, .. } => (false, value.len()),
        };
        self.recorder.hold(kind, key, (deleted, expected), cause).await;
        self.recorder.begin(&whole, expected, cause);
        let operation = match (deleted, expected) {
            (true, _) => EtcdOperation::Delete,
            (false, 0) => EtcdOperation::Create,
            (false, _) => EtcdOperation::Update,
        };
        let writing = self.kv.txn(&whole, Expect::ModRevision(expected), op);
        let done = self.ask(kind, operation, writing).await.map_err(interpret);
        let mut gone = None;
        if let Ok(Txn::Committed { revision, previous }) = &done {
            let last = previous.as_ref().filter(|_| deleted);
            gone = last.map(|last| self.last_state(kind, last, *revision));
            let object = gone.iter().flatten().next().map_or(object, |gone| Some(gone));
            let change =
                RecordedChange { key, replaced: expected, revision: *revision, deleted, object, bytes };
            self.recorder.stored(kind, change);
        }
        self.recorder.end(&whole, expected);
        done.map(|done| (done, gone))
    }

    /// An object that is gone, at the revision of its deletion.
    fn last_state(&self, kind: &Kind, last: &KeyValue, revision: Revision) -> Result<Arc<Object>, Status> {
        self.fresh_object(kind, revision, &last.key, || self.decode_at(kind, last, revision))
    }

    /// The object of a write, which the kind's watch cache, if it has one, asks for as well.
    fn fresh_object(
        &self,
        kind: &Kind,
        revision: Revision,
        key: &str,
        read: impl FnOnce() -> Result<Arc<Object>, Status>,
    ) -> Result<Arc<Object>, Status> {
        if kind.has_watch_cache { self.fresh.object(revision, key, read) } else { read() }
    }

    /// An object as it was put.
    pub(super) fn decode(&self, kind: &Kind, found: &KeyValue) -> Result<Arc<Object>, Status> {
        self.decode_at(kind, found, found.mod_revision)
    }

    /// An object shown at another revision: that of its deletion.
    pub(super) fn decode_at(
        &self,
        kind: &Kind,
        found: &KeyValue,
        revision: Revision,
    ) -> Result<Arc<Object>, Status> {
        let plain = if self.encryption.keeps_as_is(&found.value) {
            found.value.clone()
        } else {
            self.encryption.from_storage(kind, &found.key, &found.value).map_err(|error| {
                let key = self.kv.kept_key(&found.key);
                Status::internal(format!("unable to transform key {key:?}: {error}"))
            })?
        };
        let object = foreign::own_form(kind, plain).and_then(|own| kind.object(own, revision));
        object.map(Arc::new).map_err(|error| corrupt(&self.kv.kept_key(&found.key), error))
    }

    /// Whether it is kept in another way than it would be now: an update that changes nothing writes it all
    /// the same.
    ///
    /// # Errors
    /// 500 when the store fails.
    pub async fn is_stale(&self, kind: &Kind, key: &str) -> Result<bool, Status> {
        if self.encryption.is_off() {
            return Ok(false);
        }
        let found = self.find(kind, key).await?;
        Ok(found.is_some_and(|found| self.encryption.is_stale(kind, &found.value)))
    }

    fn conflict(&self, kind: &Kind, current: Option<KeyValue>) -> Result<Written, Status> {
        Ok(Written::Conflict(current.map(|current| self.decode(kind, &current)).transpose()?))
    }
}

/// The whole key in etcd.
pub fn full_key(kind: &Kind, key: &str) -> String {
    format!("{}{key}", kind.storage_prefix())
}
