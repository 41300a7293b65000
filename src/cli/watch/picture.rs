//! What a record says of the present: lanes, what flows in them, queues and who works at what.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flow::{Lane, Step, StepId, TraceStep};

/// Lines of what happened last that are kept: more than a screen has.
const MAX_LINES: usize = 200;
/// Of so many steps it is known where they happened, for those that say nothing of that themselves.
const MAX_PLACES: usize = 4_096;

/// Where something happens, in the order of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LiveLane {
    Apiserver,
    Etcd,
    Informers,
    Controllers,
    Scheduler,
    Kubelets,
}

impl LiveLane {
    pub(super) const ALL: [LiveLane; 6] = [
        LiveLane::Apiserver,
        LiveLane::Etcd,
        LiveLane::Informers,
        LiveLane::Controllers,
        LiveLane::Scheduler,
        LiveLane::Kubelets,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            LiveLane::Apiserver => "apiserver",
            LiveLane::Etcd => "etcd",
            LiveLane::Informers => "informers",
            LiveLane::Controllers => "controllers",
            LiveLane::Scheduler => "scheduler",
            LiveLane::Kubelets => "kubelets",
        }
    }

    fn of(step: &Step, component: &str) -> LiveLane {
        match step {
            Step::Stored { .. } | Step::Terminating { .. } => LiveLane::Etcd,
            Step::InformerUpdated { .. } | Step::Listed { .. } | Step::Enqueued { .. } => LiveLane::Informers,
            _ => match Lane::of(component) {
                Lane::Apiserver => LiveLane::Apiserver,
                Lane::Controllers => LiveLane::Controllers,
                Lane::Scheduler => LiveLane::Scheduler,
                Lane::Kubelets => LiveLane::Kubelets,
            },
        }
    }
}

/// What flows in a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneFlow {
    pub(super) steps: u64,
    /// Since the screen was drawn last.
    pub(super) new: u64,
    pub(super) last: String,
}

/// A work queue and its workers.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveQueue {
    pub(super) waiting: BTreeSet<String>,
    /// By the step with which they began.
    pub(super) working: BTreeMap<StepId, String>,
    pub(super) done: u64,
    /// The step that was the last to move it.
    pub(super) moved: StepId,
}

/// What the steps so far make.
#[derive(Debug, Default)]
pub(super) struct LivePicture {
    lanes: [LaneFlow; 6],
    pub(super) queues: BTreeMap<String, LiveQueue>,
    pub(super) lines: VecDeque<String>,
    pub(super) newest: StepId,
    pub(super) missed: u64,
    places: BTreeMap<StepId, String>,
}

impl LivePicture {
    /// What came; `missed` steps before that are unknown, and with them what queues hold.
    pub(super) fn add(&mut self, steps: Vec<TraceStep>, missed: u64) {
        if missed > 0 {
            self.missed += missed;
            self.queues.clear();
        }
        steps.into_iter().for_each(|step| self.add_one(&step));
    }

    fn add_one(&mut self, step: &TraceStep) {
        let own = step.step.component();
        let of_cause = || step.cause.and_then(|cause| self.places.get(&cause).cloned());
        let component = own.or_else(of_cause).unwrap_or_default();
        let words = step.words();
        let lane = &mut self.lanes[LiveLane::of(&step.step, &component) as usize];
        lane.steps += 1;
        lane.new += 1;
        lane.last.clone_from(&words);
        self.lines.push_back(format!("{component}: {words}"));
        self.lines.drain(..self.lines.len().saturating_sub(MAX_LINES));
        self.places.insert(step.id, component);
        if self.places.len() > MAX_PLACES {
            self.places.pop_first();
        }
        self.newest = step.id;
        self.move_queues(step);
    }

    fn move_queues(&mut self, step: &TraceStep) {
        match &step.step {
            Step::Enqueued { queue, key, .. } => {
                self.queue(queue, step.id).waiting.insert(key.to_string());
            }
            Step::ReconcileStarted { controller, key, .. } => {
                let queue = self.queue(controller, step.id);
                queue.waiting.remove(&**key);
                queue.working.insert(step.id, key.to_string());
            }
            Step::ReconcileEnded { .. } => {
                let Some(started) = step.cause else { return };
                let queue = self.queues.values_mut().find(|queue| queue.working.contains_key(&started));
                if let Some(queue) = queue {
                    queue.working.remove(&started);
                    queue.done += 1;
                    queue.moved = step.id;
                }
            }
            _ => {}
        }
    }

    fn queue(&mut self, name: &str, moved: StepId) -> &mut LiveQueue {
        let queue = self.queues.entry(name.to_owned()).or_default();
        queue.moved = moved;
        queue
    }

    /// What flows in a lane.
    pub(super) fn lane(&self, lane: LiveLane) -> &LaneFlow {
        &self.lanes[lane as usize]
    }

    /// From here on it is counted anew what is new.
    pub(super) fn drawn(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.new = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: u64, cause: u64, step: Step) -> TraceStep {
        TraceStep { id: StepId(id), cause: StepId(cause).cause(), at_microseconds: id, step }
    }

    fn enqueued(id: u64, key: &str) -> TraceStep {
        let (queue, key) = ("deployment".into(), key.into());
        step(id, 0, Step::Enqueued { queue, key, retries: 0, delay_milliseconds: 0 })
    }

    #[test]
    fn queues_fill_and_workers_hold_what_they_took() {
        let mut picture = LivePicture::default();
        let started =
            Step::ReconcileStarted { controller: "deployment".into(), key: "ns/a".into(), coalesced: 0 };
        let ended = Step::ReconcileEnded { result: "done".into(), compared: None };
        picture.add(vec![enqueued(1, "ns/a"), enqueued(2, "ns/b"), step(3, 1, started)], 0);
        let queue = &picture.queues["deployment"];
        assert_eq!((queue.waiting.len(), queue.working.values().next().unwrap().as_str()), (1, "ns/a"));
        picture.add(vec![step(4, 3, ended)], 0);
        let queue = &picture.queues["deployment"];
        assert_eq!((queue.working.len(), queue.done, queue.moved), (0, 1, StepId(4)));
        assert_eq!(picture.lane(LiveLane::Informers).steps, 2);
        assert_eq!(picture.lane(LiveLane::Controllers).last, "reconciled: done");
        // Of what was forgotten nobody knows whether it waits.
        picture.add(vec![enqueued(90, "ns/c")], 85);
        assert_eq!((picture.queues["deployment"].waiting.len(), picture.missed), (1, 85));
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut picture = LivePicture::default();
        picture.add((1..=MAX_PLACES as u64 + 9).map(|id| step(id, 0, Step::VALIDATED)).collect(), 0);
        assert_eq!((picture.lines.len(), picture.places.len()), (MAX_LINES, MAX_PLACES));
    }
}
