//! A story as a sequence diagram, as GitHub and many editors draw it (<https://mermaid.js.org>).

use std::fmt::Write;

use crate::story::{StageKind, StageOutcome, StoryStage, TraceStory};

/// The participants, in the order of a request's way; kubectl stands for whoever asks.
const PARTICIPANTS: &[(&str, &str)] = &[
    ("U", "user"),
    ("A", "kube-apiserver"),
    ("E", "etcd"),
    ("C", "controllers"),
    ("S", "kube-scheduler"),
    ("K", "kubelets"),
];

/// The diagram's text.
pub(super) fn diagram(story: &TraceStory) -> String {
    let mut out = String::from("sequenceDiagram\n");
    let mut line = |text: String| writeln!(out, "    {text}").expect("a string takes every line");
    for (letter, name) in PARTICIPANTS {
        line(format!("participant {letter} as {name}"));
    }
    for stage in &story.stages {
        line(message(stage));
    }
    out
}

/// Who tells whom. A line of the diagram must not have what mermaid reads as its own.
fn message(stage: &StoryStage) -> String {
    let words = escaped(&format!("{}. {}", stage.number, stage.words));
    let is_no = stage.outcome == StageOutcome::Refused;
    match stage.kind {
        StageKind::Request if is_no => format!("A--xU: {words}"),
        StageKind::Request | StageKind::Discovery => format!("U->>A: {words}"),
        StageKind::Start
        | StageKind::Checks
        | StageKind::Decoding
        | StageKind::Admission
        | StageKind::Aggregator => format!("Note over A: {words}"),
        StageKind::Store => format!("A->>E: {words}"),
        StageKind::Watch => format!("A-->>C: {words}"),
        StageKind::Controller => format!("C{}A: {words}", arrow(is_no)),
        StageKind::Scheduler => format!("S{}A: {words}", arrow(is_no)),
        StageKind::Kubelet => format!("K{}A: {words}", arrow(is_no)),
    }
}

fn arrow(is_no: bool) -> &'static str {
    if is_no { "-x" } else { "->>" }
}

fn escaped(text: &str) -> String {
    text.replace('#', "#35;").replace(';', ",").replace("#35,", "#35;")
}
