//! The store's handle, and the log it keeps in sled. The only file that knows sled.
//! Next: src/etcd/writer.rs

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::lease::{self, Leases};
use super::log::Log;
use super::overflow::Overflow;
use super::recent::Recent;
use super::recovery::{self, DirLock};
use super::segments::Segments;
use super::state::{self, Shared, State};
use super::sweep::Superfluous;
use super::writer::{COMPACT_REVISION, LEASE, NEWEST_LEASE, Request, Write, Writer};
use super::{Error, Expect, KeyValue, LeaseId, Op, Options, Range, Revision, Txn, Watch};
use crate::clock::Clock;

/// A handle on one store. Cloning shares it; when the last handle is gone, the writer ends and the files are
/// closed (and, without a data dir, removed).
#[derive(Debug, Clone)]
pub struct Kv(Arc<Inner>);

/// For tasks that serve a store without keeping it open.
#[derive(Debug, Clone)]
pub(super) struct WeakKv(Weak<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    clock: Clock,
    /// None only while being dropped.
    queue: Option<mpsc::Sender<Request>>,
    /// Counts what was put into the queue; see [`Inner::serve_here`].
    submitted: AtomicU64,
    writer: WriterPlace,
    expiry: OnceLock<AbortHandle>,
}

/// Where the writer works.
#[derive(Debug)]
enum WriterPlace {
    /// With a data dir: on its own thread, because a flush blocks. What arrives meanwhile is the next batch.
    Thread(Option<JoinHandle<()>>),
    /// In memory nothing blocks: whoever submits does the work, for others as well who submit meanwhile. That
    /// saves two thread switches a write, and makes a cluster on a stepped clock deterministic.
    Here(Mutex<Writer>),
}

impl Kv {
    /// Opens the store, or makes it. Blocks while it reads what is there.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Corrupt`], [`Error::Io`].
    ///
    /// # Panics
    /// Outside of a tokio runtime, which has to run the expiry of leases.
    pub fn open(options: Options, clock: Clock) -> Result<Kv, Error> {
        let (state, newest_lease) = open(&options, &clock)?;
        Kv::start(state, newest_lease, &options, clock)
    }

    /// A store on a log that is open.
    pub(super) fn start(
        state: State,
        newest_lease: u64,
        options: &Options,
        clock: Clock,
    ) -> Result<Kv, Error> {
        let durable = options.data_dir.is_some();
        let shared = Arc::new(Shared::new(state));
        let (sender, queue) = mpsc::channel(options.queue_length.max(1));
        let writer = Writer {
            shared: shared.clone(),
            queue,
            clock: clock.clone(),
            durable,
            failed: None,
            superfluous: Superfluous::default(),
            newest_lease,
        };
        let writer = if durable {
            let thread = std::thread::Builder::new().name("etcd-writer".into());
            let handle = thread.spawn(move || writer.run()).map_err(|error| Error::Io(error.to_string()))?;
            WriterPlace::Thread(Some(handle))
        } else {
            WriterPlace::Here(Mutex::new(writer))
        };
        let (queue, submitted, expiry) = (Some(sender), AtomicU64::new(0), OnceLock::new());
        let kv = Kv(Arc::new(Inner {
            shared: shared.clone(),
            clock: clock.clone(),
            queue,
            submitted,
            writer,
            expiry,
        }));
        let expiry = tokio::spawn(lease::expire(shared, kv.downgrade(), clock));
        let _ = kv.0.expiry.set(expiry.abort_handle());
        Ok(kv)
    }

    /// The newest committed revision.
    pub fn revision(&self) -> Revision {
        self.0.shared.read().revision
    }

    /// The oldest revision that can still be read; 0 before the first compaction.
    pub fn compact_revision(&self) -> Revision {
        self.0.shared.read().compact_revision
    }

    /// The key as it was at a revision (None: now), and the revision it was read at.
    ///
    /// # Errors
    /// [`Error::Compacted`], [`Error::FutureRevision`], [`Error::Io`], [`Error::Closed`].
    pub fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision), Error> {
        self.0.shared.get(key, at)
    }

    /// The revision of the key's last put; None if it does not exist. Costs no reading of the value.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn mod_revision(&self, key: &str) -> Result<Option<Revision>, Error> {
        let state = self.0.shared.read();
        state.log()?;
        Ok(state.index.find(key, state.revision).map(|(_, revision)| revision))
    }

    /// The keys that start with `prefix`, as they all were at one revision (None: now), in order, from the
    /// key `from` on (inclusive; None: from the first). `limit` bounds how many are returned, not how many
    /// are counted; with 0 they are only counted.
    ///
    /// # Errors
    /// [`Error::Compacted`], [`Error::FutureRevision`], [`Error::Io`], [`Error::Closed`].
    pub fn range(
        &self,
        prefix: &str,
        from: Option<&str>,
        limit: Option<usize>,
        at: Option<Revision>,
    ) -> Result<Range, Error> {
        self.0.shared.range(prefix, from, limit.unwrap_or(usize::MAX), at)
    }

    /// Whether there is no key that starts with `prefix`; costs one lookup, however many there are.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn is_empty(&self, prefix: &str) -> Result<bool, Error> {
        let state = self.0.shared.read();
        state.log()?;
        Ok(state.index.range(prefix, None, state.revision).next().is_none())
    }

    /// Compares the key's newest revision with `expect` and, if it matches, puts or deletes it: in one step,
    /// in one order for the whole store. Answers once the write is as durable as the store promises. Dropping
    /// the future does not take the write back.
    ///
    /// # Errors
    /// [`Error::LeaseNotFound`]; [`Error::Io`], after which it is uncertain whether the write stands, and no
    /// further one succeeds; [`Error::Closed`].
    pub async fn txn(&self, key: &str, expect: Expect, op: Op) -> Result<Txn, Error> {
        let write = Write { key: key.into(), expect, op };
        match self.0.write_here(write) {
            Ok(answer) => answer,
            Err(write) => self.submit(|reply| Request::Txn(write, reply)).await,
        }
    }

    /// Watches the keys that start with `prefix` for changes after a revision.
    ///
    /// # Errors
    /// [`Error::Compacted`] if changes after `after` are gone; [`Error::FutureRevision`] if it has not been
    /// reached; [`Error::Closed`].
    pub fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, Error> {
        let mut state = self.0.shared.write();
        state.log()?;
        let after = state.readable(Some(after))?;
        Ok(state.watchers.add(&self.0.shared, prefix, after))
    }

    /// Makes every watch of exactly this prefix deliver a batch that says how far it is, though nothing
    /// changed (etcd's `RequestProgress`). That batch's revision is at least what [`Kv::revision`] returned
    /// before.
    pub fn request_progress(&self, prefix: &str) {
        self.0.shared.read().watchers.request_progress(prefix);
    }

    /// Forgets the history before a revision: what was then superseded or deleted. What is live stays,
    /// whatever its age. A revision that is already compacted is no error; one not yet reached is.
    ///
    /// # Errors
    /// [`Error::FutureRevision`], [`Error::Io`], [`Error::Closed`].
    pub async fn compact(&self, before: Revision) -> Result<(), Error> {
        self.submit(|reply| Request::Compact { before, reply }).await?;
        // In steps, so that writes come in between.
        while self.submit(|reply| Request::Sweep { reply }).await? {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Makes a lease that expires after `ttl` unless it is kept alive. After a restart its time starts anew.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Closed`].
    pub async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, Error> {
        self.submit(|reply| Request::Grant { ttl, reply }).await
    }

    /// Starts the lease's time anew.
    ///
    /// # Errors
    /// [`Error::LeaseNotFound`].
    pub fn keep_alive(&self, lease: LeaseId) -> Result<(), Error> {
        self.0.shared.write().leases.keep_alive(lease, self.0.clock.elapsed())
    }

    /// Ends the lease and deletes the keys that hang on it, each with its own revision.
    ///
    /// # Errors
    /// [`Error::LeaseNotFound`], [`Error::Io`], [`Error::Closed`].
    pub async fn revoke_lease(&self, lease: LeaseId) -> Result<(), Error> {
        self.submit(|reply| Request::Revoke { lease, expired_at: None, reply }).await
    }

    /// Writes out what is to be written and closes the files. Every handle and watch answers
    /// [`Error::Closed`] to whatever comes later.
    pub async fn close(&self) {
        if let Err(error) = self.submit(|reply| Request::Close { reply }).await {
            tracing::debug!(%error, "the store was closed already, or had failed");
        }
    }

    /// Revokes a lease whose time was up at `now`, unless it has been kept alive meanwhile.
    pub(super) async fn expire_lease(&self, lease: LeaseId, now: Duration) -> Result<(), Error> {
        let expired_at = Some(now);
        self.submit(|reply| Request::Revoke { lease, expired_at, reply }).await
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(super) fn downgrade(&self) -> WeakKv {
        WeakKv(Arc::downgrade(&self.0))
    }

    async fn submit<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Request,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let queue = self.0.queue.as_ref().expect("only dropping takes it");
        queue.send(request(reply)).await.map_err(|_| Error::Closed)?;
        self.0.serve_here();
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

impl WeakKv {
    pub(super) fn upgrade(&self) -> Option<Kv> {
        self.0.upgrade().map(Kv)
    }
}

impl Inner {
    /// Without a thread of its own, the writer is run by whoever finds it idle. Nothing is left in the queue:
    /// whoever finds it at work has counted its request before, and the one at work looks at the count after.
    fn serve_here(&self) {
        self.submitted.fetch_add(1, Ordering::SeqCst);
        self.serve_waiting();
    }

    /// Writes at once, behind what waits, if the writer is idle and needs no thread; else gives the write
    /// back.
    fn write_here(&self, write: Write) -> Result<Result<Txn, Error>, Write> {
        let WriterPlace::Here(writer) = &self.writer else { return Err(write) };
        let Ok(mut writer) = writer.try_lock() else { return Err(write) };
        let answer = writer.write_now(write);
        drop(writer);
        // Whoever found it at work meanwhile relies on this.
        self.serve_waiting();
        Ok(answer)
    }

    fn serve_waiting(&self) {
        let WriterPlace::Here(writer) = &self.writer else { return };
        loop {
            let seen = self.submitted.load(Ordering::SeqCst);
            match writer.try_lock() {
                Ok(mut writer) => writer.drain(),
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().drain(),
                Err(TryLockError::WouldBlock) => return,
            }
            if self.submitted.load(Ordering::SeqCst) == seen {
                return;
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(expiry) = self.expiry.get() {
            expiry.abort();
        }
        drop(self.queue.take());
        if let WriterPlace::Thread(thread) = &mut self.writer
            && let Some(thread) = thread.take()
        {
            // It ends with the batch it is at.
            let _ = thread.join();
        }
        self.shared.close();
    }
}

/// The log in sled: records under `r` and the revision, big-endian, so that they lie in revision order; facts
/// under `f` and their name.
///
/// One `insert` is one record. sled recovers a prefix of what one thread wrote, so no batch is needed to keep
/// records together; and its batches take a lock that all sleds of the process share.
#[derive(Debug)]
struct SledLog {
    db: sled::Db,
    /// Released after sled has closed its files.
    _lock: Option<DirLock>,
}

const RECORDS: u8 = b'r';
const FACTS: u8 = b'f';

impl Log for SledLog {
    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, Error> {
        let record = sled::IVec::from(record);
        self.db.insert(record_key(revision), record.clone()).map_err(failure)?;
        Ok(Bytes::from_owner(record))
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>, Error> {
        let record = self.db.get(record_key(revision)).map_err(failure)?;
        Ok(record.map(Bytes::from_owner))
    }

    fn remove(&self, revision: Revision) -> Result<(), Error> {
        self.db.remove(record_key(revision)).map(drop).map_err(failure)
    }

    fn set_fact(&self, name: &str, value: Option<u64>) -> Result<(), Error> {
        let key = [&[FACTS], name.as_bytes()].concat();
        match value {
            Some(value) => self.db.insert(key, &value.to_be_bytes()).map(drop).map_err(failure),
            None => self.db.remove(key).map(drop).map_err(failure),
        }
    }

    fn facts(&self, prefix: &str) -> Result<Vec<(String, u64)>, Error> {
        let read = |fact: sled::Result<(sled::IVec, sled::IVec)>| {
            let (key, value) = fact.map_err(failure)?;
            let value =
                <[u8; 8]>::try_from(&*value).map_err(|_| Error::Corrupt("a fact is damaged".into()))?;
            Ok((String::from_utf8_lossy(&key[1..]).into_owned(), u64::from_be_bytes(value)))
        };
        self.db.scan_prefix([&[FACTS], prefix.as_bytes()].concat()).map(read).collect()
    }

    fn flush(&self) -> Result<(), Error> {
        self.db.flush().map(drop).map_err(failure)
    }

    fn replay(&self, visit: &mut dyn FnMut(Revision, Bytes) -> Result<(), Error>) -> Result<(), Error> {
        for record in self.db.scan_prefix([RECORDS]) {
            let (key, record) = record.map_err(failure)?;
            let revision = <[u8; 8]>::try_from(&key[1..]);
            let revision = revision.map_err(|_| Error::Corrupt("a revision is damaged".into()))?;
            visit(u64::from_be_bytes(revision), Bytes::from_owner(record))?;
        }
        Ok(())
    }
}

fn record_key(revision: Revision) -> [u8; 9] {
    let mut key = [RECORDS; 9];
    key[1..].copy_from_slice(&revision.to_be_bytes());
    key
}

/// Opens the log and reads what it holds; sled's known start-up faults are recovered from on the way.
fn open(options: &Options, clock: &Clock) -> Result<(State, u64), Error> {
    let Some(data_dir) = &options.data_dir else {
        let overflow = Overflow::new(|| Ok(Arc::new(Segments::new(recovery::temporary_dir()?)?)));
        return read_state(Arc::new(overflow), options.recent_bytes, clock.elapsed());
    };
    let lock = recovery::while_locked(clock, || DirLock::acquire(data_dir))?;
    recovery::remove_unfinished_snapshots(data_dir)?;
    let open = || {
        let lock = Some(lock.try_clone()?);
        unasserted(|| {
            let log = Arc::new(open_sled(data_dir, lock, options)?);
            recovery::make_private(data_dir);
            read_state(log, options.recent_bytes, clock.elapsed())
        })
    };
    match recovery::while_locked(clock, open) {
        Err(Error::Corrupt(damage)) => {
            let copy = recovery::back_up(data_dir)?;
            let copied_to = copy.display();
            tracing::warn!(%damage, %copied_to, "the store is damaged: trying without its snapshots");
            recovery::remove_snapshots(data_dir)?;
            recovery::while_locked(clock, open).map_err(|error| recovery::describe(error, data_dir, &copy))
        }
        opened => opened,
    }
}

fn open_sled(dir: &Path, lock: Option<DirLock>, options: &Options) -> Result<SledLog, Error> {
    let config = sled::Config::new()
        .path(dir)
        .cache_capacity(options.page_cache_bytes.max(256))
        // The writer flushes when it has to.
        .flush_every_ms(None);
    let db = config.open().map_err(|error| match error {
        sled::Error::Io(error) if error.to_string().contains("could not acquire lock") => {
            Error::Locked { data_dir: dir.to_owned(), process: None }
        }
        error => failure(error),
    })?;
    Ok(SledLog { db, _lock: lock })
}

/// sled asserts where it should answer, when what it reads makes no sense. Nothing of the attempt is kept.
fn unasserted<T>(attempt: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let attempted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
    attempted.unwrap_or_else(|_| Err(Error::Corrupt("sled cannot make sense of it".into())))
}

/// What a log holds, and the number of the newest lease ever granted.
pub(super) fn read_state(
    log: Arc<dyn Log>,
    recent_bytes: usize,
    now: Duration,
) -> Result<(State, u64), Error> {
    let fact = |name| Ok::<_, Error>(log.facts(name)?.first().map_or(0, |(_, value)| *value));
    let (compact_revision, newest_lease) = (fact(COMPACT_REVISION)?, fact(NEWEST_LEASE)?);
    let mut leases = Leases::default();
    for (name, milliseconds) in log.facts(LEASE)? {
        let lease = name[LEASE.len()..].parse().map_err(|_| Error::Corrupt("a lease is damaged".into()))?;
        leases.insert(LeaseId(lease), Duration::from_millis(milliseconds), now);
    }
    let mut state = State {
        // Of an empty log: 1, as of an empty etcd. All after a compaction may be deletions, and gone.
        revision: compact_revision.max(1),
        compact_revision,
        index: Default::default(),
        recent: Recent::new(0, 0),
        leases,
        watchers: Default::default(),
        log: Some(log.clone()),
    };
    state::replay(&*log, &mut state)?;
    state.recent = Recent::new(state.revision + 1, recent_bytes);
    // What a compaction had not got to when the store was closed.
    let mut superfluous = Superfluous::default();
    superfluous.extend(state.index.compact(compact_revision));
    while superfluous.remove(usize::MAX, &*log)? {}
    Ok((state, newest_lease))
}

fn failure(error: sled::Error) -> Error {
    match error {
        sled::Error::Io(error) => Error::Io(error.to_string()),
        other => Error::Corrupt(other.to_string()),
    }
}
