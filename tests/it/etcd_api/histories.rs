//! Random concurrent histories with kills in between: there is an order in which each answer is right, and
//! what nobody was told the outcome of was done, or was not.

#[path = "../../../src/etcd_server/tests/linearizable.rs"]
mod linearizable;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use entropy::Entropy;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::support::PATIENCE;
use linearizable::{Done, Operation, is_linearizable};

const KEYS: [&str; 2] = ["a", "b"];
/// Of each key, so that a history has room in a set of bits.
const CLIENTS: usize = 4;
const ROUNDS: usize = 14;
/// In each history.
const KILLS: usize = 3;
const SEEDS: u64 = 2;

/// Which order there was between all clients, and how far they are.
#[derive(Default)]
struct Progress {
    time: AtomicU64,
    rounds: AtomicUsize,
}

/// One that does this and that to a key, wherever the server is at the moment.
struct Client {
    number: usize,
    key: &'static str,
    entropy: Entropy,
    place: watch::Receiver<SocketAddr>,
    progress: Arc<Progress>,
}

impl Client {
    async fn run(mut self) -> Vec<Done> {
        let mut history = Vec::new();
        for round in 0..ROUNDS {
            let address = *self.place.borrow_and_update();
            let expected = match self.entropy.below(3) {
                0 => String::new(),
                _ => format!("{}.{}", self.entropy.below(CLIENTS), self.entropy.below(ROUNDS)),
            };
            let kind = self.entropy.below(10);
            let value = format!("{}.{round}", self.number);
            let began = self.progress.time.fetch_add(1, Ordering::SeqCst);
            let told = tell(address, self.key, kind, (&expected, &value)).await;
            let ended = self.progress.time.fetch_add(1, Ordering::SeqCst);
            self.progress.rounds.fetch_add(1, Ordering::SeqCst);
            if let Some(operation) = told {
                history.push(Done { operation, began, ended: Some(ended) });
                continue;
            }
            let maybe = unknown(kind, (expected, value));
            history.extend(maybe.map(|operation| Done { operation, began, ended: None }));
            // Without an answer a server has gone, and another one comes.
            timeout(PATIENCE, self.place.changed()).await.expect("only a kill leaves no answer").unwrap();
        }
        history
    }
}

fn is_value(key: &str, value: &str) -> Compare {
    match value {
        "" => Compare { key: bytes(key), ..Default::default() },
        value => Compare { key: bytes(key), target: 3, value: Some(bytes(value)), ..Default::default() },
    }
}

/// What was asked and answered; None where there was no answer.
async fn tell(
    address: SocketAddr,
    key: &str,
    kind: usize,
    (expected, value): (&str, &str),
) -> Option<Operation> {
    let put = || PutRequest { key: bytes(key), value: bytes(value), ..Default::default() };
    Some(match kind {
        0..3 => {
            let request = RangeRequest { key: bytes(key), ..Default::default() };
            let found: RangeResponse = ask(address, "KV/Range", &request).await?.ok()?;
            let value = found.kvs.0.first().map(|kv| String::from_utf8(kv.value.to_vec()).unwrap());
            Operation::Read(value.unwrap_or_default())
        }
        3..5 => {
            let _: PutResponse = ask(address, "KV/Put", &put()).await?.ok()?;
            Operation::Write(value.to_owned())
        }
        5..9 => {
            let operation = RequestOp { put: Nested::some(put()), ..Default::default() };
            let (compare, success) = (Repeated(vec![is_value(key, expected)]), Repeated(vec![operation]));
            let request = TxnRequest { compare, success, ..Default::default() };
            let answer: TxnResponse = ask(address, "KV/Txn", &request).await?.ok()?;
            Operation::Swap(expected.to_owned(), value.to_owned(), answer.succeeded)
        }
        _ => {
            let request = DeleteRangeRequest { key: bytes(key), ..Default::default() };
            let answer: DeleteRangeResponse = ask(address, "KV/DeleteRange", &request).await?.ok()?;
            Operation::Delete(answer.deleted > 0)
        }
    })
}

/// What may have been done all the same.
fn unknown(kind: usize, (expected, value): (String, String)) -> Option<Operation> {
    match kind {
        0..3 => None,
        3..5 => Some(Operation::MaybeWrite(value)),
        5..9 => Some(Operation::MaybeSwap(expected, value)),
        _ => Some(Operation::MaybeDelete),
    }
}

async fn histories(seed: u64) -> Vec<Vec<Done>> {
    let folder = tempfile::tempdir().unwrap();
    let start = || EtcdProcess::start(folder.path(), &["--listen-client-urls", "127.0.0.1:0"]);
    let mut etcd = start();
    let (place, progress) = (watch::Sender::new(etcd.address), Arc::new(Progress::default()));
    let client = |number: usize, key| {
        let (place, progress) = (place.subscribe(), progress.clone());
        let entropy = Entropy::seeded(seed * 100 + number as u64);
        tokio::spawn(Client { number, key, entropy, place, progress }.run())
    };
    let clients = KEYS.map(|key| (0..CLIENTS).map(|number| client(number, key)).collect::<Vec<_>>());
    for kill in 1..=KILLS {
        let wanted = KEYS.len() * CLIENTS * ROUNDS * kill / (KILLS + 1);
        let rounds = async {
            while progress.rounds.load(Ordering::SeqCst) < wanted {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, rounds).await.expect("the clients go on");
        etcd.kill();
        etcd = start();
        place.send_replace(etcd.address);
    }
    let mut all = Vec::new();
    for (key, clients) in KEYS.into_iter().zip(clients) {
        let mut history = Vec::new();
        for client in clients {
            history.extend(timeout(PATIENCE, client).await.expect("each client ends").unwrap());
        }
        let began = progress.time.fetch_add(2, Ordering::SeqCst);
        let operation = tell(etcd.address, key, 0, ("", "")).await.expect("it is there");
        history.push(Done { operation, began, ended: Some(began + 1) });
        all.push(history);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_with_kills_in_between_have_an_order() {
    let mut unknown = 0;
    for seed in 0..SEEDS {
        for history in histories(seed).await {
            unknown += history.iter().filter(|done| done.ended.is_none()).count();
            assert!(is_linearizable(&history), "seed {seed}: {history:#?}");
        }
    }
    assert!(unknown > 0, "no kill has come in between");
}
