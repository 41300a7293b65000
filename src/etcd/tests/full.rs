//! A disk that fills up, and has room again.
//!
//! No file of the process may grow over a bound, which it raises itself when it has seen enough: what the
//! kernel then answers sled is much like a full disk. It is this test binary once more, running only
//! [`child`].

use std::process::Command;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::*;

const DATA_DIR: &str = "KUBARIUM_TEST_FULL_DATA_DIR";

/// Writes until it fails; what was acknowledged.
async fn fill(kv: &Kv) -> (Vec<(String, Revision)>, StoreError) {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let key = format!("/{number}");
        let length = if number % 10 == 0 { 300_000 } else { 5000 };
        match kv.txn(&key, Expect::Any, value(&"x".repeat(length))).await {
            Ok(txn) => acknowledged.push((key, committed(txn))),
            Err(error) => return (acknowledged, error),
        }
    }
    unreachable!("the disk is not endless")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test below, in a process of its own"]
async fn child() {
    let Ok(dir) = std::env::var(DATA_DIR) else { return };
    let options = || disk_options(Path::new(&dir));
    let kv = Kv::open(options(), Clock::real()).unwrap();
    let lease = kv.grant_lease(Duration::from_secs(3600)).await.unwrap();
    assert!(kv.writable().is_ok());
    let (mut acknowledged, error) = fill(&kv).await;
    assert!(acknowledged.len() > 5, "{error}");
    assert!(matches!(&error, StoreError::Io(_)), "{error}");
    assert!(kv.writable().is_err());
    assert!(kv.txn("/more", Expect::Any, value("x")).await.is_err(), "there is still no room");
    let newest = acknowledged.last().unwrap().1;
    assert_eq!(kv.revision(), newest);
    // What is not in memory any more may be unreadable until then, but what is there is what was there.
    let last = kv.get(&acknowledged.last().unwrap().0, None);
    assert!(last.is_ok_and(|(found, _)| found.is_some_and(|found| found.mod_revision == newest)));

    let mut limit = getrlimit(Resource::Fsize);
    limit.current = limit.maximum;
    setrlimit(Resource::Fsize, limit).unwrap();
    while kv.writable().is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    is_all_there(&kv, &acknowledged);
    acknowledged.push(("/more".into(), put(&kv, "/more", "x").await));
    assert_eq!(kv.revision(), newest + 1, "what failed has used no revision");
    kv.keep_alive(lease).unwrap();
    kv.compact(newest).await.unwrap();
    kv.close().await;
    drop(kv);
    let kv = Kv::open(options(), Clock::real()).unwrap();
    is_all_there(&kv, &acknowledged);
    assert_eq!(kv.revision(), newest + 1);
}

#[tokio::test]
async fn when_there_is_room_again_it_writes_again_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    // In blocks of 512 bytes; the signal that says so is ignored.
    let run = "trap '' XFSZ; ulimit -S -f 1536; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap())
        .args(["tests::full::child", "--exact", "--ignored", "--nocapture"])
        .env(DATA_DIR, dir.path())
        .output()
        .unwrap();
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && texts[0].contains("1 passed"), "{texts:?}");
}
