//! Records that are written down by hand, and what is told of them.

use chrono::DateTime;

use super::super::handwritten::{Handwritten, deployment as story};
use super::super::{Flow, Step, TracedObject, Uid, WriteOperation};
use super::*;
use clock::Clock;

const GOLDEN: &str = include_str!("../testdata/deployment.txt");

#[test]
fn a_deployment_is_told_from_its_request_to_the_container() {
    let text = story().flow.trace("deployments.apps", "ns", "web").render();
    assert_eq!(text, GOLDEN, "\n{text}");
    assert!(text.contains("nginx-with-a-name-too-long-for-it of ns/web-5d4-x"), "{text}");
}

#[test]
fn a_pod_is_told_from_the_request_that_nobody_caused() {
    let trace = story().flow.trace("pods", "ns", "web-5d4-x");
    let told: Vec<u64> = trace.steps.iter().map(|step| step.id.0).collect();
    // Straight back to the deployment's request, without what else came of it; everything that came of
    // the pod.
    assert_eq!(told, [4, 5, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28]);
    let json = serde_json::to_string(&trace).unwrap();
    assert_eq!(serde_json::from_str::<Trace>(&json).unwrap(), trace);
}

#[test]
fn of_what_is_not_remembered_it_says_so() {
    let text = story().flow.trace("pods", "", "ghost").render();
    assert_eq!(text, "nothing is recorded of pods ghost\n");
    assert_eq!(Flow::off().trace("pods", "ns", "a"), Trace::default());
}

#[test]
fn a_watch_that_is_faster_than_the_writer_does_not_hide_the_cause() {
    let story = Handwritten::new();
    let (component, resource, key) = ("kubelet/n".into(), "pods".into(), "ns/a".into());
    story.step(None, Step::informed(component, resource, key, 3));
    story.write(None, "", "pods", "a", 3);
    let trace = story.flow.trace("pods", "ns", "a");
    let causes: Vec<Option<StepId>> = trace.steps.iter().map(|step| step.cause).collect();
    assert_eq!(causes, [Some(StepId(3)), None, Some(StepId(2)), Some(StepId(3))]);
}

/// Without the blanks and line breaks.
fn letters(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn whatever_the_width_nothing_is_cut() {
    let trace = story().flow.trace("deployments.apps", "ns", "web");
    let whole = trace.render();
    assert_eq!(trace.render_within(Some(400)), whole);
    for columns in [80, 100, 120] {
        let text = trace.render_within(Some(columns));
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}\n{text}");
        let mut told = letters(&text);
        for step in &trace.steps {
            let cause = step.cause.map(|cause| format!("<-{cause}")).unwrap_or_default();
            told = told.replacen(&cause, "", 1);
            let what = letters(&describe(&step.step));
            assert!(told.contains(&what), "{columns}: {what} is not in\n{text}");
        }
    }
    let narrow = trace.render_within(Some(10));
    assert!(narrow.contains("informed of") && !narrow.contains('…'), "{narrow}");
}

const FIRST: &str = "00000000-0000-4000-8000-000000000001";
const SECOND: &str = "00000000-0000-4000-8000-000000000002";

fn life(flow: &Flow, uid: &str, revision: u64, operation: WriteOperation) -> Option<StepId> {
    let request = Step::RequestReceived { user: "".into(), verb: "write".into(), path: "/api/v1/x".into() };
    let request = flow.record(None, request).cause();
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    let uid = Uid::parse(uid);
    flow.record(request, Step::Stored { resource, namespace, name, revision, operation, uid, bytes: 0 })
        .cause()
}

fn refusal(flow: &Flow, name: &str, namespace: &str) {
    let (resource, namespace, name) = ("pods".into(), namespace.into(), name.into());
    flow.record(None, Step::Refused { resource, namespace, name, code: 403, why: "no".into() });
}

#[test]
fn objects_of_one_name_are_told_apart_by_their_uids() {
    let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
    refusal(&flow, "a", "ns");
    life(&flow, FIRST, 2, WriteOperation::Create);
    life(&flow, FIRST, 3, WriteOperation::Delete);
    refusal(&flow, "a", "ns");
    life(&flow, SECOND, 4, WriteOperation::Create);
    let told = |uid| {
        let trace = flow.trace_of(&TracedObject { resource: "pods", namespace: "ns", name: "a", uid });
        let steps: Vec<u64> = trace.steps.iter().map(|step| step.id.0).collect();
        (steps, trace)
    };
    let (steps, newest) = told("");
    assert_eq!(steps, [6, 7, 8]);
    let text = newest.render();
    let other = format!("another object of that name: --uid {FIRST} (from #1, deleted)");
    assert!(text.contains(&other) && text.contains(&format!("pods ns/a ({SECOND})")), "{text}");
    assert_eq!(told(FIRST).0, [1, 2, 3, 4, 5]);
    assert_eq!(told("00000000-0000-4000-8000-000000000002").0, [6, 7, 8]);
    let (steps, nobody) = told("ffff");
    assert!(steps.is_empty() && nobody.others.len() == 2, "{nobody:?}");
    let json = serde_json::to_value(&newest).unwrap();
    assert_eq!((&json["uid"], &json["others"][0]["uid"]), (&SECOND.into(), &FIRST.into()));
    assert_eq!(json["steps"][2]["uid"], SECOND);
}

#[test]
fn what_comes_late_of_an_object_that_is_gone_is_told_of_it() {
    let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
    let first = life(&flow, FIRST, 2, WriteOperation::Create);
    life(&flow, FIRST, 3, WriteOperation::Delete);
    let attempt = flow.record(first, Step::SchedulingAttempt { pod: "ns/a".into() });
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    let refused = Step::Refused { resource, namespace, name, code: 404, why: "not found".into() };
    flow.record(attempt.cause(), refused);
    life(&flow, SECOND, 4, WriteOperation::Create);
    let told: Vec<u64> = flow.trace("pods", "ns", "a").steps.iter().map(|step| step.id.0).collect();
    assert_eq!(told, [7, 8]);
}

#[test]
fn what_came_of_one_object_is_not_told_of_the_other() {
    let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
    let first = life(&flow, FIRST, 2, WriteOperation::Create);
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    let (revision, operation, uid) = (3, WriteOperation::Create, Uid::parse(SECOND));
    flow.record(first, Step::Stored { resource, namespace, name, revision, operation, uid, bytes: 0 });
    let subject = TracedObject { resource: "pods", namespace: "ns", name: "a", uid: FIRST };
    assert_eq!(flow.trace_of(&subject).steps.len(), 2);
}

#[test]
fn refusals_without_a_name_are_kept_under_their_resource() {
    let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
    for (name, namespace) in [("", "ns"), ("", "other"), ("", ""), ("b", "ns")] {
        refusal(&flow, name, namespace);
    }
    let subject = TracedObject { resource: "pods", namespace: "ns", ..TracedObject::default() };
    let told: Vec<u64> = flow.trace_of(&subject).steps.iter().map(|step| step.id.0).collect();
    assert_eq!(told, [1, 3], "those of the namespace, and of all namespaces");
    let text = flow.trace("pods", "ns", "b").render();
    assert!(text.contains("refused requests that name no object: 2 (trace pods tells them)"), "{text}");
}

#[test]
fn what_is_forgotten_is_said_to_be() {
    let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
    life(&flow, FIRST, 2, WriteOperation::Create);
    let ghost = flow.trace("pods", "ns", "ghost").render();
    assert_eq!(ghost, "nothing is recorded of pods ns/ghost\n", "nothing is forgotten yet");
    for _ in 0..CAPACITY - 2 {
        flow.record(None, Step::VALIDATED);
    }
    life(&flow, FIRST, 3, WriteOperation::Update);
    let words = "forgotten: the record holds the last 65536 steps, from #3 on; 2 older ones are gone";
    for name in ["a", "ghost"] {
        let text = flow.trace("pods", "ns", name).render();
        assert!(text.contains(words), "{name}: {text}");
    }
    life(&flow, SECOND, 4, WriteOperation::Create);
    let text = flow.trace("pods", "ns", "a").render();
    assert!(!text.contains("forgotten"), "all of this one is there: {text}");
}

#[test]
fn where_no_step_passes_the_filter_it_is_said() {
    let story = Handwritten::new();
    story.write(None, "", "pods", "a", 2);
    let shown = |lane| {
        let wanted = WantedSteps { lane: Some(lane), ..WantedSteps::default() };
        story.flow.trace("pods", "ns", "a").render_wanted(None, &wanted)
    };
    assert_eq!(shown(Lane::Kubelets), "nothing that is recorded of pods ns/a passes the filter\n");
    assert!(shown(Lane::Apiserver).contains("kube-apiserver"), "{}", shown(Lane::Apiserver));
}

#[test]
fn a_pod_that_a_node_woke_names_the_node() {
    let story = Handwritten::new();
    story.write(None, "", "pods", "a", 2);
    let informed = |resource: &str, key: &str, revision| {
        Step::informed("kube-scheduler".into(), resource.into(), key.into(), revision)
    };
    let seen = story.step(None, informed("pods", "ns/a", 2));
    story.step(seen, Step::SchedulingAttempt { pod: "ns/a".into() });
    let label = story.write(None, "", "nodes", "n", 3);
    let seen = story.step(None, informed("nodes", "n", 3));
    let again = story.step(seen, Step::SchedulingAttempt { pod: "ns/a".into() });
    story.step(again, Step::Assumed { pod: "ns/a".into(), node: "n".into() });
    let told = |resource: &str, name: &str| -> Vec<u64> {
        let trace = story.flow.trace(resource, "ns", name);
        trace.steps.iter().map(|step| step.id.0).collect()
    };
    assert_eq!(label, Some(StepId(7)));
    assert_eq!(told("pods", "a"), [1, 2, 3, 4, 5, 6, 7, 9, 10, 11]);
    assert_eq!(told("nodes", "n"), [6, 7, 8, 9, 10, 11]);
}
