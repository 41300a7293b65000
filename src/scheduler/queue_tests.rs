//! The queue: who goes first, who waits for what, and for how long.

use super::*;
use crate::fixtures::{node, pod};
use crate::framework::cluster_event::ActionType;
use crate::framework::preempting::Preempting;
use crate::framework::runtime::{Framework, Weighted};
use crate::plugins::args::DefaultPreemptionArgs;
use crate::plugins::default_plugins;
use crate::plugins::default_preemption::DefaultPreemption;
use client_go::indexer::Indexer;
use client_go::lister::Lister;
use entropy::Entropy;
use serde_json::json;

fn queue() -> (SchedulingQueue, Clock) {
    let clock = Clock::stepped(Time::UNIX_EPOCH);
    let plugins = default_plugins(&|_| Lister::new(Arc::new(Indexer::new())), &clock);
    let profiles = Profiles::new(Framework::new("default-scheduler", plugins), Vec::new());
    (SchedulingQueue::new(Arc::new(profiles), clock.clone()), clock)
}

#[test]
fn the_option_says_after_how_long_a_pod_is_tried_again() {
    let (queue, clock) = queue();
    let queue = queue.trying_again_after(Duration::from_secs(30));
    queue.add(pod("impatient", json!({})));
    reject(&queue, pop(&queue).unwrap(), "NodeAffinity");
    clock.advance(Duration::from_secs(29));
    queue.flush_leftover();
    assert!(pop(&queue).is_none());
    clock.advance(Duration::from_secs(2));
    queue.flush_leftover();
    assert!(pop(&queue).is_some());
}

fn pop(queue: &SchedulingQueue) -> Option<QueuedPodInfo> {
    queue.try_pop(&mut queue.lock())
}

fn node_added(cpu: &str) -> Occurrence {
    let new = node("new", json!({"status": {"allocatable": {"cpu": cpu}}}));
    Occurrence { event: (EventResource::Node, ActionType::Add), old: None, new: Some(new) }
}

fn reject(queue: &SchedulingQueue, mut info: QueuedPodInfo, plugin: &'static str) {
    info.unschedulable_plugins = [plugin].into();
    queue.add_unschedulable(info);
}

#[test]
fn a_plugin_that_held_a_pod_back_is_counted_when_it_holds_none_any_more() {
    let (queue, _) = queue();
    queue.add(pod("big", json!({"containers": [{"resources": {"requests": {"cpu": "6"}}}]})));
    reject(&queue, pop(&queue).unwrap(), "NodeResourcesFit");
    let held = |count: usize| BTreeMap::from([(("NodeResourcesFit", Arc::from("default-scheduler")), count)]);
    assert_eq!(queue.held_back(), held(1));
    queue.move_all(node_added("8"));
    assert_eq!(queue.held_back(), held(0));
}

#[test]
fn important_pods_go_first_then_those_that_came_first() {
    let (queue, clock) = queue();
    for (name, priority) in [("b", 0), ("a", 0), ("system", 2000), ("c", 0)] {
        queue.add(pod(name, json!({"priority": priority})));
        clock.advance(Duration::from_millis(1));
    }
    let order: Vec<String> =
        std::iter::from_fn(|| pop(&queue)).map(|info| info.pod.uid().to_owned()).collect();
    assert_eq!(order, ["system", "b", "a", "c"]);
}

#[test]
fn a_rejected_pod_waits_for_what_helps_it() {
    let (queue, _) = queue();
    queue.add(pod("big", json!({"containers": [{"resources": {"requests": {"cpu": "6"}}}]})));
    let info = pop(&queue).unwrap();
    reject(&queue, info, "NodeResourcesFit");
    assert!(pop(&queue).is_none());
    queue.move_all(node_added("4"));
    assert!(pop(&queue).is_none(), "too small a node helps nobody");
    queue.move_all(node_added("8"));
    let info = pop(&queue).expect("with nothing else to do a back-off is not waited out");
    assert_eq!(info.attempts, 2);
    let Because::Other(node) = &info.because else { panic!("{:?}", info.because) };
    assert_eq!(node.metadata.name, "new", "what woke it");
    reject(&queue, info, "NodeAffinity");
    queue.move_all(Occurrence {
        event: (EventResource::AssignedPod, ActionType::Delete),
        old: Some(pod("gone", json!({})).object.clone()),
        new: None,
    });
    assert!(pop(&queue).is_none(), "a pod that leaves changes no labels");
}

#[test]
fn what_happens_during_an_attempt_counts_afterwards() {
    let (queue, _) = queue();
    queue.add(pod("big", json!({"containers": [{"resources": {"requests": {"cpu": "6"}}}]})));
    let info = pop(&queue).unwrap();
    queue.move_all(node_added("8"));
    reject(&queue, info, "NodeResourcesFit");
    assert!(pop(&queue).is_some());
}

#[test]
fn errors_back_off_for_one_to_ten_seconds() {
    let (queue, clock) = queue();
    queue.add(pod("unlucky", json!({})));
    let mut pauses = Vec::new();
    for _ in 0..6 {
        queue.add_unschedulable(pop(&queue).unwrap());
        let mut seconds = 0;
        while queue.lock().backoff.first().is_some_and(|(until, _)| *until > clock.now()) {
            assert!(pop(&queue).is_none());
            clock.advance(Duration::from_secs(1));
            seconds += 1;
        }
        pauses.push(seconds);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
}

#[test]
fn nobody_waits_longer_than_five_minutes() {
    let (queue, clock) = queue();
    queue.add(pod("patient", json!({})));
    reject(&queue, pop(&queue).unwrap(), "NodeAffinity");
    clock.advance(Duration::from_secs(299));
    queue.flush_leftover();
    assert!(pop(&queue).is_none());
    clock.advance(Duration::from_secs(2));
    queue.flush_leftover();
    assert!(pop(&queue).is_some());
}

#[test]
fn a_gated_pod_is_tried_when_its_last_gate_is_gone() {
    let (queue, clock) = queue();
    queue.add(pod("gated", json!({"schedulingGates": [{"name": "example.com/wait"}]})));
    clock.advance(Duration::from_secs(1000));
    queue.flush_leftover();
    assert!(pop(&queue).is_none());
    let event = (EventResource::TargetPod, ActionType::UpdatePodSchedulingGatesEliminated);
    queue.update(pod("gated", json!({})), Some(Occurrence { event, old: None, new: None }));
    assert!(pop(&queue).is_some());
}

/// As after the watch has shown that one of its victims is gone.
fn victim_gone(name: &str) -> Occurrence {
    let old = Some(pod(name, json!({})).object.clone());
    Occurrence { event: (EventResource::AssignedPod, ActionType::Delete), old, new: None }
}

#[test]
fn who_makes_room_is_not_tried_before_all_victims_go() {
    let clock = Clock::stepped(Time::UNIX_EPOCH);
    let nothing = || Lister::new(Arc::new(Indexer::new()));
    let known = Arc::new(Indexer::new());
    let preempting = Preempting::new(Lister::new(known.clone()));
    let plugin = DefaultPreemption {
        budgets: nothing(),
        args: DefaultPreemptionArgs::default(),
        entropy: Entropy::seeded(7),
        preempting: preempting.clone(),
    };
    let mut plugins = default_plugins(&|_| nothing(), &clock);
    plugins.retain(|other| other.plugin.name() != "DefaultPreemption");
    plugins.push(Weighted { plugin: Box::new(plugin), weight: 0 });
    let profiles = Profiles::new(Framework::new("default-scheduler", plugins), Vec::new());
    let queue = SchedulingQueue::new(Arc::new(profiles), clock.clone());
    let last = pod("second", json!({})).object.clone();
    known.update(last.clone());
    queue.add(pod("big", json!({"priority": 10})));
    let info = pop(&queue).unwrap();
    preempting.begin("big");
    reject(&queue, info, "NodeResourcesFit");
    queue.move_all(victim_gone("first"));
    assert!(pop(&queue).is_none(), "the second is still to go");
    preempting.is_left("big", &last);
    clock.advance(Duration::from_secs(10));
    queue.move_all(victim_gone("other"));
    assert!(pop(&queue).is_none(), "it has not been seen to go");
    known.delete(&last.key());
    queue.move_all(victim_gone("second"));
    assert!(pop(&queue).is_some());
    preempting.end("big");
}

#[test]
fn a_pod_that_goes_is_forgotten() {
    let (queue, _) = queue();
    queue.add(pod("a", json!({})));
    queue.remove("a");
    assert!(pop(&queue).is_none());
    assert!(queue.lock().active.is_empty());
}

#[tokio::test]
async fn nobody_is_looked_for_while_nobody_was_left_over() {
    let (queue, _) = queue();
    queue.add(pod("gated", json!({"schedulingGates": [{"name": "example.com/wait"}]})));
    let mut waiting = std::pin::pin!(queue.wait_for_leftover());
    assert!(futures::poll!(&mut waiting).is_pending(), "what is gated is not left over");
    queue.add(pod("big", json!({})));
    reject(&queue, pop(&queue).unwrap(), "NodeResourcesFit");
    assert!(futures::poll!(&mut waiting).is_ready());
}
