//! What an evaluation may cost (`common/types` cost tracking, `k8s.io/apiserver/pkg/cel` limits).

use super::error::EvaluationError;

/// What is left to spend. One unit is about one look-up or call; texts cost by their length.
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
    spent: u64,
}

impl Budget {
    /// `PerCallLimit`: what one rule may cost.
    pub const PER_CALL: u64 = 1_000_000;
    /// `RuntimeCELCostBudget`: what all rules of one request may cost together.
    pub const PER_REQUEST: u64 = 10_000_000;

    /// With so many units.
    pub fn new(units: u64) -> Budget {
        Budget { left: units, spent: 0 }
    }

    /// One expression's: at most [`Budget::PER_CALL`] and what `whole` has left. [`Budget::settle`] takes it
    /// off the whole.
    pub fn per_call(whole: &Budget) -> Budget {
        Budget::new(Budget::PER_CALL.min(whole.left))
    }

    /// Takes what `part` has spent off this one.
    ///
    /// # Errors
    /// There is not so much left.
    pub fn settle(&mut self, part: &Budget) -> Result<(), EvaluationError> {
        self.spend(part.spent)
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

    /// Going through so many bytes of text: a tenth of a unit each.
    pub(super) fn spend_text(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.spend((bytes as u64).div_ceil(10))
    }

    /// What has been spent.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}
