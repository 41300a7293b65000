//! A sync that fails once, whatever was being done: the store goes on by itself, and the next start finds
//! all.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use super::super::device::Device;
use super::super::folder;
use super::*;

/// Syncs of the log that succeed before one fails; below zero they succeed again.
#[derive(Debug)]
struct Failing(AtomicIsize);

impl Device for Failing {
    fn is_safe(&self) -> bool {
        true
    }

    fn sync_file(&self, _file: &File, path: &Path) -> io::Result<()> {
        let is_due = path.ends_with(folder::DATA) && self.0.fetch_sub(1, Ordering::SeqCst) == 0;
        if is_due { Err(io::Error::other("the disk is bad")) } else { Ok(()) }
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// What was acknowledged of a put, a lease with a key, the end of that lease, and a compaction.
async fn work(kv: &Kv) -> Vec<(String, Revision)> {
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        for name in ["a", "b"] {
            let key = format!("/{name}{round}");
            if let Ok(txn) = kv.txn(&key, Expect::Any, value("x")).await {
                acknowledged.push((key, committed(txn)));
            }
        }
        if let Ok(lease) = kv.grant_lease(Duration::from_secs(60)).await {
            let op = Op::Put { value: Bytes::from_static(b"x"), lease: Some(lease) };
            let _ = kv.txn("/leased", Expect::Any, op).await;
            let _ = kv.revoke_lease(lease).await;
        }
        let _ = kv.txn("/often", Expect::Any, value("x")).await;
        let _ = kv.compact(kv.revision()).await;
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_goes_on_and_the_next_start_finds_all() {
    for nth in 0..30 {
        let dir = scratch();
        let options =
            || Options { data_dir: Some(dir.path().to_owned()), recent_bytes: 0, ..Options::default() };
        let device = Arc::new(Failing(AtomicIsize::new(isize::MAX)));
        let clock = stepped_clock();
        let kv = Kv::open_on(device.clone(), options(), clock.clone()).unwrap();
        device.0.store(nth, Ordering::SeqCst);
        let mut acknowledged = work(&kv).await;
        device.0.store(isize::MAX, Ordering::SeqCst);
        while kv.writable().is_err() {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        is_all_there(&kv, &acknowledged);
        acknowledged.push(("/last".into(), put(&kv, "/last", "x").await));
        kv.close().await;
        drop(kv);
        let kv = Kv::open_on(device, options(), clock).unwrap_or_else(|error| panic!("sync {nth}: {error}"));
        is_all_there(&kv, &acknowledged);
    }
}
