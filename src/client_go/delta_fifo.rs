//! `DeltaFifo`: what happened to each object since it was last looked at (client-go's `cache.DeltaFIFO`).
//! Next: src/client_go/shared_informer.rs
//!
//! Guarantees, as client-go gives them:
//! - a key waits at most once, in the place where its first delta put it; its deltas are in the order of
//!   their coming;
//! - nothing is merged away but the second of two deletions in a row: the one that knows more is kept;
//! - a list that lacks an object which was known is told as a deletion whose final state nobody saw
//!   ([`Deleted::FinalStateUnknown`]);
//! - deltas are processed under the queue's lock, so that a list that comes meanwhile compares with what is
//!   known after them, not before.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;

use foldhash::fast::RandomState;
use sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::indexer::Indexer;
use super::reflector::ReflectorStore;
use apimachinery::object::Object;
use flow::DeltaType;

/// For how many keys room is kept while nothing waits.
const KEPT_CAPACITY: usize = 1024;

/// One thing that happened to an object (`cache.Delta`).
#[derive(Clone, Debug)]
pub enum Delta {
    /// It came.
    Added(Arc<Object>),
    /// It changed.
    Updated(Arc<Object>),
    /// It went.
    Deleted(Deleted),
    /// A list had it: whether it came or changed, the indexer knows.
    Replaced(Arc<Object>),
    /// Nothing happened; it is told again (resync).
    Sync(Arc<Object>),
}

/// A deletion, and how much is known of it.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// The watch said so; this is its last state, at the revision of the deletion.
    Object(Arc<Object>),
    /// A list did not have it any more (`cache.DeletedFinalStateUnknown`).
    FinalStateUnknown {
        /// The object's key.
        key: Arc<str>,
        /// The last state that was seen, which may not have been the last one.
        last: Arc<Object>,
    },
}

impl Delta {
    /// Its type alone.
    pub fn type_of(&self) -> DeltaType {
        match self {
            Delta::Added(_) => DeltaType::Added,
            Delta::Updated(_) => DeltaType::Updated,
            Delta::Deleted(_) => DeltaType::Deleted,
            Delta::Replaced(_) => DeltaType::Replaced,
            Delta::Sync(_) => DeltaType::Sync,
        }
    }
}

/// What is known of a key's deltas when they come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Popped {
    /// Whether the key belongs to the first list.
    pub is_initial: bool,
    /// How many deletions in a row were merged into one.
    pub merged: u8,
}

/// The deltas of one key, oldest first; never empty.
pub type Deltas = Vec<Delta>;

/// The queue between a reflector and an informer.
///
/// Bound: one entry a key. The deltas of a key are as many as its reflector delivered since the queue was
/// last popped; the informer pops in the reflector's own task, so that is one batch of the watch, or one
/// list.
pub struct DeltaFifo {
    /// What the consumer holds already; where deletions that nobody saw are detected.
    known: Arc<Indexer>,
    state: Mutex<DeltaFifoState>,
    filled: Notify,
}

/// Invariant: a key is in `queue` if and only if it is in `items`, and its deltas are not empty.
#[derive(Default)]
struct DeltaFifoState {
    items: HashMap<Arc<str>, Deltas, RandomState>,
    queue: VecDeque<Arc<str>>,
    /// How many deletions of a key that waits were merged away; of those alone of which any were.
    merged: HashMap<Arc<str>, u8, RandomState>,
    /// Whether anything was ever put in.
    populated: bool,
    /// How many keys of the first list have not been popped yet.
    initial_population_count: usize,
}

impl Delta {
    /// The state that it tells of; of a deletion, the last one known.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => {
                object
            }
            Delta::Deleted(deleted) => deleted.last(),
        }
    }
}

impl Deleted {
    /// The last state known.
    pub fn last(&self) -> &Arc<Object> {
        match self {
            Deleted::Object(last) | Deleted::FinalStateUnknown { last, .. } => last,
        }
    }
}

impl DeltaFifo {
    /// An empty queue; `known` is the store that its consumer fills.
    pub fn new(known: Arc<Indexer>) -> DeltaFifo {
        DeltaFifo { known, state: Mutex::default(), filled: Notify::new() }
    }

    /// Waits until there is something, then hands up to `at_most` keys with their deltas to `process`, in
    /// order, and returns how many: none when the news is an empty list. `process` learns whether the key
    /// belongs to the first list, and what was merged; it must not touch this queue. Can be dropped while it
    /// waits without losing anything.
    pub async fn pop(&self, at_most: usize, process: impl FnMut(&Arc<str>, Deltas, Popped)) -> usize {
        self.wait().await;
        self.pop_ready(at_most, process)
    }

    /// Waits until there is something, or the news is an empty list. Can be dropped without losing anything.
    pub async fn wait(&self) {
        let mut filled = pin!(self.filled.notified());
        // Registered before looking, so that what comes after the look wakes.
        filled.as_mut().enable();
        if self.lock().queue.is_empty() {
            filled.await;
        }
    }

    /// The key that is popped next, and what is known of it last.
    pub fn next(&self) -> Option<(Arc<str>, Arc<Object>)> {
        let state = self.lock();
        let key = state.queue.front()?;
        let delta = state.items.get(key)?.last()?;
        Some((key.clone(), delta.object().clone()))
    }

    /// Whether the first list was popped to its end.
    pub fn has_synced(&self) -> bool {
        let state = self.lock();
        state.populated && state.initial_population_count == 0
    }

    /// Tells every known object once more, unless it waits here with news anyway (`Resync`).
    pub fn resync(&self) {
        let mut state = self.lock();
        for object in self.known.list() {
            let key = object.shared_key().clone();
            if !state.items.contains_key(&key) {
                state.put(key, Delta::Sync(object));
            }
        }
        self.filled.notify_one();
    }

    /// [`DeltaFifo::pop`] of what is there.
    pub fn pop_ready(&self, at_most: usize, mut process: impl FnMut(&Arc<str>, Deltas, Popped)) -> usize {
        let mut state = self.lock();
        for popped in 0..at_most {
            let Some(key) = state.queue.pop_front() else {
                state.shrink();
                return popped;
            };
            let is_initial = state.initial_population_count > 0;
            state.initial_population_count = state.initial_population_count.saturating_sub(1);
            let deltas = state.items.remove(&key).expect("a key is in the queue only with its deltas");
            let merged = state.merged.remove(&key).unwrap_or_default();
            process(&key, deltas, Popped { is_initial, merged });
        }
        state.check();
        at_most
    }

    fn put(&self, delta: Delta) {
        let key = delta.object().shared_key().clone();
        let mut state = self.lock();
        state.populated = true;
        state.put(key, delta);
        state.check();
        drop(state);
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, DeltaFifoState> {
        self.state.lock()
    }
}

impl ReflectorStore for DeltaFifo {
    fn replace(&self, items: Vec<Arc<Object>>, _resource_version: u64) {
        let mut state = self.lock();
        let mut listed = HashSet::with_capacity(items.len());
        for object in items {
            let key = object.shared_key().clone();
            listed.insert(key.clone());
            state.put(key, Delta::Replaced(object));
        }
        let missing = state.missing(&listed, &self.known);
        let count = listed.len() + missing.len();
        for (key, last) in missing {
            state.put(key.clone(), Delta::Deleted(Deleted::FinalStateUnknown { key, last }));
        }
        if !state.populated {
            state.populated = true;
            state.initial_population_count = count;
        }
        drop(state);
        // Even an empty list is news: it may be the one that everybody waits for.
        self.filled.notify_one();
    }

    fn add(&self, object: Arc<Object>) {
        self.put(Delta::Added(object));
    }

    fn update(&self, object: Arc<Object>) {
        self.put(Delta::Updated(object));
    }

    fn delete(&self, object: Arc<Object>) {
        let key = object.shared_key().clone();
        let mut state = self.lock();
        state.populated = true;
        // Nobody ever heard of it: there is nothing to tell.
        if state.items.contains_key(&key) || self.known.get_by_key(&key).is_some() {
            state.put(key, Delta::Deleted(Deleted::Object(object)));
        }
        drop(state);
        self.filled.notify_one();
    }

    fn bookmark(&self, _resource_version: u64) {}
}

impl DeltaFifoState {
    /// What of the invariant costs little to look at.
    fn check(&self) {
        debug_assert_eq!(self.queue.len(), self.items.len(), "a key waits if and only if it has deltas");
        let first =
            self.queue.front().map(|key| self.items.get(key).is_some_and(|deltas| !deltas.is_empty()));
        debug_assert_ne!(first, Some(false), "a key that waits has deltas");
    }

    fn put(&mut self, key: Arc<str>, delta: Delta) {
        match self.items.get_mut(&key) {
            Some(deltas) => {
                deltas.push(delta);
                if dedup_deletions(deltas) {
                    let merged = self.merged.entry(key).or_default();
                    *merged = merged.saturating_add(1);
                }
            }
            None => {
                self.items.insert(key.clone(), vec![delta]);
                self.queue.push_back(key);
            }
        }
    }

    /// Gives back the room that a long list took: between lists there is little in here.
    fn shrink(&mut self) {
        if self.items.capacity() > KEPT_CAPACITY {
            self.items.shrink_to(KEPT_CAPACITY);
            self.queue.shrink_to(KEPT_CAPACITY);
        }
    }

    /// What waits here or is known, and was not listed; in the order of the queue, then of the keys.
    fn missing(&self, listed: &HashSet<Arc<str>>, known: &Indexer) -> Vec<(Arc<str>, Arc<Object>)> {
        let mut missing = Vec::new();
        for key in self.queue.iter().filter(|key| !listed.contains(*key)) {
            missing.extend(self.items[key].last().map(|newest| (key.clone(), newest.object().clone())));
        }
        for key in known.list_keys() {
            if !listed.contains(&key) && !self.items.contains_key(&key) {
                missing.extend(known.get_by_key(&key).map(|last| (key, last)));
            }
        }
        missing
    }
}

/// Of two deletions in a row the one that saw the final state is kept, otherwise the newer one. Says whether
/// there were two.
fn dedup_deletions(deltas: &mut Deltas) -> bool {
    let [.., Delta::Deleted(older), Delta::Deleted(newer)] = &deltas[..] else { return false };
    let keep_older =
        matches!(newer, Deleted::FinalStateUnknown { .. }) && matches!(older, Deleted::Object(_));
    let drop_at = if keep_older { deltas.len() - 1 } else { deltas.len() - 2 };
    deltas.remove(drop_at);
    true
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use clock::Clock;

    fn object(name: &str, revision: u64) -> Arc<Object> {
        let metadata = json!({ "name": name, "resourceVersion": revision.to_string() });
        Arc::new(Object::from_value(&json!({ "metadata": metadata }), vec![]).unwrap())
    }

    fn text(delta: &Delta) -> String {
        match delta {
            Delta::Added(object) => format!("+{object:?}"),
            Delta::Updated(object) => format!("~{object:?}"),
            Delta::Replaced(object) => format!("={object:?}"),
            Delta::Sync(object) => format!("s{object:?}"),
            Delta::Deleted(Deleted::Object(last)) => format!("-{last:?}"),
            Delta::Deleted(Deleted::FinalStateUnknown { last, .. }) => format!("?{last:?}"),
        }
    }

    /// Everything that waits, a key a line; initial ones are marked.
    fn drain(fifo: &DeltaFifo) -> Vec<String> {
        let mut lines = vec![];
        fifo.pop_ready(usize::MAX, &mut |key: &Arc<str>, deltas: Deltas, popped: Popped| {
            let deltas: Vec<String> = deltas.iter().map(text).collect();
            let Popped { is_initial, merged } = popped;
            let merged = if merged > 0 { format!(" ({merged} merged)") } else { String::new() };
            lines.push(format!("{key}{}: {}{merged}", if is_initial { "!" } else { "" }, deltas.join(" ")));
        });
        lines
    }

    /// Does to a FIFO what `script` says: `+a@2` adds, `~` updates, `-` deletes, `=a@2,b@3` lists, `s`
    /// resyncs.
    fn play(fifo: &DeltaFifo, script: &str) {
        let read = |text: &str| {
            let (name, at) = text.split_once('@')?;
            Some(object(name, at.parse().ok()?))
        };
        for act in script.split_whitespace() {
            let rest = &act[1..];
            match (&act[..1], read(rest)) {
                ("+", Some(object)) => fifo.add(object),
                ("~", Some(object)) => fifo.update(object),
                ("-", Some(object)) => fifo.delete(object),
                ("=", _) => fifo.replace(rest.split(',').filter_map(read).collect(), 9),
                _ => fifo.resync(),
            }
        }
    }

    #[tokio::test]
    async fn an_empty_first_list_wakes_whoever_waits() {
        let fifo = Arc::new(DeltaFifo::new(Arc::new(Indexer::new())));
        let waiting = tokio::spawn({
            let fifo = fifo.clone();
            async move { fifo.pop(1, |_, _, _| ()).await }
        });
        // On this runtime of one thread it waits when it yields.
        tokio::task::yield_now().await;
        assert!(!fifo.has_synced());
        fifo.replace(vec![], 1);
        assert_eq!(waiting.await.unwrap(), 0);
        assert!(fifo.has_synced());
    }

    #[test]
    fn deltas_are_kept_in_order_and_told_once() {
        let cases = [
            ("in the order of the first delta", "+a@2 +b@3 ~a@4", "a: +a@2 ~a@4; b: +b@3"),
            ("added, deleted, added", "+a@2 -a@3 +a@4", "a: +a@2 -a@3 +a@4"),
            ("of two deletions the newer", "-k@2 -k@3", "k: -k@3 (1 merged)"),
            ("of two deletions the one that knows more", "-k@2 =", "k: -k@2 (1 merged)"),
            ("a deletion of what nobody knows", "-a@2", ""),
            ("a list", "=k@1,a@2", "k!: =k@1; a!: =a@2"),
            ("a list without what is known", "=a@2", "a!: =a@2; k!: ?k@1"),
            ("a list without what waits", "+a@2 ~k@3 =k@4", "a: +a@2 ?a@2; k: ~k@3 =k@4"),
            ("two lists", "=a@2 =b@3", "a!: =a@2 ?a@2; k!: ?k@1 (1 merged); b: =b@3"),
            ("the same again", "s", "k: sk@1"),
            ("not again what waits with news", "~k@2 s", "k: ~k@2"),
        ];
        for (name, script, expected) in cases {
            let known = Arc::new(Indexer::new());
            known.update(object("k", 1));
            let fifo = DeltaFifo::new(known);
            play(&fifo, script);
            assert_eq!(drain(&fifo).join("; "), expected, "{name}");
            assert!(drain(&fifo).is_empty(), "{name}");
        }
    }

    #[test]
    fn it_has_synced_when_the_first_list_was_popped() {
        let fifo = DeltaFifo::new(Arc::new(Indexer::new()));
        assert!(!fifo.has_synced());
        fifo.replace(vec![object("a", 1), object("b", 2)], 2);
        fifo.add(object("c", 3));
        let mut popped = vec![];
        while !fifo.has_synced() {
            fifo.pop_ready(1, &mut |key: &Arc<str>, _, Popped { is_initial, .. }| {
                popped.push((key.to_string(), is_initial));
            });
        }
        assert_eq!(popped, [("a".to_owned(), true), ("b".to_owned(), true)]);
        assert_eq!(drain(&fifo), ["c: +c@3"]);
        fifo.replace(vec![object("a", 4)], 4);
        assert!(fifo.has_synced(), "later lists do not unsync");

        let empty = DeltaFifo::new(Arc::new(Indexer::new()));
        empty.replace(vec![], 1);
        assert!(empty.has_synced());
    }

    #[tokio::test]
    async fn a_waiting_pop_is_woken_and_can_be_given_up() {
        let fifo = Arc::new(DeltaFifo::new(Arc::new(Indexer::new())));
        let clock = Clock::real();
        let nothing = |_: &Arc<str>, _: Deltas, _: Popped| panic!("there is nothing");
        assert!(clock.timeout(Duration::ZERO, fifo.pop(1, nothing)).await.is_err());
        let popping = tokio::spawn({
            let fifo = fifo.clone();
            async move { fifo.pop(9, |_, _, _| {}).await }
        });
        tokio::task::yield_now().await;
        fifo.add(object("a", 1));
        assert_eq!(popping.await.unwrap(), 1);
    }
}
