//! Prints a trace: one line a step, in lanes, each naming its cause. Nothing of a step is ever cut off: where
//! a terminal is too narrow for a line it goes on in the next one.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use super::step::{APISERVER, Operation, SCHEDULER, Step};
use super::trace::{Trace, TraceStep};
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
        let mut out = String::new();
        if self.steps.is_empty() {
            writeln!(out, "nothing is recorded of {}", self.subject).expect("a string takes every line");
        } else {
            self.write_steps(columns, &mut out);
        }
        for remark in self.remarks() {
            writeln!(out, "{remark}").expect("a string takes every line");
        }
        out
    }

    fn write_steps(&self, columns: Option<usize>, out: &mut String) {
        let components = self.components();
        let longest = components.iter().map(|name| name.chars().count()).max().unwrap_or_default();
        let component = longest.max("component".len());
        let before = TIME + 1 + STEP + 1 + LANE + 1 + component + 1;
        let last = self.steps.last().map(|step| step.id.to_string().len()).unwrap_or_default();
        let room = columns.map(|columns| columns.saturating_sub(before + " <- ".len() + last).max(MIN_WHAT));
        let layout = Layout { component, before, room };
        let subject = match self.uid {
            Some(uid) => format!("{} ({uid})", self.subject),
            None => self.subject.clone(),
        };
        writeln!(out, "{:>TIME$} {:>STEP$} lane {:<component$} {subject}", "ms", "step", "component")
            .expect("a string takes every line");
        for (step, component) in self.steps.iter().zip(&components) {
            layout.write(step, component, out);
        }
    }

    /// Of each step. One without a component of its own happened where its cause did.
    fn components(&self) -> Vec<String> {
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
struct Layout {
    component: usize,
    /// All that is left of what happened.
    before: usize,
    /// For what happened; none is as much as it takes.
    room: Option<usize>,
}

impl Layout {
    fn write(&self, step: &TraceStep, component: &str, out: &mut String) {
        let Layout { component: width, before, room } = *self;
        let (time, id, lane) = (milliseconds(step.at_microseconds), step.id.to_string(), lane(component));
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

/// Messages may have lines of their own, which would look like steps.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Lines of at most `width` characters, broken between words, and within a word that is longer than a line;
/// all but the first are two shorter. Nothing but blanks is lost.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let room = if lines.len() == 1 { width } else { width - 2 };
        let needed = word.chars().count() + usize::from(length > 0);
        if length > 0 && length + needed > room {
            lines.push(String::new());
            length = 0;
        }
        if length > 0 {
            push(&mut lines, &mut length, ' ', width);
        }
        word.chars().for_each(|letter| push(&mut lines, &mut length, letter, width));
    }
    lines
}

/// Puts a letter at the end of the last line, or into a new one when that is full.
fn push(lines: &mut Vec<String>, length: &mut usize, letter: char, width: usize) {
    let room = if lines.len() == 1 { width } else { width - 2 };
    if *length == room {
        lines.push(String::new());
        *length = 0;
    }
    lines.last_mut().expect("starts with one").push(letter);
    *length += 1;
}

/// To the microsecond in the first 100 seconds, so that it fits its column for days.
fn milliseconds(microseconds: u64) -> String {
    let whole = microseconds / 1000;
    if whole < 100_000 { format!("{whole}.{:03}", microseconds % 1000) } else { whole.to_string() }
}

/// A path without its API version, and without the word `namespaces` where a resource in a namespace follows.
fn short(path: &str) -> &str {
    let segments = if path.starts_with("/apis/") { 4 } else { 3 };
    let Some(rest) = path.splitn(segments + 1, '/').nth(segments) else { return path };
    let inside = rest.strip_prefix("namespaces/").filter(|inside| inside.contains('/'));
    if path.starts_with("/api") { inside.unwrap_or(rest) } else { path }
}

fn lane(component: &str) -> &'static str {
    match component {
        APISERVER => "A...",
        SCHEDULER | "default-scheduler" => "..S.",
        _ if component.starts_with("kubelet") => "...K",
        _ => ".C..",
    }
}

fn describe(step: &Step) -> String {
    use Step::*;
    match step {
        RequestReceived { user, verb, path } if user.is_empty() => format!("{verb} {}", short(path)),
        RequestReceived { user, verb, path } => {
            // `system:serviceaccount:kube-system:deployment-controller`: the last part says enough.
            format!("{verb} {} ({})", short(path), user.rsplit(':').next().unwrap_or(user))
        }
        Authenticated { user, by, .. } if by.is_empty() || &**by == "InProcess" => {
            format!("authenticated as {user}")
        }
        Authenticated { user, by, .. } => format!("authenticated as {user} by {by}"),
        NotAuthenticated { said } => format!("not authenticated ({})", joined(said)),
        Impersonated { user, acting, verb } => format!("{user} acts as {acting}, allowed by {verb}"),
        Authorized { by, .. } if by.is_empty() => "authorized".into(),
        Authorized { by, reason } if reason.is_empty() => format!("authorized by {by}"),
        // It names the authorizer itself.
        Authorized { by, reason } if reason.starts_with(&**by) => reason.to_string(),
        Authorized { by, reason } => format!("authorized by {by}: {reason}"),
        NotAuthorized { said } => format!("not authorized ({})", joined(said)),
        Denied { plugin } => format!("{plugin} said no"),
        Admitted { plugin, changed } => format!("{plugin} changed {changed}"),
        Validated => "validated".into(),
        Stored { resource, namespace, name, revision, operation, .. } => {
            format!("{} {} at {revision}", done(*operation), subject(resource, namespace, name))
        }
        Responded { code } => format!("answered {code}"),
        DryRun { resource, namespace, name, code } => {
            format!("answered {code} to a dry run: {} is not stored", subject(resource, namespace, name))
        }
        Refused { code, why, .. } => format!("refused with {code}: {why}"),
        WatchDelivered { resource, key, revision, watchers } => {
            format!("delivered {resource} {key} at {revision} to {watchers}")
        }
        InformerUpdated { resource, key, revision, .. } => {
            format!("informed of {resource} {key} at {revision}")
        }
        Enqueued { key, .. } => format!("enqueued {key}"),
        ReconcileStarted { key, .. } => format!("reconcile {key}"),
        ReconcileEnded { result } => format!("reconciled: {result}"),
        other => describe_node_side(other),
    }
}

/// Scheduler, kubelet and Events.
fn describe_node_side(step: &Step) -> String {
    use Step::*;
    match step {
        SchedulingAttempt { pod } => format!("schedule {pod}"),
        Filtered { pod, feasible, nodes } => format!("{feasible} of {nodes} nodes fit {pod}"),
        Scored { pod, node, score } => format!("{node} is best ({score}) for {pod}"),
        Assumed { pod, node } => format!("assumed {pod} on {node}"),
        Bound { pod, node } => format!("bound {pod} to {node}"),
        PodWorkerSync { pod, state, .. } => format!("{state} {pod}"),
        SandboxCreated { pod, address, .. } => format!("sandbox {address} for {pod}"),
        ImagePulled { image, pod, .. } => format!("pulled {image} for {pod}"),
        ContainerCreated { pod, container, .. } => format!("created container {container} of {pod}"),
        ContainerStarted { pod, container, .. } => format!("started container {container} of {pod}"),
        ContainerExited { pod, container, exit_code, .. } => {
            format!("container {container} exited {exit_code} in {pod}")
        }
        SandboxStopped { pod, .. } => format!("stopped the sandbox of {pod}"),
        EventRecorded { object, reason, .. } => format!("event {reason} about {object}"),
        other => format!("{other:?}"),
    }
}

fn joined(said: &[(Arc<str>, Arc<str>)]) -> String {
    let said: Vec<String> = said.iter().map(|(who, words)| format!("{who}: {words}")).collect();
    said.join("; ")
}

fn done(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "created",
        Operation::Update => "updated",
        Operation::Delete => "deleted",
    }
}

fn subject(resource: &str, namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("{resource} {name}"),
        namespace => format!("{resource} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests;
