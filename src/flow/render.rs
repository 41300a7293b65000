//! Prints a trace: one line a step, in lanes, each naming its cause. Nothing of a step is ever cut off: where
//! a terminal is too narrow for a line it goes on in the next one.

use std::collections::HashMap;
use std::fmt::Write;

use super::lane::Lane;
use super::trace::{Trace, TraceStep};
use super::wanted::WantedSteps;
use super::words::{describe, nothing_told, one_line, titled};
use super::wrap::wrap;
use super::{CAPACITY, StepId};

/// Columns of the parts of a line; the component has as many as the longest one needs.
const TIME: usize = 9;
const STEP: usize = 8;
const LANE: usize = 4;
/// So far to the right the causes stand, behind all that is no longer.
const WHAT: usize = 46;
/// In a terminal that is narrower than this leaves room for, lines are broken by the terminal.
const MIN_WHAT: usize = 24;

impl TraceStep {
    /// What happened, in a line of words.
    pub fn words(&self) -> String {
        one_line(&describe(&self.step))
    }
}

impl Trace {
    /// The trace as `kubarium trace` prints it, a line a step however long that is. The letters are lanes:
    /// **A**piserver, **C**ontrollers, **S**cheduler, **K**ubelets; the column after them says which one
    /// exactly.
    pub fn render(&self) -> String {
        self.render_within(None)
    }

    /// The trace for a terminal with so many columns.
    pub fn render_within(&self, columns: Option<usize>) -> String {
        self.render_wanted(columns, &WantedSteps::default())
    }

    /// As [`Trace::render_within`], of those steps alone that somebody wants to see.
    pub fn render_wanted(&self, columns: Option<usize>, wanted: &WantedSteps) -> String {
        let mut out = String::new();
        let components = self.components();
        let mut all = self.steps.iter().zip(&components);
        if all.any(|(step, component)| wanted.shows(&step.step, component)) {
            self.write_steps(columns, wanted, &components, &mut out);
        } else {
            let left_out = self.left_out + self.steps.len();
            writeln!(out, "{}", nothing_told(&self.subject, left_out)).expect("a string takes every line");
        }
        for remark in self.remarks() {
            writeln!(out, "{remark}").expect("a string takes every line");
        }
        out
    }

    fn write_steps(
        &self,
        columns: Option<usize>,
        wanted: &WantedSteps,
        components: &[String],
        out: &mut String,
    ) {
        let longest = components.iter().map(|name| name.chars().count()).max().unwrap_or_default();
        let component = longest.max("component".len());
        let before = TIME + 1 + STEP + 1 + LANE + 1 + component + 1;
        let last = self.steps.last().map(|step| step.id.to_string().len()).unwrap_or_default();
        let room = columns.map(|columns| columns.saturating_sub(before + " <- ".len() + last).max(MIN_WHAT));
        let layout = LineLayout { component, before, room };
        let subject = match self.uid {
            Some(uid) => format!("{} ({uid})", self.subject),
            None => titled(&self.subject),
        };
        writeln!(out, "{:>TIME$} {:>STEP$} lane {:<component$} {subject}", "ms", "step", "component")
            .expect("a string takes every line");
        let all = self.steps.iter().zip(components);
        for (step, component) in all.filter(|(step, component)| wanted.shows(&step.step, component)) {
            layout.write(step, component, out);
        }
    }

    /// Of each step. One without a component of its own happened where its cause did.
    pub(super) fn components(&self) -> Vec<String> {
        let mut known: HashMap<StepId, String> = HashMap::new();
        let mut all = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let inherited = || known.get(&step.cause?).cloned();
            let component = step.step.component().or_else(inherited).unwrap_or_default();
            known.insert(step.id, component.clone());
            all.push(component);
        }
        all
    }

    /// What is to be said of the story as a whole, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.traffic.iter().map(ToString::to_string).collect();
        for life in &self.others {
            let uid = life.uid.map(|uid| uid.to_string()).unwrap_or_default();
            let end = if life.deleted { ", deleted" } else { "" };
            remarks.push(format!("another object of that name: --uid {uid} (from {}{end})", life.first));
        }
        if self.unnamed_refusals > 0 && !self.subject.ends_with([' ', '/']) {
            let resource = self.subject.split(' ').next().unwrap_or_default();
            let count = self.unnamed_refusals;
            remarks
                .push(format!("refused requests that name no object: {count} (trace {resource} tells them)"));
        }
        if self.begins_forgotten || self.steps.is_empty() && self.forgotten > 0 {
            remarks.push(format!(
                "forgotten: the record holds the last {CAPACITY} steps, from #{} on; {} older ones are gone",
                self.forgotten + 1,
                self.forgotten
            ));
        }
        remarks
    }
}

/// How wide the parts of a line are.
struct LineLayout {
    component: usize,
    /// All that is left of what happened.
    before: usize,
    /// For what happened; none is as much as it takes.
    room: Option<usize>,
}

impl LineLayout {
    fn write(&self, step: &TraceStep, component: &str, out: &mut String) {
        let LineLayout { component: width, before, room } = *self;
        let (time, id, lane) =
            (milliseconds(step.at_microseconds), step.id.to_string(), Lane::of(component).letter());
        let lines = wrap(&step.words(), room.unwrap_or(usize::MAX));
        let what = lines.first().map(String::as_str).unwrap_or_default();
        let cause = step.cause.map(|cause| format!(" <- {cause}")).unwrap_or_default();
        let pad = room.unwrap_or(WHAT).min(WHAT);
        let line = format!("{time:>TIME$} {id:>STEP$} {lane} {component:<width$} {what:<pad$}{cause}");
        writeln!(out, "{}", line.trim_end()).expect("a string takes every line");
        for more in lines.iter().skip(1) {
            writeln!(out, "{:before$}  {more}", "").expect("a string takes every line");
        }
    }
}

/// To the microsecond in the first 100 seconds, so that it fits its column for days.
fn milliseconds(microseconds: u64) -> String {
    let whole = microseconds / 1000;
    if whole < 100_000 { format!("{whole}.{:03}", microseconds % 1000) } else { whole.to_string() }
}

#[cfg(test)]
mod tests;
