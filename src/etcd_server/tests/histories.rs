//! Random concurrent histories, and whether there is an order in which each answer is right: linearizability,
//! found as Wing and Gong do, with what was seen already remembered (Lowe), each key by itself.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// What a client asks of one key, and what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    /// Told the value; empty: there is none.
    Read(String),
    Write(String),
    /// Writes the second if the first is there; told whether.
    Swap(String, String, bool),
    Delete(bool),
    /// A write that nobody was told the outcome of: done, or not, at any time after it began.
    Unknown(String),
}

#[derive(Debug, Clone)]
struct Done {
    operation: Operation,
    began: u64,
    /// None: never.
    ended: Option<u64>,
}

/// What the key holds afterwards; None if the answer cannot be.
fn step(operation: &Operation, state: &str) -> Option<String> {
    match operation {
        Operation::Read(seen) => (seen == state).then(|| state.to_owned()),
        Operation::Write(value) | Operation::Unknown(value) => Some(value.clone()),
        Operation::Swap(expected, value, true) => (expected == state).then(|| value.clone()),
        Operation::Swap(expected, _, false) => (expected != state).then(|| state.to_owned()),
        Operation::Delete(found) => (*found != state.is_empty()).then(String::new),
    }
}

/// Whether there is an order of all that fits to what was told and to what was before what.
fn is_linearizable(history: &[Done]) -> bool {
    assert!(history.len() <= 64, "as many as a set of bits has");
    let mut seen = HashSet::new();
    let mut open = vec![(0_u64, String::new())];
    let told = history.iter().enumerate().filter(|(_, done)| done.ended.is_some());
    let wanted = told.fold(0, |bits, (at, _)| bits | 1 << at);
    while let Some((placed, state)) = open.pop() {
        if placed & wanted == wanted {
            return true;
        }
        let waiting = || history.iter().enumerate().filter(|(at, _)| placed & 1 << at == 0);
        // Nothing comes before what had ended when it began.
        let first_end = waiting().filter_map(|(_, done)| done.ended).min().unwrap_or(u64::MAX);
        for (at, done) in waiting().filter(|(_, done)| done.began < first_end) {
            if let Some(next) = step(&done.operation, &state) {
                let found = (placed | 1 << at, next);
                if seen.insert(found.clone()) {
                    open.push(found);
                }
            }
        }
    }
    false
}

/// Numbers that are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn is_value(key: &str, value: &str) -> Compare {
    match value {
        "" => Compare { key: bytes(key), ..Default::default() },
        value => Compare { key: bytes(key), target: 3, value: Some(bytes(value)), ..Default::default() },
    }
}

async fn ask(
    server: &EtcdServer,
    key: &str,
    kind: u64,
    values: (String, String),
) -> Result<Operation, EtcdStatus> {
    let (expected, value) = values;
    let put = || PutRequest { key: bytes(key), value: bytes(&value), ..Default::default() };
    Ok(match kind {
        0..3 => {
            let found: RangeResponse = call(server, "KV/Range", &one(key)).await?;
            Operation::Read(texts(&found.kvs).pop().map(|(_, value)| value).unwrap_or_default())
        }
        3..5 => {
            let _: PutResponse = call(server, "KV/Put", &put()).await?;
            Operation::Write(value)
        }
        5..9 => {
            let operation = RequestOp { put: Nested::some(put()), ..Default::default() };
            let compare = Repeated(vec![is_value(key, &expected)]);
            let success = Repeated(vec![operation]);
            let request = TxnRequest { compare, success, ..Default::default() };
            let answer: TxnResponse = call(server, "KV/Txn", &request).await?;
            Operation::Swap(expected, value, answer.succeeded)
        }
        _ => {
            let request = DeleteRangeRequest { key: bytes(key), ..Default::default() };
            let answer: DeleteRangeResponse = call(server, "KV/DeleteRange", &request).await?;
            Operation::Delete(answer.deleted > 0)
        }
    })
}

/// Clients that do this and that to a key at the same time. One in twenty gives up on its write before it is
/// told what came of it.
async fn history(server: &EtcdServer, key: &'static str, seed: u64) -> Vec<Done> {
    let time = Arc::new(AtomicU64::new(1));
    let client = |client: u64| {
        let (server, time) = (server.clone(), time.clone());
        tokio::spawn(async move {
            let mut numbers = Numbers(seed * 100 + client);
            let mut done = Vec::new();
            for round in 0..8 {
                let value = format!("{client}.{round}");
                let expected = match numbers.below(3) {
                    0 => String::new(),
                    _ => format!("{}.{}", numbers.below(5), numbers.below(8)),
                };
                let gives_up = numbers.below(20) == 0;
                let kind = if gives_up { 3 } else { numbers.below(10) };
                let began = time.fetch_add(1, Ordering::SeqCst);
                let asked = ask(&server, key, kind, (expected, value.clone()));
                if gives_up {
                    let mut asked = Box::pin(asked);
                    let polled = futures::poll!(&mut asked);
                    drop((asked, polled));
                    done.push(Done { operation: Operation::Unknown(value), began, ended: None });
                    continue;
                }
                let operation = asked.await.unwrap();
                done.push(Done { operation, began, ended: Some(time.fetch_add(1, Ordering::SeqCst)) });
            }
            done
        })
    };
    let clients: Vec<_> = (0..5).map(client).collect();
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.unwrap());
    }
    all
}

/// A watch from the beginning tells every state that the key was in, in order, once.
async fn watched(server: &EtcdServer, key: &str) -> Vec<(i64, String)> {
    let mut talk = Talk::begin(server, "Watch/Watch").await;
    let create = WatchCreateRequest { key: bytes(key), start_revision: 1, ..Default::default() };
    talk.say(&WatchRequest { create: Nested::some(create), ..Default::default() });
    assert!(talk.hear::<WatchResponse>().await.created);
    talk.say(&WatchRequest { progress: Nested::some(Empty {}), ..Default::default() });
    let mut told = Vec::new();
    loop {
        let response: WatchResponse = talk.hear().await;
        if response.watch_id == -1 {
            return told;
        }
        for event in response.events.0 {
            let kv = event.kv.0.unwrap();
            told.push((kv.mod_revision, String::from_utf8(kv.value.to_vec()).unwrap()));
        }
    }
}

async fn check(server: &EtcdServer, seed: u64) {
    for key in ["a", "b"] {
        let history = history(server, key, seed).await;
        assert!(is_linearizable(&history), "seed {seed}: {history:#?}");
        let told = watched(server, key).await;
        assert!(told.is_sorted_by(|one, other| one.0 < other.0), "seed {seed}: {told:?}");
        for (revision, value) in told {
            let found = range(server, &RangeRequest { revision, ..one(key) }).await;
            assert_eq!(texts(&found.kvs).pop().map(|(_, value)| value).unwrap_or_default(), value);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_histories_have_an_order_in_memory() {
    for seed in 0..40 {
        check(&server(), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_histories_have_an_order_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..10 {
        let data_dir = Some(folder.path().join(seed.to_string()));
        let options = Options { data_dir, unsafe_no_fsync: true, ..Options::default() };
        check(&server_on(Kv::open(options, Clock::real()).unwrap()), seed).await;
    }
}

/// Each of these would pass if the search were too generous, or fail if it were too strict.
#[test]
fn the_search_finds_an_order_where_there_is_one_and_none_where_there_is_none() {
    let done = |operation, began, ended| Done { operation, began, ended: Some(ended) };
    let write = |value: &str| Operation::Write(value.to_owned());
    let read = |value: &str| Operation::Read(value.to_owned());
    let overlapping = [done(write("1"), 1, 10), done(read("1"), 2, 3), done(read("1"), 4, 5)];
    assert!(is_linearizable(&overlapping));
    let back_and_forth = [done(write("1"), 1, 10), done(read("1"), 2, 3), done(read(""), 4, 5)];
    assert!(!is_linearizable(&back_and_forth));
    let lost = [done(write("1"), 1, 2), done(read(""), 3, 4)];
    assert!(!is_linearizable(&lost));
    let swap = |told| Operation::Swap(String::new(), "2".to_owned(), told);
    assert!(!is_linearizable(&[done(swap(true), 1, 4), done(swap(true), 2, 3)]));
    assert!(is_linearizable(&[done(swap(true), 1, 4), done(swap(false), 2, 3)]));
    let unknown = Done { operation: Operation::Unknown("9".to_owned()), began: 1, ended: None };
    assert!(is_linearizable(&[unknown.clone(), done(read("9"), 5, 6)]));
    assert!(is_linearizable(&[unknown.clone(), done(read(""), 5, 6)]));
    assert!(!is_linearizable(&[Done { began: 7, ..unknown }, done(read("9"), 5, 6)]));
}
