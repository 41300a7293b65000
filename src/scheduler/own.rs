//! `OwnPlugins`: scheduler plugins that whoever runs the cluster gives it in Rust.

use std::fmt;
use std::sync::Arc;

use super::framework::plugin::Plugin;
use super::framework::runtime::Weighted;
use client_go::component::ComponentContext;

/// Plugins of one's own. They run behind the built-in ones at every point, but for sorting the queue and
/// binding, where the first that does it ends the row: there they come first. Bound: one for each call of
/// [`OwnPlugins::with`].
#[derive(Clone, Default)]
pub struct OwnPlugins(Vec<OwnSchedulerPlugin>);

type MakesPlugin = dyn Fn(&ComponentContext) -> Box<dyn Plugin> + Send + Sync;

#[derive(Clone)]
struct OwnSchedulerPlugin {
    make: Arc<MakesPlugin>,
    weight: i64,
}

impl OwnPlugins {
    /// None yet.
    pub fn new() -> OwnPlugins {
        OwnPlugins::default()
    }

    /// And this one, made anew whenever the scheduler starts; its scores are multiplied with `weight`.
    #[must_use]
    pub fn with<P: Plugin + 'static>(
        mut self,
        weight: i64,
        make: impl Fn(&ComponentContext) -> P + Send + Sync + 'static,
    ) -> OwnPlugins {
        let make = Arc::new(move |ctx: &ComponentContext| Box::new(make(ctx)) as Box<dyn Plugin>);
        self.0.push(OwnSchedulerPlugin { make, weight });
        self
    }

    /// Makes them.
    pub(super) fn make(&self, ctx: &ComponentContext) -> Vec<Weighted> {
        let weighted = |own: &OwnSchedulerPlugin| Weighted { plugin: (own.make)(ctx), weight: own.weight };
        self.0.iter().map(weighted).collect()
    }
}

impl fmt::Debug for OwnPlugins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("OwnPlugins").field(&self.0.len()).finish()
    }
}
