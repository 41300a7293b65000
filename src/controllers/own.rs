//! `OwnControllers`: controllers that whoever runs the cluster gives it in Rust.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::controller::{Controller, spawn};
use client_go::ComponentContext;

/// Controllers of one's own, each a component of the cluster with caches and a client of its own. Bound: one
/// for each call of [`OwnControllers::with`].
#[derive(Clone, Default)]
pub struct OwnControllers(Vec<OwnController>);

#[derive(Clone)]
struct OwnController {
    name: &'static str,
    start: Arc<dyn Fn(&ComponentContext) + Send + Sync>,
}

impl OwnControllers {
    /// None yet.
    pub fn new() -> OwnControllers {
        OwnControllers::default()
    }

    /// And this one, made anew whenever it starts: its listers are those of the context's informers.
    #[must_use]
    pub fn with<C: Controller>(
        mut self,
        make: impl Fn(&ComponentContext) -> C + Send + Sync + 'static,
    ) -> OwnControllers {
        let start = Arc::new(move |ctx: &ComponentContext| drop(spawn(ctx, make(ctx))));
        self.0.push(OwnController { name: C::NAME, start });
        self
    }

    /// What they are called.
    pub fn names(&self) -> BTreeSet<&'static str> {
        self.0.iter().map(|own| own.name).collect()
    }

    /// Starts those of a name.
    pub fn start(&self, name: &str, ctx: &ComponentContext) {
        self.0.iter().filter(|own| own.name == name).for_each(|own| (own.start)(ctx));
    }
}

impl fmt::Debug for OwnControllers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.names()).finish()
    }
}
