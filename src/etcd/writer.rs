//! The writer: the one place where a revision is born.
//! Next: src/etcd/watch.rs
//!
//! It takes what waits, checks each write against the state that the ones before it leave, writes all of them
//! to the log, makes the log durable once, and only then shows them to readers and watches and answers. In
//! memory there is nothing to make durable: changes are logged when they leave the recent ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::disk_times::DiskStep;
use super::facts::{NEWEST_LEASE, lease_fact, lease_name_fact};
use super::gathering::{Gathering, PAUSE};
use super::log::Log;
use super::opening::Home;
use super::promise::Promise;
use super::record;
use super::request::{Pending, Reply, Request, WriteAnswer};
use super::rewrite::Rewrite;
use super::sled_log::SledLog;
use super::staged::{Staged, Write, WriteVerdict};
use super::state::Shared;
use super::sweep::Superfluous;
use super::transaction::Transaction;
use super::{EventKind, Expect, KeyEvent, LeaseId, Op, StoreError, Txn};
use clock::Clock;

/// How many writes share one flush at most, so that the first of them does not wait for ever.
const BATCH_TXNS: usize = 256;

/// The only one that changes the log and the state.
#[derive(Debug)]
pub(super) struct Writer {
    pub shared: Arc<Shared>,
    /// Bounded: whoever submits waits for room.
    pub queue: mpsc::Receiver<Request>,
    pub clock: Clock,
    /// Whether what is acknowledged must be on disk.
    pub durable: bool,
    /// Records nobody can see any more.
    pub superfluous: Superfluous,
    pub newest_lease: u64,
    /// The data dir; None in memory.
    pub home: Option<Home>,
    /// The log, if it is one that is written anew.
    pub sled: Option<Arc<SledLog>>,
    pub rewrite: Option<Rewrite>,
    /// From which size on the log is written anew.
    pub rewrite_bytes: u64,
    /// What its files took when it was new.
    pub new_bytes: u64,
    pub gathering: Gathering,
}

impl Writer {
    /// Serves until all handles are gone. Blocks: for a thread of its own.
    pub(super) fn run(mut self) {
        while let Some(request) = self.queue.blocking_recv() {
            self.serve(request);
        }
    }

    /// Serves what waits, and returns.
    pub(super) fn drain(&mut self) {
        while let Ok(request) = self.queue.try_recv() {
            self.serve(request);
        }
    }

    /// What waits, and then this write.
    pub(super) fn write_now(&mut self, write: Write) -> Result<Txn, StoreError> {
        self.drain();
        let answer = self.write(vec![write]).and_then(|mut answers| answers.remove(0));
        self.make_room();
        answer
    }

    fn serve(&mut self, request: Request) {
        let mut txns = Vec::new();
        let mut next = Some(request);
        while let Some(request) = next {
            match request {
                Request::Write(write) => txns.push(write),
                other => {
                    // Whatever is not a write comes after the writes before it.
                    self.commit(std::mem::take(&mut txns));
                    self.serve_other(other);
                    break;
                }
            }
            next = if txns.len() < BATCH_TXNS { self.next(txns.len()) } else { None };
        }
        self.commit(txns);
        self.make_room();
    }

    /// What waits, or comes soon.
    fn next(&mut self, gathered: usize) -> Option<Request> {
        loop {
            match self.queue.try_recv() {
                Err(TryRecvError::Empty) if self.gathering.is_worth_a_pause(gathered) => {
                    self.clock.block_thread(PAUSE);
                }
                received => return received.ok(),
            }
        }
    }

    fn serve_other(&mut self, request: Request) {
        match request {
            Request::Write(write) => self.commit(vec![write]),
            Request::Compact { before, reply } => respond(reply, self.compact(before)),
            Request::Sweep { reply } => respond(reply, self.sweep()),
            Request::Grant { ttl, name, reply } => respond(reply, self.grant(ttl, name)),
            Request::Revoke { lease, expired_at, reply } => respond(reply, self.revoke(lease, expired_at)),
            Request::Shrink { reply } => respond(reply, self.shrink()),
            Request::Heal { reply } => respond(reply, self.heal()),
            Request::Close { reply } => respond(reply, self.close()),
        }
    }

    /// One batch: one flush for all of them, and the answers after it.
    fn commit(&mut self, pending: Vec<Pending>) {
        if pending.is_empty() {
            return;
        }
        let start = self.clock.elapsed();
        let mut answers = Vec::with_capacity(pending.len());
        let failed = self.write_pending(pending, &mut answers).err();
        let taken = self.clock.elapsed().saturating_sub(start);
        self.gathering.note(answers.len() + self.queue.len(), taken);
        if self.durable {
            self.shared.disk_times.tell(DiskStep::Commit, taken);
        }
        answers.into_iter().for_each(|answer| answer.send(failed.as_ref()));
    }

    /// An error: nothing of all this stands.
    fn write_pending(
        &mut self,
        pending: Vec<Pending>,
        answers: &mut Vec<WriteAnswer>,
    ) -> Result<(), StoreError> {
        let mut staged = self.begin();
        for pending in pending {
            let answer = match &mut staged {
                Ok(current) => self.stage(current, pending),
                Err(_) => Ok(WriteAnswer::Unheard(pending)),
            };
            match answer {
                Ok(answer) => answers.push(answer),
                Err((answer, error)) => {
                    answers.push(answer);
                    staged = Err(error);
                }
            }
        }
        self.finish(staged?)
    }

    /// An error: the log is torn.
    fn stage(&self, staged: &mut Staged, pending: Pending) -> Result<WriteAnswer, (WriteAnswer, StoreError)> {
        match pending {
            Pending::Write(write, reply) => match self.stage_write(staged, write) {
                Ok(answer) => Ok(WriteAnswer::Write(reply, answer)),
                Err(error) => Err((WriteAnswer::Write(reply, Err(error.clone())), error)),
            },
            Pending::Work(work) => {
                let mut transaction = Transaction::new(&self.shared, staged);
                let (stands, told) = work.run(&mut transaction);
                let events = transaction.into_events();
                if !stands || events.is_empty() {
                    return Ok(WriteAnswer::Work(told));
                }
                match staged.append_group(events) {
                    Ok(()) => Ok(WriteAnswer::Work(told)),
                    Err(error) => Err((WriteAnswer::Work(told), self.fail(error))),
                }
            }
        }
    }

    fn stage_write(&self, staged: &mut Staged, write: Write) -> Result<Result<Txn, StoreError>, StoreError> {
        Ok(match staged.check(&self.shared, write) {
            Ok(WriteVerdict::Write(event)) => {
                let previous = event.previous.clone();
                let revision = staged.append(event).map_err(|error| self.fail(error))?;
                Ok(Txn::Committed { revision, previous })
            }
            Ok(WriteVerdict::Refuse(current)) => Ok(Txn::Conflict { current }),
            Err(error) => Err(error),
        })
    }

    fn begin(&self) -> Result<Staged, StoreError> {
        let log = self.log()?;
        let next = self.shared.read().revision + 1;
        Ok(Staged::new(self.durable.then_some(log), next))
    }

    fn finish(&mut self, staged: Staged) -> Result<(), StoreError> {
        if staged.events.is_empty() {
            return Ok(());
        }
        if let Some(log) = &staged.log {
            self.flush(&**log)?;
            self.promise(&staged)?;
        }
        self.publish(staged);
        Ok(())
    }

    fn write(&mut self, writes: Vec<Write>) -> Result<Vec<Result<Txn, StoreError>>, StoreError> {
        let mut staged = self.begin()?;
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(self.stage_write(&mut staged, write)?);
        }
        self.finish(staged)?;
        Ok(answers)
    }

    /// Notes that these changes are about to be acknowledged.
    fn promise(&mut self, staged: &Staged) -> Result<(), StoreError> {
        let Some(home) = &self.home else { return Ok(()) };
        let mut promise = self.shared.read().promise(self.newest_lease);
        for (event, checksum) in staged.events.iter().zip(&staged.checksums) {
            promise.revision = event.revision();
            promise.changes.add(event.revision(), *checksum);
        }
        home.promises.note(&promise).map_err(|error| self.fail(error))
    }

    pub(super) fn promise_durably(&mut self, promise: &Promise) -> Result<(), StoreError> {
        let Some(home) = &self.home else { return Ok(()) };
        home.promises.note_durably(promise).map_err(|error| self.fail(error))
    }

    /// From here on the changes exist.
    fn publish(&self, staged: Staged) {
        let mut state = self.shared.write();
        let woken = state.watchers.mark(&staged.events);
        let mut group = Vec::new();
        let mut events = staged.events.into_iter().zip(staged.checksums).peekable();
        while let Some((event, checksum)) = events.next() {
            let revision = event.revision();
            debug_assert_eq!(revision, state.revision + 1, "revisions have no gaps");
            let deleted = event.kind == EventKind::Delete;
            state.index.record(&event.kv.key, event.revision(), checksum, deleted);
            let before = event.previous.as_ref().and_then(|previous| previous.lease);
            if event.kv.lease.is_some() || before.is_some() {
                state.leases.attach(&event.kv.key, event.kv.lease);
            }
            self.clock.note_change();
            let is_last = events.peek().is_none_or(|(next, _)| next.revision() > revision);
            if is_last && group.is_empty() {
                state.recent.push(Arc::new([event]));
            } else {
                group.push(event);
                if !is_last {
                    continue;
                }
                state.index.record_group(revision, group.len());
                state.recent.push(std::mem::take(&mut group).into());
            }
            state.revision = revision;
        }
        drop(state);
        woken.iter().for_each(|watcher| watcher.wake());
    }

    /// Lets go of the oldest changes when memory is full. In memory they go to the log first, so that whoever
    /// looks for one finds it in one of the two; but not what compaction has made superfluous.
    fn make_room(&mut self) {
        let state = self.shared.read();
        let excess: Vec<Arc<[KeyEvent]>> = state.recent.excess().cloned().collect();
        let needed = |events: &Arc<[KeyEvent]>| -> Vec<KeyEvent> {
            let is_needed = |event: &&KeyEvent| state.index.knows(&event.kv.key, event.revision());
            events.iter().filter(is_needed).cloned().collect()
        };
        let overflowing: Vec<Vec<KeyEvent>> =
            if self.durable { Vec::new() } else { excess.iter().map(needed).collect() };
        drop(state);
        for events in overflowing {
            let Some(revision) = events.first().map(KeyEvent::revision) else { continue };
            let record = record::encode_all(events.iter());
            let written = self.log().and_then(|log| log.append(revision, record));
            if let Err(error) = written {
                // It stays in memory, and nothing more comes in.
                self.fail(error);
                return;
            }
        }
        if !excess.is_empty() {
            self.shared.write().recent.drop_oldest(excess.len());
        }
    }

    fn grant(&mut self, ttl: Duration, name: Option<u64>) -> Result<LeaseId, StoreError> {
        let log = self.log()?;
        let lease = self.free_lease(name)?;
        let milliseconds = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let written = log.set_fact(NEWEST_LEASE, Some(lease.0));
        // Before the lease, which then has its name whatever happens in between.
        let written = written.and_then(|()| match name {
            Some(_) => log.set_fact(&lease_name_fact(lease), name),
            None => Ok(()),
        });
        let written = written.and_then(|()| log.set_fact(&lease_fact(lease), Some(milliseconds)));
        written.map_err(|error| self.fail(error))?;
        self.flush(&*log)?;
        self.newest_lease = lease.0;
        let mut state = self.shared.write();
        state.leases.insert(lease, ttl, self.clock.elapsed());
        if let Some(name) = name {
            state.leases.set_name(lease, name);
        }
        drop(state);
        self.promise_state()?;
        self.shared.leases_changed.notify_one();
        Ok(lease)
    }

    /// The number of the next lease: one that is nobody's name.
    fn free_lease(&self, name: Option<u64>) -> Result<LeaseId, StoreError> {
        let state = self.shared.read();
        if let Some(lease) = name.and_then(|name| state.leases.named(name)) {
            return Err(StoreError::LeaseExists(lease));
        }
        let mut number = self.newest_lease + 1;
        while state.leases.named(state.leases.name(LeaseId(number))).is_some() {
            number += 1;
        }
        Ok(LeaseId(number))
    }

    fn revoke(&mut self, lease: LeaseId, expired_at: Option<Duration>) -> Result<(), StoreError> {
        let keys = {
            let state = self.shared.read();
            if expired_at.is_some_and(|at| !state.leases.is_expired(lease, at)) {
                return Ok(());
            }
            state.leases.keys(lease)?
        };
        let writes = keys.into_iter().map(|key| Write { key, expect: Expect::Any, op: Op::Delete });
        self.write(writes.collect())?.into_iter().collect::<Result<Vec<_>, StoreError>>()?;
        // Last, so that after a crash in between the lease expires once more and finishes.
        let log = self.log()?;
        let mut promise = self.shared.read().promise(self.newest_lease);
        promise.leases[1] = self.shared.read().leases.tally_without(lease);
        self.promise_durably(&promise)?;
        let gone = log.set_fact(&lease_fact(lease), None);
        let gone = gone.and_then(|()| log.set_fact(&lease_name_fact(lease), None));
        gone.map_err(|error| self.fail(error))?;
        self.flush(&*log)?;
        self.shared.write().leases.remove(lease);
        self.promise_state()
    }

    fn promise_state(&mut self) -> Result<(), StoreError> {
        let Some(home) = &self.home else { return Ok(()) };
        let promise = self.shared.read().promise(self.newest_lease);
        home.promises.note(&promise).map_err(|error| self.fail(error))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        let log = self.shared.read().log()?;
        let flushed = self.flush(&*log);
        drop(log);
        self.rewrite = None;
        self.sled = None;
        self.shared.close();
        // With the last of it, the folder is free for others.
        self.home = None;
        flushed
    }

    pub(super) fn log(&self) -> Result<Arc<dyn Log>, StoreError> {
        let state = self.shared.read();
        let log = state.log()?;
        state.failed.clone().map_or(Ok(log), Err)
    }

    pub(super) fn flush(&mut self, log: &dyn Log) -> Result<(), StoreError> {
        if !self.durable {
            return Ok(());
        }
        let start = self.clock.elapsed();
        log.flush().map_err(|error| self.fail(error))?;
        let taken = self.clock.elapsed().saturating_sub(start);
        self.shared.disk_times.tell(DiskStep::Sync, taken);
        Ok(())
    }

    pub(super) fn fail(&self, error: StoreError) -> StoreError {
        tracing::error!(%error, "the store takes no more writes");
        self.shared.write().failed = Some(error.clone());
        self.shared.write_failed.notify_one();
        error
    }
}

fn respond<T>(reply: Reply<T>, answer: Result<T, StoreError>) {
    let _ = reply.send(answer);
}
