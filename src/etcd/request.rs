//! What the writer can be asked for, and where its answers go.

use std::time::Duration;

use tokio::sync::oneshot;

use super::staged::Write;
use super::transaction::Transaction;
use super::{LeaseId, Revision, StoreError, Txn};

/// Where an answer goes. Whoever asked may have gone; the write stands all the same.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What can be asked of the writer.
#[derive(Debug)]
pub(super) enum Request {
    Write(Pending),
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
        name: Option<u64>,
        reply: Reply<LeaseId>,
    },
    /// Deletes the lease's keys and the lease; with `expired_at`, only if its time was up then and still is.
    Revoke {
        lease: LeaseId,
        expired_at: Option<Duration>,
        reply: Reply<()>,
    },
    /// Gives a little of what compaction has freed back to the file system; answers whether there is more.
    Shrink {
        reply: Reply<bool>,
    },
    /// Starts to write again after a failed write, if that is possible by now.
    Heal {
        reply: Reply<()>,
    },
    Close {
        reply: Reply<()>,
    },
}

/// A write on its way, and where its answer goes.
#[derive(Debug)]
pub(super) enum Pending {
    Write(Write, Reply<Txn>),
    Work(Box<dyn StagedWork>),
}

/// What became of a write, until it can be told.
pub(super) enum WriteAnswer {
    Write(Reply<Txn>, Result<Txn, StoreError>),
    Work(WorkTold),
    Unheard(Pending),
}

/// Tells whoever asked for a piece of work: what came of it, or that it could not be written.
pub(super) type WorkTold = Box<dyn FnOnce(Option<StoreError>) + Send>;

/// What somebody wants done in one step.
pub(super) trait StagedWork: Send {
    /// Does it; whether what it has written is to stand.
    fn run(self: Box<Self>, transaction: &mut Transaction<'_>) -> (bool, WorkTold);

    /// It is not done.
    fn refuse(self: Box<Self>, error: StoreError);
}

impl std::fmt::Debug for dyn StagedWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

/// A function that is to be done in one step.
pub(super) struct WorkJob<F, T, E> {
    pub work: F,
    pub reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> StagedWork for WorkJob<F, T, E>
where
    F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn run(self: Box<Self>, transaction: &mut Transaction<'_>) -> (bool, WorkTold) {
        let WorkJob { work, reply } = *self;
        let done = work(transaction);
        let stands = done.is_ok();
        let told = move |failed: Option<StoreError>| {
            drop(reply.send(failed.map_or(done, |error| Err(error.into()))))
        };
        (stands, Box::new(told))
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error.into()));
    }
}

impl WriteAnswer {
    /// `failed`: nothing of the batch stands.
    pub(super) fn send(self, failed: Option<&StoreError>) {
        match self {
            WriteAnswer::Write(reply, answer) => {
                let _ = reply.send(failed.map_or(answer, |error| Err(error.clone())));
            }
            WriteAnswer::Work(told) => told(failed.cloned()),
            WriteAnswer::Unheard(pending) => pending.refuse(failed.cloned().unwrap_or(StoreError::Closed)),
        }
    }
}

impl Pending {
    fn refuse(self, error: StoreError) {
        match self {
            Pending::Write(_, reply) => drop(reply.send(Err(error))),
            Pending::Work(work) => work.refuse(error),
        }
    }
}
