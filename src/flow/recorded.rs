//! A step in the record, and its number.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::step::Step;

/// The number of a step: 1 for the first of a cluster. [`StepId::NONE`] is no step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub u64);

impl StepId {
    /// Nothing was recorded.
    pub const NONE: StepId = StepId(0);

    /// This step as a cause: none if it is [`StepId::NONE`].
    pub fn cause(self) -> Option<StepId> {
        (self != StepId::NONE).then_some(self)
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A step as it was recorded.
#[derive(Clone)]
pub(super) struct Recorded {
    pub at: Duration,
    pub cause: StepId,
    pub step: Step,
}
