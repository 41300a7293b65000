//! `OwnRuntime`: what runs containers instead of the simulated runtime, or around it, given in Rust.

use std::fmt;
use std::sync::Arc;

use super::services::RuntimeService;

/// Makes the runtime of a node from the node's name and the simulated one.
type MakeRuntime = Arc<dyn Fn(&str, Arc<dyn RuntimeService>) -> Arc<dyn RuntimeService> + Send + Sync>;

/// Which runtime each node has: the simulated one, unless somebody gives another.
#[derive(Clone, Default)]
pub struct OwnRuntime(Option<MakeRuntime>);

impl OwnRuntime {
    /// One that is made for each node, whenever its kubelet starts, from the node's name and the simulated
    /// runtime: which it may wrap.
    pub fn new(
        make: impl Fn(&str, Arc<dyn RuntimeService>) -> Arc<dyn RuntimeService> + Send + Sync + 'static,
    ) -> OwnRuntime {
        OwnRuntime(Some(Arc::new(make)))
    }

    /// The runtime of a node.
    pub(crate) fn of(&self, node: &str, simulated: Arc<dyn RuntimeService>) -> Arc<dyn RuntimeService> {
        match &self.0 {
            Some(make) => make(node, simulated),
            None => simulated,
        }
    }
}

impl fmt::Debug for OwnRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "OwnRuntime(given)" } else { "OwnRuntime(simulated)" })
    }
}
