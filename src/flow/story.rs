//! `TraceStory`: a [`Trace`] for people, a line for each stage of it: a request, what the store made of it,
//! who heard of it, what each controller, the scheduler and the kubelets did. What happened several times for
//! the same reason is one stage with a count.
//!
//! A terminal prints it, a page may draw it: nothing here knows which.

mod admission;
mod asked;
mod conflict;
mod draft;
mod fold;
mod fold_words;
mod folding;
mod node_said;
mod obstacles;
mod own;
mod print;
mod stage;
mod standing;
mod target;
mod units;

use super::trace::Trace;

pub use print::Look;
pub use stage::{EventCount, StageKind, StageOutcome, StoryStage, TraceStory};
pub(crate) use target::RequestTarget;
pub use units::{Unit, UnitKind, units};

impl Trace {
    /// The story of this trace, with what happened again and again told once.
    pub fn story(&self) -> TraceStory {
        fold::story(self, true)
    }

    /// A stage for each thing that happened, nothing folded: for those who listen while it happens.
    pub fn story_unfolded(&self) -> TraceStory {
        fold::story(self, false)
    }
}

#[cfg(test)]
mod tests;
