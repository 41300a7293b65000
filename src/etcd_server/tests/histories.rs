//! Random concurrent histories, and whether there is an order in which each answer is right.

use std::sync::atomic::{AtomicU64, Ordering};

use super::linearizable::{Done, Operation, is_linearizable};
use super::*;

/// Numbers that are the same for the same seed.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
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
                    done.push(Done { operation: Operation::MaybeWrite(value), began, ended: None });
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
