//! What `awk` does again and again.

use super::numbers::is_so;
use super::syntax::{AwkStatement, AwkValue};
use super::{AwkEnding, AwkPlay, BYTES_OF_VALUE};

impl AwkPlay<'_, '_> {
    /// For as long as the condition holds, and the script has steps.
    pub(super) fn repeat(
        &mut self,
        condition: Option<&AwkValue>,
        step: Option<&AwkStatement>,
        body: &[AwkStatement],
    ) -> AwkEnding {
        loop {
            if !self.player.handle(BYTES_OF_VALUE) {
                return AwkEnding::Exits;
            }
            let holds = condition.is_none_or(|condition| is_so(&self.value(condition)));
            if !holds {
                return AwkEnding::Goes;
            }
            match self.statements(body) {
                AwkEnding::Goes | AwkEnding::Continues => {}
                AwkEnding::Breaks => return AwkEnding::Goes,
                ending => return ending,
            }
            if let Some(step) = step {
                self.statement(step);
            }
        }
    }

    pub(super) fn each(&mut self, name: &str, array: &str, body: &[AwkStatement]) -> AwkEnding {
        for key in self.keys(array) {
            self.put(&AwkValue::Variable(name.to_owned()), key);
            match self.statements(body) {
                AwkEnding::Goes | AwkEnding::Continues => {}
                AwkEnding::Breaks => return AwkEnding::Goes,
                ending => return ending,
            }
        }
        AwkEnding::Goes
    }
}
