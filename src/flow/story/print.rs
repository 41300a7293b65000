//! Prints a story: a line a stage, each naming the one that led to it. In a terminal, so that a story is a
//! screenful, what went well takes one line and is cut where that is too narrow; whatever else is to be told
//! goes on in the next line.

use std::fmt::Write;

use super::stage::{EventCount, StageKind, StageOutcome, StoryStage, TraceStory};
use crate::words::{counted, nothing_told, titled};
use crate::wrap::wrap;

/// So many stages are told; of more the first and the last ones.
const SCREENFUL: usize = 30;
/// As many of the first.
const BEGINNING: usize = 12;
/// Notes of one stage.
const NOTES: usize = 6;
/// Columns: a stage's number, how long after the beginning, what it is about.
const NUMBER: usize = 3;
const AFTER: usize = 8;
const KIND: usize = 10;
/// What lies before the words.
const BEFORE: usize = NUMBER + 1 + AFTER + 1 + KIND + 1;
/// In a terminal that is narrower than this leaves room for, lines are broken by the terminal.
const MIN_WORDS: usize = 24;

/// How it is to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// How many columns there are; without it lines are as long as they are.
    pub columns: Option<usize>,
    /// Whether colours are understood.
    pub colour: bool,
    /// Whether all stages are told, however many there are.
    pub whole: bool,
    /// Whether what few look for is told as well.
    pub details: bool,
}

impl TraceStory {
    /// The story as `kubarium trace` prints it.
    pub fn print(&self, look: Look) -> String {
        let mut out = String::new();
        let mut line = |text: String| writeln!(out, "{text}").expect("a string takes every line");
        if self.stages.is_empty() {
            line(nothing_told(&self.subject, self.left_out));
        } else {
            look.fill("", "", &self.title()).into_iter().for_each(|text| line(look.paint(BOLD, &text)));
            self.print_stages(look, &mut line);
        }
        for text in &self.standing {
            look.standing(text).into_iter().for_each(&mut line);
        }
        for text in self.footer().iter().chain(&self.remarks) {
            look.fill("", "", text).into_iter().for_each(|text| line(look.paint(QUIET, &text)));
        }
        out
    }

    fn title(&self) -> String {
        let uid = self.uid.map(|uid| format!(" ({uid})")).unwrap_or_default();
        let began = if self.began.is_empty() { String::new() } else { format!(", {}", self.began) };
        format!("{}{uid}{began}", titled(&self.subject))
    }

    fn print_stages(&self, look: Look, line: &mut impl FnMut(String)) {
        let count = self.stages.len();
        // To say that one is left out takes as much room as that one.
        let is_cut = !look.whole && count > SCREENFUL + 1;
        for (at, stage) in self.stages.iter().enumerate() {
            let left_out = if is_cut { BEGINNING..count - (SCREENFUL - BEGINNING) } else { 0..0 };
            if is_cut && at == left_out.start {
                let many = counted(left_out.len() as u64, "stage");
                line(look.paint(QUIET, &format!("{:BEFORE$}... {many} more: --all tells them ...", "")));
            }
            if !left_out.contains(&at) {
                stage.lines(look).into_iter().for_each(&mut *line);
            }
        }
    }

    /// What is not told.
    fn footer(&self) -> Vec<String> {
        let mut told =
            vec![format!("{} in {}", counted(self.steps as u64, "step"), duration(self.microseconds))];
        if self.idle_reconciles > 0 {
            told.push(format!("{} found nothing to do", counted(self.idle_reconciles as u64, "reconcile")));
        }
        if !self.events.is_empty() {
            let words = |told: &EventCount| match told.count {
                1 => told.reason.clone(),
                count => format!("{count} {}", told.reason),
            };
            let events: Vec<String> = self.events.iter().map(words).collect();
            told.push(format!("events: {}", events.join(", ")));
        }
        vec![format!("{}; every step: --full", told.join("; "))]
    }
}

impl StoryStage {
    /// The stage's lines, its notes below it.
    pub fn lines(&self, look: Look) -> Vec<String> {
        let number = format!("{:>NUMBER$}", self.number);
        let after = format!("{:>AFTER$}", duration(self.at_microseconds));
        let kind = format!("{:<KIND$}", self.kind.name());
        let head = format!("{number} {after} ");
        let cause = self.cause.map(|cause| format!(" <- {cause}")).unwrap_or_default();
        let is_brief = look.is_brief() && self.outcome == StageOutcome::Done;
        let filled = if is_brief {
            vec![look.cut(BEFORE, &self.words, &cause)]
        } else {
            look.wrapped(BEFORE, &format!("{}{cause}", self.words))
        };
        let tone = match self.outcome {
            StageOutcome::Done => None,
            StageOutcome::Warning => Some(YELLOW),
            StageOutcome::Refused => Some(RED),
        };
        let painted = |text: &str| tone.map_or_else(|| text.to_owned(), |tone| look.paint(tone, text));
        let mut lines = Vec::with_capacity(filled.len() + self.notes.len());
        for (at, words) in filled.iter().enumerate() {
            lines.push(match at {
                0 => format!(
                    "{}{} {}",
                    look.paint(QUIET, &head),
                    look.paint(tone_of(self.kind), &kind),
                    painted(words)
                ),
                _ => format!("{:BEFORE$}  {}", "", painted(words)),
            });
        }
        // What a client has changed is what the rest is about.
        if !is_brief || self.kind == StageKind::Request {
            lines.extend(self.note_lines(look));
        }
        lines
    }

    fn note_lines(&self, look: Look) -> Vec<String> {
        let indent = " ".repeat(BEFORE);
        let shown = if look.whole { self.notes.len() } else { self.notes.len().min(NOTES) };
        let more = self.notes.len() - shown;
        let more = (more > 0).then(|| format!("... and {more} more"));
        let details = self.details.iter().filter(|_| look.details);
        let notes = self.notes[..shown].iter().chain(&more).chain(details);
        let lines = notes.flat_map(|note| look.fill(&indent, "- ", note));
        lines.map(|line| look.paint(QUIET, &line)).collect()
    }
}

impl StageKind {
    /// As it stands in its column.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::Start => "start",
            StageKind::Discovery => "discovery",
            StageKind::Request => "request",
            StageKind::Checks => "checks",
            StageKind::Decoding => "decoding",
            StageKind::Admission => "admission",
            StageKind::Aggregator => "aggregator",
            StageKind::Store => "store",
            StageKind::Watch => "watch",
            StageKind::Controller => "controller",
            StageKind::Scheduler => "scheduler",
            StageKind::Kubelet => "kubelet",
        }
    }
}

const BOLD: u8 = 1;
const QUIET: u8 = 2;
const RED: u8 = 31;
const GREEN: u8 = 32;
const YELLOW: u8 = 33;
const BLUE: u8 = 34;
const MAGENTA: u8 = 35;
const CYAN: u8 = 36;

fn tone_of(kind: StageKind) -> u8 {
    match kind {
        StageKind::Discovery
        | StageKind::Request
        | StageKind::Checks
        | StageKind::Decoding
        | StageKind::Admission => BLUE,
        StageKind::Start | StageKind::Aggregator | StageKind::Store | StageKind::Watch => CYAN,
        StageKind::Controller => GREEN,
        StageKind::Scheduler => MAGENTA,
        StageKind::Kubelet => YELLOW,
    }
}

impl Look {
    /// The lines of something that stands in the way ([`TraceStory::standing`]).
    pub fn standing(self, text: &str) -> Vec<String> {
        self.fill("", " => ", text).iter().map(|line| self.paint(YELLOW, line)).collect()
    }

    fn paint(self, code: u8, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// The lines of a text that begins behind so many columns.
    fn wrapped(self, before: usize, text: &str) -> Vec<String> {
        let room = self.columns.map(|columns| columns.saturating_sub(before).max(MIN_WORDS));
        wrap(text, room.unwrap_or(usize::MAX))
    }

    /// Whether a story is to be a screenful.
    fn is_brief(self) -> bool {
        self.columns.is_some() && !self.whole
    }

    /// A line with this end; of the text before it as much as there is room for.
    fn cut(self, before: usize, text: &str, end: &str) -> String {
        let room = self.columns.map_or(usize::MAX, |columns| columns.saturating_sub(before).max(MIN_WORDS));
        let room = room.saturating_sub(end.chars().count());
        if text.chars().count() <= room {
            return format!("{text}{end}");
        }
        let kept: String = text.chars().take(room.saturating_sub(1)).collect();
        format!("{}…{end}", kept.trim_end())
    }

    /// Lines with `sign` before the first and as much room before the others.
    fn fill(self, indent: &str, sign: &str, text: &str) -> Vec<String> {
        let before = indent.len() + sign.len();
        let lines = self.wrapped(before, text);
        let blank = " ".repeat(sign.len() + 2);
        let put = |(at, line): (usize, String)| match at {
            0 => format!("{indent}{sign}{line}"),
            _ => format!("{indent}{blank}{line}"),
        };
        lines.into_iter().enumerate().map(put).collect()
    }
}

/// For people: three digits or so.
pub(super) fn duration(microseconds: u64) -> String {
    let milliseconds = microseconds as f64 / 1000.0;
    match microseconds {
        0..1_000_000 => format!("{milliseconds:.1} ms"),
        1_000_000..100_000_000 => format!("{:.2} s", milliseconds / 1000.0),
        _ => {
            let seconds = microseconds / 1_000_000;
            format!("{}m{:02}s", seconds / 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests;
