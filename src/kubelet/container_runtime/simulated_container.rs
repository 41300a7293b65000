//! `SimulatedContainer`: a process that runs, and what is ahead of it.

use std::sync::Arc;
use std::time::Duration;

use super::played::{self, Outlook};
use super::services::{ContainerConfig, Exit, PendingQuestion, RuntimeContainerStatus};
use super::used::{self, UsageSources};
use apimachinery::time::Time;
use clock::after;
use machine::invocation::Invocation;
use machine::signals;
use machine::surroundings::Surroundings;

/// A container that was started. What is not known of most is not kept, since there are many.
#[derive(Clone, Debug)]
pub(super) struct SimulatedContainer {
    pub(super) started_at: Time,
    /// What its process finds, when that is known.
    pub(super) around: Option<Arc<Surroundings>>,
    pub(super) ready_at: Option<Time>,
    /// What is ahead of its process by itself.
    pub(super) plain: Outlook,
    /// What is ahead of it, with what it is killed for.
    pub(super) outlook: Outlook,
    /// Whether that is as its command says.
    pub(super) follows_command: bool,
}

impl SimulatedContainer {
    pub(super) fn status(&self) -> RuntimeContainerStatus {
        let Outlook { ends, asks } = &self.outlook;
        let asks_at = asks.as_ref().map(|asks| asks.0);
        RuntimeContainerStatus { ready_at: self.ready_at, ends: ends.as_deref().cloned(), asks_at }
    }

    pub(super) fn pending(&self) -> Option<PendingQuestion> {
        let (_, question) = self.outlook.asks.as_deref()?;
        let answers = self.around.as_ref()?.answers.len();
        Some(PendingQuestion { question: question.clone(), answers })
    }

    pub(super) fn ran(&self, now: Time) -> Duration {
        (now - self.started_at).to_std().unwrap_or_default()
    }

    /// Its process is sent its stop signal: how long after that it ends, and with what code; nothing when it
    /// does not by itself; and whether its handler does something to files, which is seen from now on.
    pub(super) fn hear_stop(
        &mut self,
        invocation: &Invocation<'_>,
        delay: Duration,
        now: Time,
    ) -> (Option<(Duration, i32)>, bool) {
        let ran = self.ran(now).saturating_add(delay);
        let end = signals::end(invocation, self.around.as_deref(), ran);
        let Some(around) = &mut self.around else { return (end, false) };
        let left = signals::left_by_handler(invocation, around, ran);
        if left.is_empty() {
            return (end, false);
        }
        let around = Arc::make_mut(around);
        let shown = around.views.last().map(|view| (*view.tree).clone()).unwrap_or_default();
        let at = after(now, delay);
        played::keep(around, left, at);
        around.show(shown, at);
        (end, true)
    }

    /// From now on this is ahead of it, but for what it is killed for first.
    pub(super) fn expect(&mut self, plain: Outlook, killed: Option<(Time, Exit)>) {
        self.outlook = plain.clone().not_beyond(killed);
        self.plain = plain;
    }

    /// Its command is followed anew, among what it finds now.
    pub(super) fn replay(&mut self, config: &ContainerConfig<'_>, sources: &UsageSources) {
        let (around, started_at) = (self.around.as_deref(), self.started_at);
        let outlook = played::outlook(config.container, around, started_at, Duration::ZERO);
        self.expect(outlook, used::killed(config, started_at, sources));
    }
}
