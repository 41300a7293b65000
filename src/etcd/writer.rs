//! The writer: the one place where a revision is born.
//! Next: src/etcd/watch.rs
//!
//! It takes what waits, checks each write against the state that the ones before it leave, writes all of them
//! to the log, makes the log durable once, and only then shows them to readers and watches and answers. In
//! memory there is nothing to make durable: changes are logged when they leave the recent ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::log::Log;
use super::record;
use super::state::Shared;
use super::sweep::Superfluous;
use super::{Error, Event, EventKind, Expect, KeyValue, LeaseId, Op, Revision, Txn};
use crate::clock::Clock;

/// How many writes share one flush at most, so that the first of them does not wait for ever.
const BATCH_TXNS: usize = 256;
/// How many superseded records one step of a compaction removes, so that writes wait only that long.
const SWEEP_RECORDS: usize = 64;
/// So many are looked through; of more there is a map.
const FEW_EVENTS: usize = 8;
/// The facts kept beside the records.
pub(super) const COMPACT_REVISION: &str = "compact-revision";
pub(super) const NEWEST_LEASE: &str = "newest-lease";
pub(super) const LEASE: &str = "lease/";

/// Where an answer goes. Whoever asked may have gone; the write stands all the same.
type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// What can be asked of the writer.
#[derive(Debug)]
pub(super) enum Request {
    Txn(Write, Reply<Txn>),
    Compact {
        before: Revision,
        reply: Reply<()>,
    },
    /// Removes a few of the records that compaction made superfluous; answers whether there are more.
    Sweep {
        reply: Reply<bool>,
    },
    Grant {
        ttl: Duration,
        reply: Reply<LeaseId>,
    },
    /// Deletes the lease's keys and the lease; with `expired_at`, only if its time was up then and still is.
    Revoke {
        lease: LeaseId,
        expired_at: Option<Duration>,
        reply: Reply<()>,
    },
    Close {
        reply: Reply<()>,
    },
}

/// One compare-and-write.
#[derive(Debug)]
pub(super) struct Write {
    pub key: Arc<str>,
    pub expect: Expect,
    pub op: Op,
}

/// The only one that changes the log and the state.
#[derive(Debug)]
pub(super) struct Writer {
    pub shared: Arc<Shared>,
    /// Bounded: whoever submits waits for room.
    pub queue: mpsc::Receiver<Request>,
    pub clock: Clock,
    /// Whether what is acknowledged must be on disk.
    pub durable: bool,
    /// Why nothing can be written any more: after a failed write nobody knows what is on disk.
    pub failed: Option<Error>,
    /// Records nobody can see any more.
    pub superfluous: Superfluous,
    pub newest_lease: u64,
}

/// Writes that are in the log, but that nobody has been shown yet.
struct Staged {
    /// None in memory, where only what memory has no room for is logged.
    log: Option<Arc<dyn Log>>,
    next: Revision,
    events: Vec<Event>,
    /// The newest of them for each key; empty while they are few.
    newest: HashMap<Arc<str>, usize>,
}

enum Verdict {
    Write(Event),
    /// The compare failed: this is there.
    Refuse(Option<KeyValue>),
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
    pub(super) fn write_now(&mut self, write: Write) -> Result<Txn, Error> {
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
                Request::Txn(write, reply) => txns.push((write, reply)),
                other => {
                    // Whatever is not a write comes after the writes before it.
                    self.commit(std::mem::take(&mut txns));
                    self.serve_other(other);
                    break;
                }
            }
            next = if txns.len() < BATCH_TXNS { self.queue.try_recv().ok() } else { None };
        }
        self.commit(txns);
        self.make_room();
    }

    fn serve_other(&mut self, request: Request) {
        match request {
            Request::Txn(write, reply) => self.commit(vec![(write, reply)]),
            Request::Compact { before, reply } => respond(reply, self.compact(before)),
            Request::Sweep { reply } => respond(reply, self.sweep()),
            Request::Grant { ttl, reply } => respond(reply, self.grant(ttl)),
            Request::Revoke { lease, expired_at, reply } => respond(reply, self.revoke(lease, expired_at)),
            Request::Close { reply } => respond(reply, self.close()),
        }
    }

    /// One batch: one flush for all of them, and the answers after it.
    fn commit(&mut self, txns: Vec<(Write, Reply<Txn>)>) {
        if txns.is_empty() {
            return;
        }
        let (writes, replies): (Vec<_>, Vec<_>) = txns.into_iter().unzip();
        let answers = match self.write(writes) {
            Ok(answers) => answers,
            Err(error) => replies.iter().map(|_| Err(error.clone())).collect(),
        };
        for (reply, answer) in replies.into_iter().zip(answers) {
            respond(reply, answer);
        }
    }

    fn write(&mut self, writes: Vec<Write>) -> Result<Vec<Result<Txn, Error>>, Error> {
        let log = self.log()?;
        let next = self.shared.read().revision + 1;
        let log_now = self.durable.then_some(log);
        let mut staged = Staged { log: log_now, next, events: Vec::new(), newest: HashMap::new() };
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(match staged.check(&self.shared, write) {
                Ok(Verdict::Write(event)) => {
                    let previous = event.previous.clone();
                    let revision = staged.append(event).map_err(|error| self.fail(error))?;
                    Ok(Txn::Committed { revision, previous })
                }
                Ok(Verdict::Refuse(current)) => Ok(Txn::Conflict { current }),
                Err(error) => Err(error),
            });
        }
        if !staged.events.is_empty() {
            if let Some(log) = &staged.log {
                self.flush(&**log)?;
            }
            self.publish(staged.events);
        }
        Ok(answers)
    }

    /// From here on the changes exist.
    fn publish(&self, events: Vec<Event>) {
        let mut state = self.shared.write();
        let woken = state.watchers.mark(&events);
        for event in events {
            state.revision = event.revision();
            state.index.record(&event.kv.key, event.revision(), event.kind == EventKind::Delete);
            let before = event.previous.as_ref().and_then(|previous| previous.lease);
            if event.kv.lease.is_some() || before.is_some() {
                state.leases.attach(&event.kv.key, event.kv.lease);
            }
            state.recent.push(event);
        }
        drop(state);
        woken.iter().for_each(|watcher| watcher.wake());
    }

    /// Lets go of the oldest changes when memory is full. In memory they go to the log first, so that whoever
    /// looks for one finds it in one of the two; but not what compaction has made superfluous.
    fn make_room(&mut self) {
        let state = self.shared.read();
        let excess: Vec<Event> = state.recent.excess().cloned().collect();
        let is_needed = |event: &&Event| state.index.knows(&event.kv.key, event.revision());
        let overflowing: Vec<&Event> =
            if self.durable { Vec::new() } else { excess.iter().filter(is_needed).collect() };
        drop(state);
        for event in overflowing {
            let written = self.log().and_then(|log| log.append(event.revision(), record::encode(event)));
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

    fn compact(&mut self, before: Revision) -> Result<(), Error> {
        let log = self.log()?;
        let compact_revision = {
            let state = self.shared.read();
            if before > state.revision {
                return Err(Error::FutureRevision { requested: before, current: state.revision });
            }
            state.compact_revision
        };
        if before <= compact_revision {
            return Ok(());
        }
        // First it is written down, then it is so: a restart must not bring back what was refused before.
        let written = log.set_fact(COMPACT_REVISION, Some(before));
        written.map_err(|error| self.fail(error))?;
        self.flush(&*log)?;
        let mut state = self.shared.write();
        state.compact_revision = before;
        self.superfluous.extend(state.index.compact(before));
        Ok(())
    }

    fn sweep(&mut self) -> Result<bool, Error> {
        let log = self.log()?;
        self.superfluous.remove(SWEEP_RECORDS, &*log).map_err(|error| self.fail(error))
    }

    fn grant(&mut self, ttl: Duration) -> Result<LeaseId, Error> {
        let log = self.log()?;
        let lease = LeaseId(self.newest_lease + 1);
        let milliseconds = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let written = log.set_fact(NEWEST_LEASE, Some(lease.0));
        let written = written.and_then(|()| log.set_fact(&lease_fact(lease), Some(milliseconds)));
        written.map_err(|error| self.fail(error))?;
        self.flush(&*log)?;
        self.newest_lease = lease.0;
        self.shared.write().leases.insert(lease, ttl, self.clock.elapsed());
        self.shared.leases_changed.notify_one();
        Ok(lease)
    }

    fn revoke(&mut self, lease: LeaseId, expired_at: Option<Duration>) -> Result<(), Error> {
        let keys = {
            let state = self.shared.read();
            if expired_at.is_some_and(|at| !state.leases.is_expired(lease, at)) {
                return Ok(());
            }
            state.leases.keys(lease)?
        };
        let writes = keys.into_iter().map(|key| Write { key, expect: Expect::Any, op: Op::Delete });
        self.write(writes.collect())?.into_iter().collect::<Result<Vec<_>, Error>>()?;
        // Last, so that after a crash in between the lease expires once more and finishes.
        let log = self.log()?;
        log.set_fact(&lease_fact(lease), None).map_err(|error| self.fail(error))?;
        self.flush(&*log)?;
        self.shared.write().leases.remove(lease);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        let log = self.shared.read().log()?;
        let flushed = self.flush(&*log);
        drop(log);
        self.shared.close();
        flushed
    }

    fn log(&self) -> Result<Arc<dyn Log>, Error> {
        let log = self.shared.read().log()?;
        self.failed.clone().map_or(Ok(log), Err)
    }

    fn flush(&mut self, log: &dyn Log) -> Result<(), Error> {
        if !self.durable {
            return Ok(());
        }
        log.flush().map_err(|error| self.fail(error))
    }

    fn fail(&mut self, error: Error) -> Error {
        tracing::error!(%error, "the store takes no more writes");
        self.failed = Some(error.clone());
        error
    }
}

impl Staged {
    /// Compares, and says what is to be written.
    fn check(&self, shared: &Shared, write: Write) -> Result<Verdict, Error> {
        let current = self.current(shared, &write.key)?;
        let found = current.as_ref().map_or(0, |kv| kv.mod_revision);
        let matches = match write.expect {
            Expect::ModRevision(expected) => expected == found,
            Expect::Any => true,
        };
        if !matches || (current.is_none() && write.op == Op::Delete) {
            return Ok(Verdict::Refuse(current));
        }
        if let Op::Put { lease: Some(lease), .. } = write.op
            && !shared.read().leases.contains(lease)
        {
            return Err(Error::LeaseNotFound(lease));
        }
        Ok(Verdict::Write(self.event(write, current)))
    }

    fn current(&self, shared: &Shared, key: &Arc<str>) -> Result<Option<KeyValue>, Error> {
        match self.newest(key) {
            Some(event) => Ok((event.kind == EventKind::Put).then(|| event.kv.clone())),
            None => Ok(shared.get(key, None)?.0),
        }
    }

    fn newest(&self, key: &Arc<str>) -> Option<&Event> {
        match self.events.len() > FEW_EVENTS {
            true => self.newest.get(key).map(|at| &self.events[*at]),
            false => self.events.iter().rev().find(|event| event.kv.key == *key),
        }
    }

    fn event(&self, write: Write, previous: Option<KeyValue>) -> Event {
        // The key that is there already, so that it is in memory once.
        let key = previous.as_ref().map_or(write.key, |kv| kv.key.clone());
        let mod_revision = self.next;
        let (kind, kv) = match write.op {
            Op::Put { value, lease } => {
                let create_revision = previous.as_ref().map_or(mod_revision, |kv| kv.create_revision);
                let version = previous.as_ref().map_or(1, |kv| kv.version + 1);
                (EventKind::Put, KeyValue { key, value, create_revision, mod_revision, version, lease })
            }
            Op::Delete => {
                let (value, create_revision, version, lease) = (Bytes::new(), 0, 0, None);
                (EventKind::Delete, KeyValue { key, value, create_revision, mod_revision, version, lease })
            }
        };
        Event { kind, kv, previous }
    }

    /// Writes to the log. A failure leaves it torn.
    fn append(&mut self, mut event: Event) -> Result<Revision, Error> {
        let revision = event.revision();
        if let Some(log) = &self.log {
            let record = log.append(revision, record::encode(&event))?;
            event.kv.value = record::value_of(&record, event.kv.key.len());
        }
        self.events.push(event);
        self.next += 1;
        if self.events.len() > FEW_EVENTS {
            let known = if self.newest.is_empty() { 0 } else { self.events.len() - 1 };
            let events = self.events.iter().enumerate().skip(known);
            self.newest.extend(events.map(|(at, event)| (event.kv.key.clone(), at)));
        }
        Ok(revision)
    }
}

pub(super) fn lease_fact(lease: LeaseId) -> String {
    format!("{LEASE}{}", lease.0)
}

fn respond<T>(reply: Reply<T>, answer: Result<T, Error>) {
    let _ = reply.send(answer);
}
