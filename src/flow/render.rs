//! Prints a trace: one line a step, in lanes, each naming its cause. Readable at 110 columns.

use std::collections::HashMap;
use std::fmt::Write;

use super::StepId;
use super::step::{APISERVER, Operation, SCHEDULER, Step};
use super::trace::{Trace, TraceStep};

/// Columns of the parts of a line; with the blanks between them and the cause they make at most 110.
const COMPONENT: usize = 28;
const WHAT: usize = 48;

impl Trace {
    /// The trace as `kubarium trace` prints it. The letters are lanes: **A**piserver, **C**ontrollers,
    /// **S**cheduler, **K**ubelets; the column after them says which one exactly.
    pub fn render(&self) -> String {
        if self.steps.is_empty() {
            return format!("nothing is remembered about {}\n", self.subject);
        }
        let mut out =
            format!("{:>11} {:>7} lane {:<COMPONENT$} {}\n", "ms", "step", "component", self.subject);
        let mut components: HashMap<StepId, String> = HashMap::new();
        for step in &self.steps {
            let component = component_of(step, &components);
            write_line(&mut out, step, &component);
            components.insert(step.id, component);
        }
        out
    }
}

/// A step without a component of its own happened where its cause did.
fn component_of(step: &TraceStep, components: &HashMap<StepId, String>) -> String {
    let inherited = || components.get(&step.cause?).cloned();
    step.step.component().or_else(inherited).unwrap_or_default()
}

fn write_line(out: &mut String, step: &TraceStep, component: &str) {
    let milliseconds = step.at_microseconds as f64 / 1000.0;
    let (lane, component, what) =
        (lane(component), cut(component, COMPONENT), cut(&describe(&step.step), WHAT));
    let id = step.id.to_string();
    let cause = step.cause.map(|cause| format!(" <- {cause}")).unwrap_or_default();
    let line = format!("{milliseconds:>11.3} {id:>7} {lane} {component:<COMPONENT$} {what:<WHAT$}{cause}");
    writeln!(out, "{}", line.trim_end()).expect("a string takes every line");
}

fn lane(component: &str) -> &'static str {
    match component {
        APISERVER => "A...",
        SCHEDULER | "default-scheduler" => "..S.",
        _ if component.starts_with("kubelet") => "...K",
        _ => ".C..",
    }
}

/// At most `width` characters; what is cut off shows as `…`.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

fn describe(step: &Step) -> String {
    use Step::*;
    match step {
        RequestReceived { user, verb, path } if user.is_empty() => format!("{verb} {path}"),
        RequestReceived { user, verb, path } => format!("{verb} {path} ({user})"),
        Authenticated { user } => format!("authenticated as {user}"),
        Authorized { by, reason } if reason.is_empty() => format!("authorized by {by}"),
        Authorized { by, reason } => format!("authorized by {by}: {reason}"),
        Admitted { plugin, changed: true } => format!("admitted by {plugin}, changed"),
        Admitted { plugin, changed: false } => format!("admitted by {plugin}"),
        Validated => "validated".into(),
        Stored { resource, namespace, name, revision, operation } => {
            format!("{} {} at {revision}", done(*operation), subject(resource, namespace, name))
        }
        Responded { code } => format!("answered {code}"),
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
