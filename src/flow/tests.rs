//! Tests of the record itself.

use super::*;
use chrono::DateTime;

fn stored(revision: u64) -> Step {
    Step::Stored {
        resource: "pods".into(),
        namespace: "default".into(),
        name: "a".into(),
        revision,
        operation: WriteOperation::Update,
        uid: None,
        bytes: 0,
    }
}

fn informed(revision: u64) -> Step {
    let (component, resource, key) = ("kubelet".into(), "pods".into(), "default/a".into());
    Step::informed(component, resource, key, revision)
}

#[test]
fn the_oldest_steps_are_forgotten_with_their_revisions() {
    let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
    let kubelet = flow.name("kubelet");
    flow.record(None, stored(1));
    flow.record(None, informed(1));
    assert_eq!(flow.stored(1), Some(StepId(1)));
    assert_eq!(flow.informed(&kubelet, 1), Some(StepId(2)));
    for revision in 0..CAPACITY as u64 {
        flow.record(None, stored(revision + 2));
    }
    assert_eq!((flow.stored(1), flow.informed(&kubelet, 1)), (None, None));
    assert_eq!(flow.stored(2), Some(StepId(3)));
    let ring = flow.record.as_ref().unwrap().ring();
    assert_eq!((ring.steps.len(), ring.stored.len(), ring.informed.len()), (CAPACITY, CAPACITY, 0));
    drop(ring);
    let (steps, bytes) = flow.held();
    assert!(steps == CAPACITY && bytes >= CAPACITY * size_of::<Recorded>(), "{bytes}");
    assert_eq!(Flow::off().held(), (0, 0));
}

#[test]
fn who_writes_in_turn_with_whom_is_told() {
    let flow = Flow::new(Clock::stepped(DateTime::UNIX_EPOCH));
    flow.record(None, stored(1));
    let since = flow.newest();
    for round in 0..3 {
        for (number, user) in ["jane", "joe"].into_iter().enumerate() {
            let user = user.into();
            let received = Step::RequestReceived { user, verb: "update".into(), path: "/".into() };
            let request = flow.record(None, received);
            let known = Step::Authorized { by: "RBAC".into(), reason: "".into(), before: None };
            let cause = flow.record(request.cause(), known);
            flow.record(cause.cause(), stored(2 + round * 2 + number as u64));
        }
    }
    let writings = flow.writings(since);
    assert_eq!(writings.len(), 1);
    let said =
        "pods default/a is written 3 times by jane and 3 times by joe, in turn: each answers the other";
    assert_eq!(writings[0].to_string(), said);
    assert_eq!(flow.writings(flow.newest()), []);
}

#[test]
fn a_step_is_small() {
    // There are as many as the record holds, whatever happens.
    assert!(std::mem::size_of::<Step>() <= 80, "{}", std::mem::size_of::<Step>());
}

#[test]
fn switched_off_nothing_is_made_or_kept() {
    let flow = Flow::off();
    let id = flow.record_with(None, || unreachable!("nobody looks"));
    assert_eq!((id, id.cause(), flow.stored(1)), (StepId::NONE, None, None));
}
