//! Kills in between: what was acknowledged is there, and comes in its order.

use std::collections::BTreeMap;
use std::sync::Arc;

use sync::Mutex;

use super::*;
use crate::support::eventually;
use crate::support::programs::free_port;

const WRITERS: u64 = 4;
const ROUNDS: usize = 3;

/// Of each writer the number that was acknowledged last, and the one that was tried last.
type Progress = Arc<Mutex<BTreeMap<u64, (u64, u64)>>>;

/// Counts its key up, each time by comparing first, until the server is gone.
async fn count_up(address: SocketAddr, writer: u64, progress: Progress) {
    let (acknowledged, _) = progress.lock().get(&writer).copied().unwrap_or_default();
    let mut last = read(address, writer).await.unwrap_or(acknowledged);
    loop {
        let next = last + 1;
        progress.lock().entry(writer).or_default().1 = next;
        match ask::<TxnResponse>(address, "KV/Txn", &step(writer, last, next)).await {
            Some(Ok(answer)) => assert!(answer.succeeded, "writer {writer} is alone with its key at {last}"),
            _ => return,
        }
        progress.lock().entry(writer).or_default().0 = next;
        last = next;
    }
}

/// Puts the next number, and the same under a second key, if the last one is there.
fn step(writer: u64, last: u64, next: u64) -> TxnRequest {
    let key = |name: &str| bytes(&format!("{name}/{writer}"));
    let put = |name| PutRequest { key: key(name), value: bytes(&next.to_string()), ..Default::default() };
    let compare = match last {
        0 => Compare { key: key("a"), ..Default::default() },
        last => {
            Compare { key: key("a"), target: 3, value: Some(bytes(&last.to_string())), ..Default::default() }
        }
    };
    let operation = |name| RequestOp { put: Nested::some(put(name)), ..Default::default() };
    let success = Repeated(vec![operation("a"), operation("b")]);
    TxnRequest { compare: Repeated(vec![compare]), success, ..Default::default() }
}

/// What is there of both keys, which is the same; None if nobody answers.
async fn read(address: SocketAddr, writer: u64) -> Option<u64> {
    let mut numbers = Vec::new();
    for name in ["a", "b"] {
        let request = RangeRequest { key: bytes(&format!("{name}/{writer}")), ..Default::default() };
        let found: RangeResponse = ask(address, "KV/Range", &request).await?.ok()?;
        let value = found.kvs.0.first().map(|kv| (kv.mod_revision, kv.value.clone()));
        numbers.push(value.map(|(at, value)| (at, String::from_utf8(value.to_vec()).unwrap())));
    }
    assert_eq!(numbers[0], numbers[1], "both or none, at one revision");
    Some(numbers.remove(0).map_or(0, |(_, value)| value.parse().unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_and_transactions_stay_whole() {
    let folder = tempfile::tempdir().unwrap();
    let progress = Progress::default();
    for round in 1..=ROUNDS {
        let etcd = EtcdProcess::start(folder.path(), &["--listen-client-urls", "127.0.0.1:0"]);
        let before = progress.lock().clone();
        for (writer, (acknowledged, tried)) in before {
            let found = read(etcd.address, writer).await.unwrap();
            assert!((acknowledged..=tried).contains(&found), "{writer}: {acknowledged}..={tried}, {found}");
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(count_up(etcd.address, writer, progress.clone())))
            .collect();
        let wanted = 40 * round as u64;
        while progress.lock().values().map(|(acknowledged, _)| acknowledged).sum::<u64>() < wanted {
            assert!(writers.iter().all(|writer| !writer.is_finished()), "nobody has killed it yet");
            tokio::task::yield_now().await;
        }
        etcd.kill();
        for writer in writers {
            writer.await.unwrap();
        }
    }
}

/// How often it is killed under who watches.
const KILLS: u64 = 3;

#[test]
fn a_watch_misses_and_doubles_nothing_and_leases_go_on_whatever_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("127.0.0.1:{}", free_port());
    let start = || EtcdProcess::start(folder.path(), &["--listen-client-urls", &url]);
    let mut etcd = start();
    let etcdctl = Etcdctl::new(etcd.address);
    let grant =
        |seconds: &str| etcdctl.ok(&["lease", "grant", seconds]).split(' ').nth(1).unwrap().to_owned();
    let (kept, soon) = (grant("600"), grant("20"));
    etcdctl.ok(&["put", "k/soon", "0", "--lease", &soon]);
    etcdctl.ok(&["put", "k/kept", "0", "--lease", &kept]);
    let told = folder.path().join("told");
    let mut watch = etcdctl.command(&["watch", "k/", "--prefix", "--rev", "1"]);
    let watch = watch.stdout(fs::File::create(&told).unwrap()).stdin(Stdio::null());
    let _watching = KilledAtEnd(watch.spawn().unwrap());
    let mut expected = vec!["PUT k/soon 0".to_owned(), "PUT k/kept 0".to_owned()];
    for round in 0..KILLS {
        for number in 0..4 {
            let key = format!("k/{round}-{number}");
            etcdctl.ok(&["put", &key, "1"]);
            expected.push(format!("PUT {key} 1"));
        }
        // Who watches has not been told of the last ones, or has just been.
        etcd.kill();
        etcd = start();
    }
    let left = etcdctl.ok(&["lease", "timetolive", &kept, "--keys"]);
    assert!(left.contains("granted with TTL(600s)") && left.contains("attached keys([k/kept])"), "{left}");
    etcdctl.ok(&["lease", "revoke", &kept]);
    // Versions of etcdctl leave lines free or do not.
    let events = || {
        let told = fs::read_to_string(&told).unwrap();
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        let events = words.replace("PUT", "\nPUT").replace("DELETE", "\nDELETE");
        events
            .lines()
            .map(|event| event.trim().to_owned())
            .filter(|event| !event.is_empty())
            .collect::<Vec<_>>()
    };
    let ends = ["DELETE k/kept", "DELETE k/soon"];
    let is_end = |event: &String| ends.contains(&event.as_str());
    eventually("both leases to end", || {
        (events().iter().filter(|event| is_end(event)).count() == 2).then_some(())
    });
    let others: Vec<String> = events().into_iter().filter(|event| !is_end(event)).collect();
    assert_eq!(others, expected);
}
