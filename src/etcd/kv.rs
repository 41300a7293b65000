//! The store's handle.
//! Next: src/etcd/writer.rs

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use sync::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;

use super::device::{self, Device};
use super::gathering::Gathering;
use super::image::StoreImage;
use super::opening::{self, Opened};
use super::request::{Pending, Request, WorkJob};
use super::salvage::Recovery;
use super::staged::Write;
use super::state::Shared;
use super::sweep::Superfluous;
use super::tasks;
use super::transaction::Transaction;
use super::writer::Writer;
use super::{
    Expect, KeySpan, KeyValue, LeaseId, LeaseStatus, Op, Options, Range, Revision, StoreError, Txn, Watch,
};
use clock::Clock;

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
    /// Of leases, and of a disk that failed.
    tasks: OnceLock<[AbortHandle; 2]>,
    recovery: Option<Recovery>,
}

/// Where the writer works.
#[derive(Debug)]
enum WriterPlace {
    /// With a data dir: on its own thread, because a flush blocks. What arrives meanwhile is the next batch.
    Thread(Option<JoinHandle<()>>),
    /// In memory nothing blocks: whoever submits does the work, for others as well who submit meanwhile. That
    /// saves two thread switches a write, and makes a cluster on a stepped clock deterministic.
    Here(Box<Mutex<Writer>>),
}

impl Kv {
    /// Opens the store, or makes it. Blocks while it reads what is there.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::Corrupt`], [`StoreError::Lost`], [`StoreError::Io`].
    ///
    /// # Panics
    /// Outside of a tokio runtime, which has to run the expiry of leases.
    pub fn open(options: Options, clock: Clock) -> Result<Kv, StoreError> {
        Kv::open_on(device::of(options.unsafe_no_fsync), options, clock)
    }

    pub(super) fn open_on(device: Arc<dyn Device>, options: Options, clock: Clock) -> Result<Kv, StoreError> {
        let opened = opening::open(&options, &clock, device)?;
        Kv::start(opened, &options, clock)
    }

    /// A store on a log that is open.
    pub(super) fn start(opened: Opened, options: &Options, clock: Clock) -> Result<Kv, StoreError> {
        let durable = options.data_dir.is_some();
        let Opened { state, sled, newest_lease, home, recovery } = opened;
        let shared = Arc::new(Shared::new(state));
        let (sender, queue) = mpsc::channel(options.queue_length.max(1));
        let writer = Writer {
            shared: shared.clone(),
            queue,
            clock: clock.clone(),
            durable,
            superfluous: Superfluous::default(),
            newest_lease,
            home,
            sled,
            rewrite: None,
            rewrite_bytes: options.rewrite_bytes,
            new_bytes: 0,
            gathering: Gathering::default(),
        };
        let writer = if durable {
            let thread = std::thread::Builder::new().name("etcd-writer".into());
            let handle =
                thread.spawn(move || writer.run()).map_err(|error| StoreError::Io(error.to_string()))?;
            WriterPlace::Thread(Some(handle))
        } else {
            WriterPlace::Here(Box::new(Mutex::new(writer)))
        };
        let (queue, submitted, tasks) = (Some(sender), AtomicU64::new(0), OnceLock::new());
        let kv = Kv(Arc::new(Inner {
            shared: shared.clone(),
            clock: clock.clone(),
            queue,
            submitted,
            writer,
            tasks,
            recovery,
        }));
        let weak = kv.downgrade();
        let expire = move |lease, now| weak.clone().expire_lease(lease, now);
        let expiry = clock.spawn(tasks::expire_leases(shared.clone(), clock.named("etcd: leases"), expire));
        let weak = kv.downgrade();
        let heal = move || weak.clone().heal();
        let healing = clock.spawn(tasks::heal(shared, clock.named("etcd: healing"), heal));
        let _ = kv.0.tasks.set([expiry.abort_handle(), healing.abort_handle()]);
        Ok(kv)
    }

    /// What was lost and done without when the store was opened with [`Options::recover`].
    pub fn recovery(&self) -> Option<&Recovery> {
        self.0.recovery.as_ref()
    }

    /// Whether it takes writes.
    ///
    /// # Errors
    /// Why not: [`StoreError::Closed`], or what a write failed with.
    pub fn writable(&self) -> Result<(), StoreError> {
        let state = self.0.shared.read();
        state.log()?;
        state.failed.clone().map_or(Ok(()), Err)
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
    /// [`StoreError::Compacted`], [`StoreError::FutureRevision`], [`StoreError::Io`], [`StoreError::Closed`].
    pub fn get(&self, key: &str, at: Option<Revision>) -> Result<(Option<KeyValue>, Revision), StoreError> {
        self.0.shared.get(key, at)
    }

    /// The revision of the key's last put; None if it does not exist. Costs no reading of the value.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub fn mod_revision(&self, key: &str) -> Result<Option<Revision>, StoreError> {
        let state = self.0.shared.read();
        state.log()?;
        Ok(state.index.find(key, state.revision).map(|(_, revision)| revision))
    }

    /// The keys that start with `prefix`, as they all were at one revision (None: now), in order, from the
    /// key `from` on (inclusive; None: from the first). `limit` bounds how many are returned, not how many
    /// are counted; with 0 they are only counted.
    ///
    /// # Errors
    /// [`StoreError::Compacted`], [`StoreError::FutureRevision`], [`StoreError::Io`], [`StoreError::Closed`].
    pub fn range(
        &self,
        prefix: &str,
        from: Option<&str>,
        limit: Option<usize>,
        at: Option<Revision>,
    ) -> Result<Range, StoreError> {
        self.0.shared.range(&KeySpan::prefix(prefix), from, limit.unwrap_or(usize::MAX), at)
    }

    /// As [`Kv::range`], of any keys that lie side by side.
    ///
    /// # Errors
    /// As [`Kv::range`].
    pub fn range_of(
        &self,
        span: &KeySpan<'_>,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<Range, StoreError> {
        self.0.shared.range(span, None, limit, at)
    }

    /// Whether there is no key that starts with `prefix`; costs one lookup, however many there are.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub fn is_empty(&self, prefix: &str) -> Result<bool, StoreError> {
        let state = self.0.shared.read();
        state.log()?;
        Ok(state.index.range(&KeySpan::prefix(prefix), None, state.revision).next().is_none())
    }

    /// Compares the key's newest revision with `expect` and, if it matches, puts or deletes it: in one step,
    /// in one order for the whole store. Answers once the write is as durable as the store promises. Dropping
    /// the future does not take the write back.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`]; [`StoreError::Io`], after which the write does not stand, and no
    /// further one succeeds until the disk takes some again ([`Kv::writable`]); [`StoreError::Closed`].
    pub async fn txn(&self, key: &str, expect: Expect, op: Op) -> Result<Txn, StoreError> {
        let write = Write { key: key.into(), expect, op };
        match self.0.write_here(write) {
            Ok(answer) => answer,
            Err(write) => self.submit(|reply| Request::Write(Pending::Write(write, reply))).await,
        }
    }

    /// Does `work` in one step: nobody else writes meanwhile, and what it has written has one revision. If it
    /// answers with an error, nothing is written. Answers as [`Kv::txn`] does, once it is durable.
    ///
    /// # Errors
    /// Those of `work`; [`StoreError::Io`] and [`StoreError::Closed`] as of [`Kv::txn`].
    pub async fn transact<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let _busy = self.0.clock.busy();
        let (reply, answer) = oneshot::channel();
        self.enqueue(Request::Write(Pending::Work(Box::new(WorkJob { work, reply })))).await?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Watches the keys that start with `prefix` for changes after a revision.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] if changes after `after` are gone; [`StoreError::FutureRevision`] if it has
    /// not been reached; [`StoreError::Closed`].
    pub fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.watch_of(KeySpan::prefix(prefix), after)
    }

    /// As [`Kv::watch`], of any keys that lie side by side.
    ///
    /// # Errors
    /// As [`Kv::watch`].
    pub fn watch_of(&self, span: KeySpan<'_>, after: Revision) -> Result<Watch, StoreError> {
        self.0.shared.watch(span, after, Arc::default(), false)
    }

    /// As [`Kv::watch_of`]; `notify` is told of news, and may be that of other watches too. It may begin with
    /// the changes at the compacted revision itself, of which nobody knows what was there before.
    ///
    /// # Errors
    /// As [`Kv::watch`].
    pub fn watch_notifying(
        &self,
        span: KeySpan<'_>,
        after: Revision,
        notify: Arc<Notify>,
    ) -> Result<Watch, StoreError> {
        self.0.shared.watch(span, after, notify, true)
    }

    /// Makes every watch of exactly this prefix deliver a batch that says how far it is, though nothing
    /// changed (etcd's `RequestProgress`): at least at what [`Kv::revision`] returned before.
    pub fn request_progress(&self, prefix: &str) {
        self.0.shared.read().watchers.request_progress(prefix);
    }

    /// Forgets what was superseded or deleted before a revision, and nothing that is live. One that is
    /// compacted is no error, one to come is. What that frees leaves the disk when the files have grown much.
    ///
    /// # Errors
    /// [`StoreError::FutureRevision`], [`StoreError::Io`], [`StoreError::Closed`].
    pub async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        self.submit(|reply| Request::Compact { before, reply }).await?;
        // In steps, so that writes come in between.
        while self.submit(|reply| Request::Sweep { reply }).await? {
            self.0.clock.yield_now().await;
        }
        while self.submit(|reply| Request::Shrink { reply }).await? {
            self.0.clock.yield_now().await;
        }
        Ok(())
    }

    /// Makes a lease that expires after `ttl` unless it is kept alive. After a restart its time starts anew.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Closed`].
    pub async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.submit(|reply| Request::Grant { ttl, name: None, reply }).await
    }

    /// As [`Kv::grant_lease`], for a lease that is called by a number of the caller's.
    ///
    /// # Errors
    /// [`StoreError::LeaseExists`], [`StoreError::Io`], [`StoreError::Closed`].
    pub async fn grant_named_lease(&self, name: u64, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.submit(|reply| Request::Grant { ttl, name: Some(name), reply }).await
    }

    /// The lease that is called so.
    pub fn lease_named(&self, name: u64) -> Option<LeaseId> {
        self.0.shared.read().leases.named(name)
    }

    /// What a lease is called: a number that follows from its own, unless it was given a name.
    pub fn lease_name(&self, lease: LeaseId) -> u64 {
        self.0.shared.read().leases.name(lease)
    }

    /// What is to be told of a lease; None if there is no such lease.
    pub fn lease_status(&self, lease: LeaseId) -> Option<LeaseStatus> {
        self.0.shared.read().leases.status(lease, self.0.clock.elapsed())
    }

    /// All leases, in the order in which they were granted.
    pub fn leases(&self) -> Vec<LeaseStatus> {
        let now = self.0.clock.elapsed();
        let state = self.0.shared.read();
        state.leases.all().filter_map(|(lease, _)| state.leases.status(lease, now)).collect()
    }

    /// The keys that hang on a lease.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`].
    pub fn lease_keys(&self, lease: LeaseId) -> Result<Vec<Arc<str>>, StoreError> {
        self.0.shared.read().leases.keys(lease)
    }

    /// Has somebody told how long the disk takes; the first who wants to know is. In memory nothing is told.
    pub fn observe_disk(&self, observer: &super::DiskObserver) {
        self.0.shared.disk_times.observe(observer);
    }

    /// Starts the lease's time anew.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`].
    pub fn keep_alive(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.0.shared.write().leases.keep_alive(lease, self.0.clock.elapsed())
    }

    /// Ends the lease and deletes the keys that hang on it, each with its own revision.
    ///
    /// # Errors
    /// [`StoreError::LeaseNotFound`], [`StoreError::Io`], [`StoreError::Closed`].
    pub async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.submit(|reply| Request::Revoke { lease, expired_at: None, reply }).await
    }

    /// A store in memory that begins with this one's past, up to a revision (None: to now), and has a future
    /// of its own; taken at one revision, whoever writes meanwhile. `clock` counts from the same beginning as
    /// this store's ([`Clock::fork`]). Costs next to nothing however many keys there are, but for a look at
    /// each key when a revision is given. What hung on a lease that has ended since then is in the fork for a
    /// moment only.
    ///
    /// # Errors
    /// [`StoreError::Compacted`], [`StoreError::FutureRevision`] for the revision; [`StoreError::Closed`].
    pub fn fork(&self, at: Option<Revision>, clock: Clock) -> Result<Kv, StoreError> {
        Kv::start(self.0.shared.open_fork(at, &clock)?, &Options::default(), clock)
    }

    /// All that is in it, as it is at one revision.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Closed`].
    pub fn image(&self) -> Result<StoreImage, StoreError> {
        StoreImage::of(&self.0.shared.fork()?, self.0.clock.elapsed())
    }

    /// A store in memory that begins with what is in an image.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it cannot be.
    pub fn load(image: &StoreImage, options: Options, clock: Clock) -> Result<Kv, StoreError> {
        let opened = image.open(&options, clock.elapsed())?;
        Kv::start(opened, &Options { data_dir: None, ..options }, clock)
    }

    /// Writes out what is to be written and closes the files. Every handle and watch answers
    /// [`StoreError::Closed`] to whatever comes later.
    pub async fn close(&self) {
        if let Err(error) = self.submit(|reply| Request::Close { reply }).await {
            tracing::debug!(%error, "the store was closed already, or had failed");
        }
    }

    /// How many requests the writer has yet to look at.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let queue = self.0.queue.as_ref().expect("only dropping takes it");
        queue.max_capacity() - queue.capacity()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(super) fn downgrade(&self) -> WeakKv {
        WeakKv(Arc::downgrade(&self.0))
    }

    async fn submit<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request,
    ) -> Result<T, StoreError> {
        // The writer may be a thread of its own.
        let _busy = self.0.clock.busy();
        let (reply, answer) = oneshot::channel();
        self.enqueue(request(reply)).await?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn enqueue(&self, request: Request) -> Result<(), StoreError> {
        let queue = self.0.queue.as_ref().expect("only dropping takes it");
        queue.send(request).await.map_err(|_| StoreError::Closed)?;
        self.0.serve_here();
        Ok(())
    }
}

impl WeakKv {
    pub(super) fn upgrade(&self) -> Option<Kv> {
        self.0.upgrade().map(Kv)
    }

    /// Starts to write again after a failed write, if that is possible by now.
    async fn heal(self) -> Result<(), StoreError> {
        self.upgrade().ok_or(StoreError::Closed)?.submit(|reply| Request::Heal { reply }).await
    }

    /// Revokes a lease whose time was up at `now`, unless it has been kept alive meanwhile.
    async fn expire_lease(self, lease: LeaseId, now: Duration) -> Result<(), StoreError> {
        let kv = self.upgrade().ok_or(StoreError::Closed)?;
        kv.submit(|reply| Request::Revoke { lease, expired_at: Some(now), reply }).await
    }
}

impl Inner {
    /// Without a thread of its own, the writer is run by whoever finds it idle. Nothing is left in the queue:
    /// whoever finds it at work has counted its request before, and the one at work looks at the count after.
    fn serve_here(&self) {
        self.submitted.fetch_add(1, Ordering::SeqCst);
        self.serve_waiting();
    }

    /// Writes at once, behind what waits, if the writer is idle and has no thread; else gives it back.
    fn write_here(&self, write: Write) -> Result<Result<Txn, StoreError>, Write> {
        let WriterPlace::Here(writer) = &self.writer else { return Err(write) };
        let Some(mut writer) = writer.try_lock() else { return Err(write) };
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
            let Some(mut idle) = writer.try_lock() else { return };
            idle.drain();
            drop(idle);
            if self.submitted.load(Ordering::SeqCst) == seen {
                return;
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tasks.get().into_iter().flatten().for_each(AbortHandle::abort);
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
