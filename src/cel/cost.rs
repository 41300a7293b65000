//! What an evaluation may cost (`interpreter/runtimecost.go`, `k8s.io/apiserver/pkg/apis/cel`).

use super::error::EvaluationError;

/// What is left to spend. One unit is about one look-up or call; texts cost by their length.
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
    spent: u64,
    aside: u64,
    wasted: u64,
}

impl Budget {
    /// `PerCallLimit`: what one rule may cost.
    pub const PER_CALL: u64 = 1_000_000;
    /// `RuntimeCELCostBudget`: what all rules of one request may cost together.
    pub const PER_REQUEST: u64 = 10_000_000;

    /// With so many units.
    pub fn new(units: u64) -> Budget {
        Budget { left: units, spent: 0, aside: 0, wasted: 0 }
    }

    /// Takes what `part` has spent off this one, and what was spent beside it.
    ///
    /// # Errors
    /// There is not so much left; from now on there is nothing.
    pub fn settle(&mut self, part: &Budget) -> Result<(), EvaluationError> {
        self.spend(part.spent.saturating_add(part.aside))
    }

    /// Takes units.
    ///
    /// # Errors
    /// There are not so many left.
    pub fn spend(&mut self, units: u64) -> Result<(), EvaluationError> {
        self.spent = self.spent.saturating_add(units);
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(EvaluationError::CostLimitExceeded)
            }
        }
    }

    /// Counts what another program has spent for this one, whose own limit that does not touch.
    pub fn set_aside(&mut self, part: &Budget) {
        self.aside = self.aside.saturating_add(part.spent).saturating_add(part.aside);
    }

    /// For what is worked out ahead, and charged only when it is asked for: what is left, less what was
    /// worked out in vain. Else a name that nobody asks for could be worked out at will in a comprehension.
    pub(super) fn ahead(&self) -> Budget {
        Budget::new(self.left.saturating_sub(self.wasted))
    }

    /// Counts what was worked out and never asked for.
    pub(super) fn waste(&mut self, units: u64) {
        self.wasted = self.wasted.saturating_add(units);
    }

    /// What was worked out and never asked for.
    pub(super) fn wasted(&self) -> u64 {
        self.wasted
    }

    /// Whether so much could still be spent.
    pub(super) fn allows(&self, units: u64) -> bool {
        units <= self.left
    }

    /// A look-up that turns out to cost nothing.
    pub(super) fn give_back(&mut self, units: u64) {
        self.left += units;
        self.spent = self.spent.saturating_sub(units);
    }

    /// What has been spent.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }
}
