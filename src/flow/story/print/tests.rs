//! How a story looks in a terminal.

use super::Look;
use crate::handwritten::{Handwritten, deployment};
use crate::story::stage::{StageKind, StageOutcome, StoryStage};
use crate::story::tests::{printed, request, written};

#[test]
fn in_a_narrow_terminal_nothing_is_lost_and_in_colour_neither() {
    let trace = deployment().flow.trace("deployments.apps", "ns", "web");
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    let whole = printed(&trace);
    for columns in [40, 80, 120] {
        let text = trace.story().print(Look { columns: Some(columns), whole: true, ..Look::default() });
        assert!(text.lines().all(|line| line.chars().count() <= columns.max(50)), "{columns}\n{text}");
        assert_eq!(letters(&text), letters(&whole), "{columns}");
    }
    let painted = trace.story().print(Look { colour: true, ..Look::default() });
    let mut bare = painted.clone();
    for code in ["0", "1", "2", "31", "32", "33", "34", "35", "36"] {
        bare = bare.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_ne!(painted, bare);
    assert_eq!(bare, whole);
}

#[test]
fn in_a_terminal_what_went_well_takes_a_line_each() {
    let story = deployment().flow.trace("deployments.apps", "ns", "web").story();
    let text = story.print(Look { columns: Some(80), ..Look::default() });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let is_done = |stage: &&StoryStage| stage.outcome == StageOutcome::Done;
    let done: Vec<_> = story.stages.iter().filter(is_done).collect();
    for stage in &done {
        let lines = stage.lines(Look { columns: Some(80), ..Look::default() });
        assert!(lines.len() == 1 || stage.kind == StageKind::Request, "{lines:#?}");
        assert!(stage.cause.is_none_or(|cause| lines[0].ends_with(&format!(" <- {cause}"))), "{lines:#?}");
    }
    assert!(!done.is_empty() && text.contains('…'), "{text}");
}

#[test]
fn one_stage_alone_is_never_left_out() {
    let record = Handwritten::new();
    for revision in 1..=20 {
        let asked = request(&record, None, "", "create", "/api/v1/namespaces/ns/pods");
        written(&record, asked, "pods", "a", revision);
    }
    let mut story = record.flow.trace("pods", "ns", "a").story();
    story.stages.truncate(32);
    let text = story.print(Look::default());
    assert!(text.contains("... 2 stages more: --all tells them ..."), "{text}");
    story.stages.truncate(31);
    let text = story.print(Look::default());
    assert!(!text.contains("more: --all"), "{text}");
}
