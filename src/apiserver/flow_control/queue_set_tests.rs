//! Whose turn it is, as data: what comes and goes, and how things stand then.

use std::collections::HashMap;

use super::super::metrics::FlowControlMetrics;
use super::super::shuffle_sharding::hash_flow;
use super::super::work_estimate::WorkEstimate;
use super::*;

/// A level, and its requests by their names.
struct Scene {
    set: QueueSet,
    metrics: FlowControlMetrics,
    places: HashMap<String, (QueueSetPlace, Option<oneshot::Receiver<()>>)>,
    now: Duration,
}

impl Scene {
    fn new(queuing: Queuing, limit: usize) -> Scene {
        let now = Duration::ZERO;
        let mut set = QueueSet::new(now);
        set.set_queuing(queuing);
        set.set_limit(now, limit, limit);
        Scene { set, metrics: FlowControlMetrics::new(now), places: HashMap::new(), now }
    }

    /// One word does one thing: `5ms` passes; `+a1` comes, of flow `a`; `+a1*3` with three seats; `-a1` goes;
    /// `=4` are the seats from now on.
    fn play(&mut self, words: &str) {
        for word in words.split_whitespace() {
            match word.split_at(1) {
                ("+", request) => self.arrive(request),
                ("-", name) => {
                    let (place, _) = self.places.remove(name).expect("it is there");
                    assert!(self.set.leave(self.now, place).is_none());
                }
                ("=", limit) => self.set.set_limit(self.now, limit.parse().unwrap(), 1),
                _ => self.now += Duration::from_millis(word.trim_end_matches("ms").parse().unwrap()),
            }
        }
    }

    fn arrive(&mut self, request: &str) {
        let (name, seats) = request.split_once('*').unwrap_or((request, "1"));
        let initial_seats = seats.parse().unwrap();
        let estimate = WorkEstimate { initial_seats, final_seats: 0, additional_latency: Duration::ZERO };
        let arrival = Arrival {
            flow: self.metrics.flow(&"level".into(), &"schema".into()),
            distinguisher: name[..1].into(),
            hash: hash_flow("schema", &name[..1]),
            estimate,
            user: Arc::default(),
            info: Arc::default(),
        };
        match self.set.arrive(self.now, arrival) {
            QueueSetOutcome::Refused => {}
            QueueSetOutcome::Executing(place) => drop(self.places.insert(name.into(), (place, None))),
            QueueSetOutcome::Waiting(place, turn) => {
                drop(self.places.insert(name.into(), (place, Some(turn))))
            }
        }
    }

    /// Who is worked on and who waits, in the order of their names.
    fn standing(&mut self) -> String {
        let mut executing = vec![];
        let mut waiting = vec![];
        for (name, (_, turn)) in &mut self.places {
            let is_waiting = turn.as_mut().is_some_and(|turn| turn.try_recv().is_err());
            if is_waiting { &mut waiting } else { &mut executing }.push(name.clone());
            if !is_waiting {
                *turn = None;
            }
        }
        executing.sort();
        waiting.sort();
        assert_eq!((self.set.executing, self.set.waiting), (executing.len(), waiting.len()));
        format!("{} | {}", executing.join(" "), waiting.join(" ")).trim().to_owned()
    }
}

#[test]
fn turns_are_fair_among_flows() {
    let queued = Queuing::Queue { queues: 64, hand_size: 1, length_limit: 3 };
    for (queuing, limit, steps) in [
        // What does not fit is refused, or waits; who is exempt always goes on.
        (Queuing::Reject, 2, &[("+a1 +a2 +a3", "a1 a2 |"), ("-a1 +a4*2 +a5", "a2 a5 |")][..]),
        (Queuing::Exempt, 0, &[("+a1 +a2 +a3*5", "a1 a2 a3 |")]),
        // Flows take turns, however many of one wait; a full queue refuses.
        (
            queued,
            1,
            &[
                ("+a1 +a2 +a3 +a4 +a5 +b1", "a1 | a2 a3 a4 b1"),
                ("3ms -a1", "b1 | a2 a3 a4"),
                ("3ms +b2 -b1", "a2 | a3 a4 b2"),
                ("3ms -a2", "b2 | a3 a4"),
                ("3ms -b2", "a3 | a4"),
                ("3ms -a3 3ms -a4", "|"),
            ],
        ),
        // Who takes long pays for it.
        (
            queued,
            1,
            &[
                ("+a1 +a2 +b1 +b2 +b3", "a1 | a2 b1 b2 b3"),
                ("30ms -a1", "b1 | a2 b2 b3"),
                ("3ms -b1", "b2 | a2 b3"),
                ("3ms -b2", "b3 | a2"),
                ("3ms -b3", "a2 |"),
            ],
        ),
        // A wide one waits until there is room, and nobody overtakes it; one that is too wide goes alone.
        (
            queued,
            3,
            &[
                ("+a1 +a2 +a3*3 +b1", "a1 a2 b1 | a3"),
                ("3ms -b1 +b2", "a1 a2 b2 | a3"),
                ("3ms -a1 -a2 -b2", "a3 |"),
                ("+a4*9 -a3", "a4 |"),
            ],
        ),
        // More seats let more in; who goes away leaves the queue.
        (
            queued,
            1,
            &[("+a1 +a2 +b1", "a1 | a2 b1"), ("=2", "a1 b1 | a2"), ("-a2 -b1", "a1 |"), ("=0", "a1 |")],
        ),
    ] {
        let mut scene = Scene::new(queuing, limit);
        for (words, expected) in steps {
            scene.play(words);
            assert_eq!(scene.standing(), *expected, "{queuing:?}, then {words}");
        }
    }
}

#[test]
fn queues_that_are_too_many_are_used_up() {
    let queued = |queues| Queuing::Queue { queues, hand_size: 1, length_limit: 3 };
    let mut scene = Scene::new(queued(64), 1);
    scene.play("+a1 +a2 +b1 +c1");
    scene.set.set_queuing(queued(1));
    scene.play("3ms -a1 3ms");
    assert_eq!((scene.set.waiting, scene.set.queues.len()), (2, 64));
    scene.play("=9 -a2 -b1 3ms -c1");
    assert_eq!(scene.set.queues.len(), 61);
    assert!(scene.set.is_idle() && scene.set.active_queues == 0 && scene.set.queued_seats == 0);
    assert_eq!((scene.set.seats_in_use, scene.set.seats_waiting), (0, 0));
}

#[test]
fn seats_are_held_for_what_comes_afterwards() {
    let mut scene = Scene::new(Queuing::Queue { queues: 8, hand_size: 2, length_limit: 3 }, 4);
    let time = Duration::from_millis(5);
    let estimate = WorkEstimate { initial_seats: 1, final_seats: 6, additional_latency: time };
    let flow = scene.metrics.flow(&"level".into(), &"schema".into());
    let user = Arc::default();
    let info = Arc::default();
    let arrival = Arrival { flow, distinguisher: "".into(), hash: 0, estimate, user, info };
    let QueueSetOutcome::Executing(place) = scene.set.arrive(scene.now, arrival) else {
        panic!("there is room")
    };
    scene.play("+a1 +a2");
    assert_eq!((scene.set.executing, scene.set.waiting), (1, 2));
    // Six seats for five milliseconds are four for seven and a half.
    let held = scene.set.leave(scene.now, place).unwrap();
    assert_eq!((held.seats, held.time), (4, Duration::from_micros(7500)));
    assert_eq!((scene.set.executing, scene.set.waiting, scene.set.seats_in_use), (0, 2, 4));
    scene.set.release(scene.now + held.time, &held);
    assert_eq!((scene.set.executing, scene.set.waiting, scene.set.seats_in_use), (2, 0, 2));
}
