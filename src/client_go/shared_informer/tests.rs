//! A SharedInformer over a scripted server: what its handlers are told.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::DateTime;
use serde_json::json;

use super::*;
use crate::fake::FakeApi;
use crate::informer_factory::SharedInformerFactory;
use crate::tasks::{StopOnDrop, Tasks};
use apimachinery::status::Status;
use apis::core::config_map::CONFIG_MAPS;

/// Writes down what it is told, and keeps the state that this amounts to.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<(Vec<String>, Revisions)>>);

/// By key.
type Revisions = BTreeMap<String, u64>;

impl Notes {
    fn told(&self) -> Vec<String> {
        self.0.lock().0.clone()
    }

    fn note(&self, text: String, object: &Object, exists: bool) {
        let (key, revision) = (object.key(), object.metadata.resource_version);
        let mut notes = self.0.lock();
        assert!(notes.1.get(&key).is_none_or(|before| *before <= revision), "{key} went back");
        notes.0.push(text);
        if exists {
            notes.1.insert(key, revision)
        } else {
            notes.1.remove(&key)
        };
    }
}

impl ResourceEventHandler for Notes {
    fn on_add(&self, new: &Arc<Object>, is_initial_list: bool) {
        assert!(!self.0.lock().1.contains_key(&new.key()), "{new:?} came twice");
        self.note(format!("add {new:?}{}", if is_initial_list { "!" } else { "" }), new, true);
    }
    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        assert_eq!(self.0.lock().1.get(&old.key()), Some(&old.metadata.resource_version));
        self.note(format!("update {old:?} {new:?}"), new, true);
    }
    fn on_delete(&self, last: &Deleted) {
        let how = if matches!(last, Deleted::Object(_)) { "delete" } else { "lost" };
        self.note(format!("{how} {:?}", last.last()), last.last(), false);
    }
}

struct Started {
    api: Arc<FakeApi>,
    clock: Clock,
    flow: Flow,
    informer: Arc<SharedInformer>,
    factory: SharedInformerFactory,
    tasks: Tasks,
    _stop: StopOnDrop,
}

impl Started {
    fn new() -> Started {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let (api, flow) = (FakeApi::new(&CONFIG_MAPS, false), Flow::new(clock.clone()));
        let entropy = Entropy::seeded(1);
        let client = api.client(&clock, &flow);
        let factory = SharedInformerFactory::new(client, "tester", clock.clone(), entropy.clone());
        let informer = factory.informer(&CONFIG_MAPS);
        let tasks = Tasks::new(clock.clone(), entropy);
        let _stop = tasks.stop_on_drop();
        Started { api, clock, flow, informer, factory, tasks, _stop }
    }

    async fn start(&self) {
        self.factory.start(&self.tasks);
        self.factory.wait_for_cache_sync().await;
    }

    /// Lets time pass until something is true.
    async fn until(&self, what: impl Fn() -> bool) {
        for _ in 0..100_000 {
            if what() {
                return;
            }
            if let Some(pause) = self.clock.next_wake() {
                self.clock.advance(pause);
            }
            tokio::task::yield_now().await;
        }
        panic!("it did not become true");
    }
}

#[tokio::test]
async fn handlers_hear_of_everything_in_order_also_across_cut_and_lost_watches() {
    let started = Started::new();
    let (api, notes) = (&started.api, Notes::default());
    api.put("ns", "a", json!({}));
    let registration = started.informer.add_handler(notes.clone());
    assert!(!registration.has_synced() && !started.informer.has_synced());
    started.start().await;
    assert!(registration.has_synced() && started.informer.has_synced());
    api.put("ns", "a", json!({ "x": "1" }));
    api.put("ns", "b", json!({}));
    started.until(|| notes.told().len() == 3).await;
    api.cut_watches();
    api.delete("ns/a");
    started.until(|| notes.told().len() == 4).await;
    // Lost: what happens while nobody can watch any more, of which only the outcome is told.
    api.put("ns", "c", json!({}));
    started.until(|| notes.told().len() == 5).await;
    api.bookmark();
    api.cut_watches();
    api.delete("ns/c");
    api.put("ns", "b", json!({ "x": "2" }));
    api.put("ns", "d", json!({}));
    api.compact();
    started.until(|| notes.told().len() == 8).await;
    let expected = [
        "add ns/a@1!",
        "update ns/a@1 ns/a@2",
        "add ns/b@3",
        "delete ns/a@4",
        "add ns/c@5",
        "update ns/b@3 ns/b@7",
        "add ns/d@8",
        "lost ns/c@5",
    ];
    assert_eq!(notes.told(), expected);
}

#[tokio::test]
async fn an_empty_list_is_a_list() {
    let started = Started::new();
    started.factory.start(&started.tasks);
    started.until(|| started.informer.has_synced()).await;
    assert!(started.informer.lister().all().is_empty());
}

#[tokio::test]
async fn a_late_handler_is_told_of_everything_and_a_panic_of_another_does_not_matter() {
    struct Panics;
    impl ResourceEventHandler for Panics {
        fn on_add(&self, _: &Arc<Object>, _: bool) {
            panic!("on purpose");
        }
        fn on_update(&self, _: &Arc<Object>, _: &Arc<Object>) {}
        fn on_delete(&self, _: &Deleted) {}
    }
    let started = Started::new();
    started.informer.add_handler(Panics);
    started.api.put("ns", "a", json!({}));
    started.start().await;
    let notes = Notes::default();
    let registration = started.informer.add_handler(notes.clone());
    started.until(|| registration.has_synced()).await;
    started.api.put("ns", "b", json!({}));
    started.until(|| notes.told().len() == 2).await;
    assert_eq!(notes.told(), ["add ns/a@1!", "add ns/b@2"]);
    started.informer.resync();
    started.until(|| notes.told().len() == 4).await;
    assert_eq!(started.tasks.restarts(), 0);
}

#[tokio::test]
async fn an_update_can_be_found_as_the_cause_of_what_follows() {
    let started = Started::new();
    started.api.put("ns", "old", json!({}));
    started.start().await;
    let revision = started.api.put("ns", "a", json!({}));
    let tester = started.flow.name("tester");
    started.until(|| started.informer.lister().get("ns", "a").is_some()).await;
    assert!(started.flow.informed(&tester, revision).is_some());
    assert!(started.flow.informed(&tester, 1).is_none(), "it was there before anybody looked");
}

/// Random writes and cuts, then the cache, the handler's account and the server have to agree.
#[tokio::test]
async fn hammered_it_ends_up_with_what_the_server_has() {
    for seed in 0..20 {
        let started = Started::new();
        let (api, notes) = (&started.api, Notes::default());
        started.informer.add_handler(notes.clone());
        started.start().await;
        let mut random = fastrand::Rng::with_seed(seed);
        for round in 0..300 {
            let name = format!("o{}", random.usize(..20));
            match random.usize(..20) {
                0 => api.cut_watches(),
                1 => (api.compact(), api.cut_watches()).0,
                2 => api.fail_with(vec![Status::internal("on purpose")]),
                3..7 => api.delete(&format!("ns/{name}")),
                _ => drop(api.put("ns", &name, json!({ "round": round.to_string() }))),
            }
            if random.bool() {
                started.clock.advance(Duration::from_millis(random.u64(..5_000)));
                tokio::task::yield_now().await;
            }
        }
        let revisions = |objects: Vec<Arc<Object>>| -> Revisions {
            objects.iter().map(|object| (object.key(), object.metadata.resource_version)).collect()
        };
        let agree = || {
            let held = revisions(started.informer.lister().all());
            held == revisions(api.objects()) && held == notes.0.lock().1
        };
        started.until(agree).await;
    }
}

#[tokio::test]
async fn a_handler_that_was_removed_is_told_nothing_more_and_others_are() {
    let started = Started::new();
    started.start().await;
    let [goes, stays] = [(), ()].map(|()| Notes::default());
    let registration = started.informer.add_handler(goes.clone());
    started.informer.add_handler(stays.clone());
    started.api.put("ns", "a", json!({}));
    started.until(|| goes.told().len() == 1 && stays.told().len() == 1).await;
    started.informer.remove_handler(&registration);
    assert!(!registration.has_synced());
    started.api.put("ns", "b", json!({}));
    started.until(|| stays.told().len() == 2).await;
    assert_eq!(goes.told(), ["add ns/a@1"]);
    started.informer.remove_handler(&registration);
}
