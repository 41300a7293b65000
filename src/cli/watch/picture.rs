//! What a record says of the present: lanes, what flows in them, queues and who works at what.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flow::{Lane, Step, StepId, TraceStep};

/// Lines of what happened last that are kept: more than a screen has.
const MAX_LINES: usize = 200;
/// Of so many steps it is known where they happened, for those that say nothing of that themselves.
const MAX_PLACES: usize = 4_096;
/// The last seconds of the cluster's clock of which it is known how much flowed in each.
pub(super) const FLOW_SECONDS: usize = 16;

/// In a second.
const MICROSECONDS: u64 = 1_000_000;

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
    /// By the second, the present one last.
    pub(super) seconds: [u64; FLOW_SECONDS],
    pub(super) last: String,
}

impl LaneFlow {
    /// So many seconds have begun.
    fn pass(&mut self, begun: usize) {
        let gone = begun.min(FLOW_SECONDS);
        self.seconds.copy_within(gone.., 0);
        self.seconds[FLOW_SECONDS - gone..].fill(0);
    }

    fn add(&mut self, words: &str) {
        self.steps += 1;
        self.new += 1;
        self.seconds[FLOW_SECONDS - 1] += 1;
        words.clone_into(&mut self.last);
    }
}

/// A step as it is told.
#[derive(Clone, Debug)]
pub(super) struct SeenStep {
    pub(super) lane: LiveLane,
    pub(super) component: String,
    pub(super) words: String,
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
    pub(super) told: VecDeque<SeenStep>,
    pub(super) newest: StepId,
    /// The second of the newest step.
    second: u64,
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
        let lane = LiveLane::of(&step.step, &component);
        self.pass(step.at_microseconds / MICROSECONDS);
        self.lanes[lane as usize].add(&words);
        self.places.insert(step.id, component.clone());
        self.told.push_back(SeenStep { lane, component, words });
        self.told.drain(..self.told.len().saturating_sub(MAX_LINES));
        if self.places.len() > MAX_PLACES {
            self.places.pop_first();
        }
        self.newest = step.id;
        self.move_queues(step);
    }

    /// By the cluster's clock, which stands while it is held.
    fn pass(&mut self, second: u64) {
        let begun = usize::try_from(second.saturating_sub(self.second)).unwrap_or(usize::MAX);
        self.lanes.iter_mut().for_each(|lane| lane.pass(begun));
        self.second = self.second.max(second);
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
    fn what_flowed_is_known_by_the_second_of_the_cluster_s_clock() {
        let mut picture = LivePicture::default();
        let seconds = |picture: &LivePicture| picture.lane(LiveLane::Informers).seconds;
        let happen = |picture: &mut LivePicture, second: u64| {
            let at_microseconds = second * MICROSECONDS;
            picture.add(vec![TraceStep { at_microseconds, ..enqueued(1, "ns/a") }], 0);
        };
        [2, 2, 3, 5].into_iter().for_each(|second| happen(&mut picture, second));
        assert_eq!(seconds(&picture)[FLOW_SECONDS - 5..], [0, 2, 1, 0, 1]);
        happen(&mut picture, 5 + FLOW_SECONDS as u64 - 1);
        assert_eq!((seconds(&picture)[0], seconds(&picture).iter().sum::<u64>()), (1, 2));
        happen(&mut picture, u64::MAX / MICROSECONDS);
        assert_eq!(seconds(&picture).iter().sum::<u64>(), 1);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut picture = LivePicture::default();
        picture.add((1..=MAX_PLACES as u64 + 9).map(|id| step(id, 0, Step::VALIDATED)).collect(), 0);
        assert_eq!((picture.told.len(), picture.places.len()), (MAX_LINES, MAX_PLACES));
    }
}
