//! What the writer can be asked for, and where its answers go.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Error, Expect, LeaseId, Op, Revision, Txn};

/// Where an answer goes. Whoever asked may have gone; the write stands all the same.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

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

/// One compare-and-write.
#[derive(Debug)]
pub(super) struct Write {
    pub key: Arc<str>,
    pub expect: Expect,
    pub op: Op,
}
