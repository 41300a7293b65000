//! Compaction by the clock, as kube-apiserver does it (`apiserver/pkg/storage/etcd3/compact.go`).

use std::future::Future;
use std::time::Duration;

use super::{Kv, Revision, StoreError};

/// kube-apiserver's `--etcd-compaction-interval`.
pub const COMPACTION_INTERVAL: Duration = Duration::from_secs(300);

/// Every `interval` forgets the history that was there at the time before; so that between one and two
/// intervals of history can be read, and a watch that has been away for less than one can go on. Ends with
/// the store, or when it is dropped.
pub fn compactor(kv: &Kv, interval: Duration) -> impl Future<Output = ()> + Send + 'static {
    let (kv, clock) = (kv.downgrade(), kv.clock().clone());
    async move {
        let mut before: Revision = 0;
        loop {
            clock.look_after(interval).await;
            let Some(kv) = kv.upgrade() else { return };
            let revision = kv.revision();
            match kv.compact(before).await {
                Ok(()) => before = revision,
                Err(StoreError::Closed) => return,
                Err(error) => tracing::error!(%error, "compaction failed"),
            }
        }
    }
}
