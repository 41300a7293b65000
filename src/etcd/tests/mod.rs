//! What the store promises, as tables, as a comparison with a model, and by killing it.

mod crash;
mod damage;
mod durability;
mod failing;
mod forks;
mod full;
mod leases;
mod model;
mod power;
mod recovery;
mod shrinking;
mod store;
mod transactions;
mod watches;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;

use super::*;
use clock::Clock;

/// In memory, on a clock that stands still.
fn in_memory() -> Kv {
    Kv::open(Options::default(), stepped_clock()).unwrap()
}

/// In a folder, keeping next to nothing in memory, so that reads and watches go to the files.
fn on_disk(dir: &Path) -> Kv {
    try_on_disk(dir).unwrap()
}

fn try_on_disk(dir: &Path) -> Result<Kv, StoreError> {
    Kv::open(disk_options(dir), stepped_clock())
}

/// Nothing is synced, since no test cuts the power of the machine; see `power` for one that seems to.
fn disk_options(dir: &Path) -> Options {
    let data_dir = Some(dir.to_owned());
    Options { data_dir, recent_bytes: 2000, unsafe_no_fsync: true, ..Options::default() }
}

/// In memory, which is full soon: most is in temporary files.
fn overflowing() -> Kv {
    let options = Options { recent_bytes: 2000, ..Options::default() };
    Kv::open(options, stepped_clock()).unwrap()
}

/// All kinds of store; the folder is removed with the last value.
fn each() -> (Vec<Kv>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (vec![in_memory(), overflowing(), on_disk(dir.path())], dir)
}

/// A folder in memory, where there is one: for what needs no disk, but many files.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Each key that was acknowledged is there, as it was written then.
fn is_all_there(kv: &Kv, acknowledged: &[(String, Revision)]) {
    for (key, revision) in acknowledged {
        assert_eq!(kv.get(key, None).unwrap().0.map(|kv| kv.mod_revision), Some(*revision), "{key}");
    }
}

/// A folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { assert!(fs::copy(&path, target).is_ok()) }
    }
}

fn stepped_clock() -> Clock {
    Clock::stepped(DateTime::UNIX_EPOCH)
}

fn value(text: &str) -> Op {
    Op::Put { value: Bytes::copy_from_slice(text.as_bytes()), lease: None }
}

/// Writes whatever is there; the revision.
async fn put(kv: &Kv, key: &str, text: &str) -> Revision {
    committed(kv.txn(key, Expect::Any, value(text)).await.unwrap())
}

async fn delete(kv: &Kv, key: &str) -> Revision {
    committed(kv.txn(key, Expect::Any, Op::Delete).await.unwrap())
}

fn committed(txn: Txn) -> Revision {
    match txn {
        Txn::Committed { revision, .. } => revision,
        Txn::Conflict { current } => panic!("not written: {current:?} is there"),
    }
}

/// The keys and values of a range.
fn texts(range: &Range) -> Vec<(String, String)> {
    range.kvs.iter().map(text).collect()
}

fn text(kv: &KeyValue) -> (String, String) {
    (kv.key.to_string(), String::from_utf8(kv.value.to_vec()).unwrap())
}

/// Numbers that are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}
