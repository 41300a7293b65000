//! Rounds: what controllers look at from time to time, whether or not something is new. Nobody caused them,
//! and as long as nothing comes of one nobody need be told of it at once.

use super::recorded::{Recorded, StepId};
use super::step::Step;
use super::{Flow, Ring};

impl Flow {
    /// Whether all that came since a step are rounds.
    pub fn are_rounds(&self, since: StepId) -> bool {
        self.record.as_ref().is_none_or(|record| record.ring().are_rounds(since))
    }
}

impl Ring {
    fn are_rounds(&self, since: StepId) -> bool {
        let skip = usize::try_from(since.0.max(1).saturating_sub(self.forgotten + 1)).unwrap_or(usize::MAX);
        self.steps.iter().skip(skip).all(|recorded| self.is_of_round(recorded))
    }

    /// A key that came into its queue by itself, or its reconcile. Causes are older than what they led to, so
    /// the way back ends.
    fn is_of_round(&self, recorded: &Recorded) -> bool {
        let mut at = recorded;
        loop {
            if !matches!(
                at.step,
                Step::Enqueued { .. } | Step::ReconcileStarted { .. } | Step::ReconcileEnded { .. }
            ) {
                return false;
            }
            match at.cause.cause() {
                None => return matches!(at.step, Step::Enqueued { .. }),
                Some(cause) => match self.get(cause) {
                    Some(before) => at = before,
                    None => return false,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::handwritten::Handwritten;
    use crate::{Step, StepId};

    #[test]
    fn a_round_is_one_until_something_comes_of_it() {
        let story = Handwritten::new();
        story.write(None, "", "configmaps", "other", 6);
        let flow = &story.flow;
        assert!(!flow.are_rounds(StepId::NONE));
        let since = flow.newest();
        assert!(flow.are_rounds(since), "nothing came");
        let started = story.reconcile_after(None, "node-lifecycle", "node-1", 0, 5000);
        story.step(started, Step::ReconcileEnded { result: "done".into(), compared: None });
        assert!(flow.are_rounds(since) && !flow.are_rounds(StepId::NONE));
        let because = story.reconcile("configmaps", "other", "ns/other", 6);
        assert!(!flow.are_rounds(since), "somebody caused it");
        let since = flow.newest();
        story.step(because, Step::ReconcileEnded { result: "done".into(), compared: None });
        assert!(!flow.are_rounds(since));
        let since = flow.newest();
        story.write(started, "", "nodes", "node-1", 7);
        assert!(!flow.are_rounds(since), "a round that writes is news");
    }
}
