//! `Stagehand`: what plays stages with.

use std::sync::Arc;
use std::time::Duration;

use super::book::StageBook;
use super::surroundings::Machines;
use apis::scheme::Scheme;
use client_go::ComponentContext;

/// How long is waited before asking again, after a watch that ended.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// What plays stages, and in whose name: the context's client.
#[derive(Clone)]
pub struct Stagehand {
    /// Client, recorder, clock, chance and tasks.
    pub context: ComponentContext,
    /// Which kinds there are.
    pub scheme: Arc<Scheme>,
    /// Where the Stages are written down.
    pub book: StageBook,
    /// The simulated nodes.
    pub machines: Arc<dyn Machines>,
}
