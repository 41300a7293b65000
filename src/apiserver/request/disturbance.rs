//! `RequestDisturbance`: what a request is served with that goes wrong in the apiserver itself, as it may in
//! a real one: a watch cache that lags, a watch whose events come late or twice, a webhook that is silent.

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc::Receiver;

use apimachinery::watch::WatchEvent;

/// Stands between a watch and whoever reads it: gets its events, gives those that are read.
pub type WatchStage = Arc<dyn Fn(Receiver<WatchEvent>) -> Receiver<WatchEvent> + Send + Sync>;

/// Says of a webhook's name whether it is to be found silent.
pub type IsSilent = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What goes wrong with one request. The default is nothing.
#[derive(Clone, Default)]
pub struct RequestDisturbance {
    /// A get or list that takes any state gets that of this revision: what a watch cache has that lags.
    pub read_at: Option<u64>,
    /// What becomes of the events of a watch.
    pub watch: Option<WatchStage>,
    /// Which admission webhooks do not answer in time. Nobody waits for them: what follows is the same.
    pub silent_webhooks: Option<IsSilent>,
}

impl RequestDisturbance {
    /// Whether a webhook is not asked, but found to have taken too long.
    pub fn silences(&self, webhook: &str) -> bool {
        self.silent_webhooks.as_ref().is_some_and(|is_silent| is_silent(webhook))
    }
}

impl fmt::Debug for RequestDisturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestDisturbance").field("read_at", &self.read_at).finish_non_exhaustive()
    }
}
