//! How a server ends that others reach: it says that it is not ready, serves on for a while, refuses what is
//! new, and then stops (`lifecycleSignals`, `ShutdownDelayDuration`, `ShutdownSendRetryAfter`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{ArgAction, Args};
use tokio::sync::watch;

use apimachinery::duration::parse_flag;

/// What the flags say of the end.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "APIs")]
pub struct ShutdownOptions {
    /// How long it serves on when it is told to end.
    ///
    /// /readyz fails at once, /livez and requests go on, so that a load balancer can send its clients
    /// elsewhere. Told again, it ends at once.
    #[arg(id = "shutdown-delay-duration", long, default_value = "0s", value_name = "DURATION",
        value_parser = parse_flag)]
    pub delay: Duration,
    /// Whether new requests are answered with 429 and Retry-After until those under way are finished.
    ///
    /// Without, the port is closed at once.
    #[arg(id = "shutdown-send-retry-after", long, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub sends_retry_after: bool,
}

/// How far the end of one server has come. Clones speak of the same server.
#[derive(Clone, Default)]
pub struct Shutdown(Arc<Signals>);

#[derive(Default)]
struct Signals {
    has_begun: AtomicBool,
    refuses_new: AtomicBool,
    /// Requests that are not finished; counted only where those that are new will be refused.
    under_way: watch::Sender<usize>,
}

/// A request that is waited for. Dropped, it is finished.
pub struct AwaitedRequest(Shutdown);

impl Shutdown {
    /// From now on it is not ready (`ShutdownInitiated`).
    pub fn begin(&self) {
        self.0.has_begun.store(true, Ordering::SeqCst);
    }

    /// From now on what is new is refused (`NotAcceptingNewRequest`).
    pub fn refuse_new(&self) {
        self.0.refuses_new.store(true, Ordering::SeqCst);
    }

    /// Whether it does.
    pub(crate) fn refuses_new(&self) -> bool {
        self.0.refuses_new.load(Ordering::SeqCst)
    }

    /// Notes a request.
    pub(crate) fn note(&self) -> AwaitedRequest {
        self.0.under_way.send_modify(|count| *count += 1);
        AwaitedRequest(self.clone())
    }

    /// Returns when none is under way that was noted (`InFlightRequestsDrained`).
    pub async fn drained(&self) {
        let _ = self.0.under_way.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Whether the end has begun.
    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::SeqCst)
    }
}

impl Drop for AwaitedRequest {
    fn drop(&mut self) {
        self.0.0.under_way.send_modify(|count| *count -= 1);
    }
}
