//! The client's handle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use etcd::{LeaseId, Revision, StoreError};
use etcd_api::messages::{
    LeaseGrantRequest, LeaseGrantResponse, Nested, RangeRequest, RangeResponse, ResponseHeader,
};
use tokio::sync::watch;

use super::ask::Repeat;
use super::connection::EtcdDialFailure;
use super::connections::{Connections, MemberConnection, Purpose};
use super::convert::unsigned;
use super::progress::ProgressAsked;
use crate::config::EtcdConfig;
use clock::Clock;

/// A client of one etcd. Cloning shares it.
#[derive(Clone, Debug)]
pub struct EtcdClient(Arc<ClientInner>);

#[derive(Debug)]
struct ClientInner {
    connections: Connections,
    clock: Clock,
    /// For what is waited for in real time, whatever the cluster's is.
    real: Clock,
    /// The newest revision that an answer has named.
    seen: AtomicU64,
    /// The oldest revision that can still be read, as far as that is known.
    compacted: AtomicU64,
    progress: ProgressAsked,
    closed: watch::Sender<bool>,
}

impl EtcdClient {
    /// Nothing is connected before the first call.
    pub fn new(config: EtcdConfig, clock: Clock) -> EtcdClient {
        EtcdClient(Arc::new(ClientInner {
            connections: Connections::new(config, clock.clone()),
            clock,
            real: Clock::real(),
            seen: AtomicU64::new(0),
            compacted: AtomicU64::new(0),
            progress: ProgressAsked::default(),
            closed: watch::Sender::new(false),
        }))
    }

    /// The newest revision that was heard of.
    pub fn seen_revision(&self) -> Revision {
        self.0.seen.load(Ordering::Acquire)
    }

    /// The oldest revision that can still be read, as far as that was heard of.
    pub fn compact_revision(&self) -> Revision {
        self.0.compacted.load(Ordering::Acquire)
    }

    /// The newest revision, as a quorum has it.
    ///
    /// # Errors
    /// [`StoreError::Etcd`], [`StoreError::Closed`].
    pub async fn revision(&self) -> Result<Revision, StoreError> {
        let request = RangeRequest { key: self.outer(HEALTH_KEY), count_only: true, ..Default::default() };
        let answer: RangeResponse = self.call("KV/Range", &request, Repeat::Harmless).await?;
        Ok(self.see(&answer.header))
    }

    /// Whether a quorum answers, within a time (upstream's health check, which reads the key `health`).
    ///
    /// # Errors
    /// Why not.
    pub async fn check(&self, within: Duration) -> Result<(), StoreError> {
        let asked = self.0.clock.timeout_outside(within, self.revision()).await;
        asked.unwrap_or_else(|_| {
            Err(StoreError::Etcd("error getting data from etcd: context deadline exceeded".into()))
        })?;
        Ok(())
    }

    /// Makes a lease that expires after `ttl`, in whole seconds, unless it is kept alive.
    ///
    /// # Errors
    /// [`StoreError::Etcd`], [`StoreError::Closed`].
    pub async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let request = LeaseGrantRequest { ttl: i64::try_from(seconds).unwrap_or(i64::MAX), id: 0 };
        // One that nobody has heard of expires unused.
        let answer: LeaseGrantResponse = self.call("Lease/LeaseGrant", &request, Repeat::Harmless).await?;
        self.see(&answer.header);
        if answer.error.is_empty() {
            return Ok(LeaseId(answer.id.cast_unsigned()));
        }
        Err(StoreError::Etcd(answer.error))
    }

    /// Makes the watches of exactly this prefix ask how far they are, where etcd can tell
    /// ([`EtcdClient::tells_progress`]).
    pub fn request_progress(&self, prefix: &str) {
        if self.tells_progress() {
            self.0.progress.ask(prefix);
        }
    }

    /// Whether etcd can be asked how far watches are: every member that was spoken to is new enough.
    pub fn tells_progress(&self) -> bool {
        self.0.connections.tells_progress()
    }

    /// Ends calls and watches: they answer [`StoreError::Closed`].
    pub fn close(&self) {
        self.0.closed.send_replace(true);
        self.0.connections.close();
    }

    /// Takes note of the revision that an answer names.
    pub(crate) fn see(&self, header: &Nested<ResponseHeader>) -> Revision {
        let revision = header.0.as_ref().map_or(0, |header| unsigned(header.revision));
        self.0.seen.fetch_max(revision, Ordering::AcqRel);
        revision
    }

    /// History before this revision is gone.
    pub(crate) fn has_compacted(&self, revision: Revision) {
        self.0.compacted.fetch_max(revision, Ordering::AcqRel);
    }

    /// With the revisions that etcd's words do not have.
    pub(crate) fn with_revisions(&self, error: StoreError, requested: Revision) -> StoreError {
        let current = self.seen_revision();
        match error {
            StoreError::Compacted { .. } => {
                StoreError::Compacted { compact_revision: self.compact_revision(), current }
            }
            StoreError::FutureRevision { .. } => StoreError::FutureRevision { requested, current },
            other => other,
        }
    }

    pub(crate) async fn connected(&self, purpose: Purpose) -> Result<MemberConnection, EtcdDialFailure> {
        self.0.connections.get(purpose).await
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.0.connections
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.0.connections.config().prefix
    }

    pub(crate) fn progress(&self) -> &ProgressAsked {
        &self.0.progress
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn real(&self) -> &Clock {
        &self.0.real
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.0.closed.borrow()
    }

    /// Turns true when it is closed.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.0.closed.subscribe()
    }
}

/// What upstream's health check reads.
const HEALTH_KEY: &str = "/registry/health";
