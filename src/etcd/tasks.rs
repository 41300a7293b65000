//! What an open store does unasked: leases expire, and a disk that failed is tried again.

use std::sync::Arc;
use std::time::Duration;

use super::state::Shared;
use super::{LeaseId, StoreError};
use clock::Clock;

/// How long after a failed write, and after each attempt, the disk is tried again.
const HEALING_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a failed write the next lease is tried.
const RETRY: Duration = Duration::from_secs(1);

/// Revokes leases when their time is up, as long as the store is open: `revoke` is given a lease and when it
/// was found to be over.
pub(super) async fn expire_leases<F: Future<Output = Result<(), StoreError>>>(
    shared: Arc<Shared>,
    clock: Clock,
    revoke: impl Fn(LeaseId, Duration) -> F,
) {
    loop {
        let next = shared.read().leases.next_expiry();
        match next {
            None => {
                shared.leases_changed.notified().await;
                continue;
            }
            Some(expires) => tokio::select! {
                biased;
                () = clock.sleep_until(expires) => {}
                () = shared.leases_changed.notified() => continue,
            },
        }
        let now = clock.elapsed();
        let expired = shared.read().leases.expired(now);
        for lease in expired {
            match revoke(lease, now).await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => {
                    // It takes no writes for now, and has said so.
                    tracing::debug!(%error, "a lease cannot expire yet");
                    clock.sleep(RETRY).await;
                    break;
                }
            }
        }
    }
}

/// After a failed write, tries until the disk takes writes again.
pub(super) async fn heal<F: Future<Output = Result<(), StoreError>>>(
    shared: Arc<Shared>,
    clock: Clock,
    attempt: impl Fn() -> F,
) {
    loop {
        shared.write_failed.notified().await;
        loop {
            clock.sleep(HEALING_INTERVAL).await;
            match attempt().await {
                Ok(()) => break,
                Err(StoreError::Closed) => return,
                Err(error) => tracing::debug!(%error, "the store takes no writes yet"),
            }
        }
    }
}
