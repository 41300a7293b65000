//! What is acknowledged is durable, and nothing is seen before it is: with a log whose disk does as it is
//! told.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use sync::Mutex;

use super::super::found::read_state;
use super::super::log::Log;
use super::super::opening::Opened;
use super::*;

/// A log in memory. Each flush waits for its outcome.
#[derive(Debug)]
struct Disk {
    records: Mutex<BTreeMap<Revision, Bytes>>,
    /// What was removed since the last flush, in order.
    removed: Mutex<Vec<Revision>>,
    outcomes: Mutex<mpsc::Receiver<Result<(), StoreError>>>,
}

impl Log for Disk {
    fn append(&self, revision: Revision, record: Vec<u8>) -> Result<Bytes, StoreError> {
        let record = Bytes::from(record);
        self.records.lock().insert(revision, record.clone());
        Ok(record)
    }

    fn read(&self, revision: Revision) -> Result<Option<Bytes>, StoreError> {
        Ok(self.records.lock().get(&revision).cloned())
    }

    fn remove(&self, revision: Revision) -> Result<(), StoreError> {
        self.records.lock().remove(&revision);
        self.removed.lock().push(revision);
        Ok(())
    }

    fn set_fact(&self, _name: &str, _value: Option<u64>) -> Result<(), StoreError> {
        Ok(())
    }

    fn facts(&self, _prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(Vec::new())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.removed.lock().clear();
        self.outcomes.lock().recv().unwrap_or(Ok(()))
    }

    fn replay(
        &self,
        visit: &mut dyn FnMut(Revision, Bytes) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.records.lock().iter().try_for_each(|(revision, record)| visit(*revision, record.clone()))
    }
}

fn store() -> (Kv, Arc<Disk>, mpsc::Sender<Result<(), StoreError>>) {
    let (outcomes, receiver) = mpsc::channel();
    let disk = Arc::new(Disk {
        records: Mutex::default(),
        removed: Mutex::default(),
        outcomes: Mutex::new(receiver),
    });
    let (state, newest_lease) = read_state(disk.clone(), 1 << 20, Duration::ZERO).unwrap();
    let options = Options { data_dir: Some("unused".into()), ..Options::default() };
    let opened = Opened { state, sled: None, newest_lease, home: None, recovery: None };
    (Kv::start(opened, &options, stepped_clock()).unwrap(), disk, outcomes)
}

/// Writes in a task of its own, and waits until the log has it.
async fn begin(kv: &Kv, disk: &Disk, key: &'static str) -> tokio::task::JoinHandle<Result<Txn, StoreError>> {
    let before = disk.records.lock().len();
    let kv = kv.clone();
    let writing = tokio::spawn(async move { kv.txn(key, Expect::Any, value("x")).await });
    while disk.records.lock().len() == before {
        tokio::task::yield_now().await;
    }
    writing
}

#[tokio::test]
async fn nothing_is_seen_and_nobody_waits_while_the_disk_is_at_work() {
    let (kv, disk, outcomes) = store();
    let mut watch = kv.watch("/", 1).unwrap();
    let writing = begin(&kv, &disk, "/a").await;
    assert_eq!(kv.get("/a", None).unwrap(), (None, 1));
    assert_eq!(kv.range("/", None, None, None).unwrap().count, 0);
    assert_eq!(watch.try_next().unwrap(), None);
    assert!(!writing.is_finished());

    outcomes.send(Ok(())).unwrap();
    assert_eq!(committed(writing.await.unwrap().unwrap()), 2);
    assert_eq!(kv.revision(), 2);
    assert_eq!(watch.next().await.unwrap().events.len(), 1);
    drop(outcomes);
}

#[tokio::test]
async fn writes_that_wait_for_the_disk_share_the_next_flush() {
    let (kv, disk, outcomes) = store();
    let first = begin(&kv, &disk, "/first").await;
    let waiting: Vec<_> = (0..50)
        .map(|number| {
            let kv = kv.clone();
            tokio::spawn(
                async move { kv.txn(&format!("/{number}"), Expect::ModRevision(0), value("x")).await },
            )
        })
        .collect();
    tokio::task::yield_now().await;
    // One outcome for the first, one for all that came meanwhile.
    outcomes.send(Ok(())).unwrap();
    outcomes.send(Ok(())).unwrap();
    first.await.unwrap().unwrap();
    for write in waiting {
        write.await.unwrap().unwrap();
    }
    assert_eq!(kv.revision(), 52);
    drop(outcomes);
}

#[tokio::test]
async fn compares_see_the_writes_before_them_in_the_same_batch() {
    let (kv, disk, outcomes) = store();
    let first = begin(&kv, &disk, "/first").await;
    let submit = |expect, op| {
        let kv = kv.clone();
        tokio::spawn(async move { kv.txn("/a", expect, op).await.unwrap() })
    };
    let rows = [
        (Expect::ModRevision(0), value("1"), Some(3)),
        (Expect::ModRevision(0), value("2"), None),
        (Expect::ModRevision(3), value("3"), Some(4)),
        (Expect::ModRevision(3), Op::Delete, None),
        (Expect::ModRevision(4), Op::Delete, Some(5)),
        (Expect::Any, Op::Delete, None),
        (Expect::ModRevision(0), value("4"), Some(6)),
    ];
    let writes: Vec<_> =
        rows.into_iter().map(|(expect, op, revision)| (submit(expect, op), revision)).collect();
    tokio::task::yield_now().await;
    outcomes.send(Ok(())).unwrap();
    outcomes.send(Ok(())).unwrap();
    first.await.unwrap().unwrap();
    for (write, expected) in writes {
        let written = match write.await.unwrap() {
            Txn::Committed { revision, .. } => Some(revision),
            Txn::Conflict { .. } => None,
        };
        assert_eq!(written, expected);
    }
    assert_eq!(kv.get("/a", None).unwrap().0.unwrap().create_revision, 6);
    drop(outcomes);
}

#[tokio::test]
async fn when_the_disk_fails_nothing_is_acknowledged_and_reads_go_on() {
    let (kv, disk, outcomes) = store();
    outcomes.send(Ok(())).unwrap();
    put(&kv, "/a", "1").await;
    let mut watch = kv.watch("/", 2).unwrap();

    outcomes.send(Err(StoreError::Io("No space left on device".into()))).unwrap();
    let writing = begin(&kv, &disk, "/b").await;
    let refused =
        |error: StoreError| matches!(&error, StoreError::Io(text) if text.contains("No space left"));
    assert!(writing.await.unwrap().is_err_and(refused));
    // The disk would work again, but what it holds is uncertain.
    drop(outcomes);
    assert!(kv.txn("/c", Expect::Any, value("x")).await.is_err_and(refused));
    assert!(kv.compact(1).await.is_err_and(refused));
    assert!(kv.grant_lease(Duration::from_secs(1)).await.is_err_and(refused));
    assert_eq!(kv.revision(), 2);
    assert_eq!(kv.range("/", None, None, None).unwrap().count, 1);
    assert_eq!(watch.try_next().unwrap(), None);
    kv.close().await;
}

#[tokio::test]
async fn a_deletion_goes_from_the_disk_after_what_it_deletes() {
    let (kv, disk, outcomes) = store();
    drop(outcomes);
    put(&kv, "/a", "1").await;
    put(&kv, "/b", "1").await;
    put(&kv, "/a", "2").await;
    for key in ["/a", "/b"] {
        kv.txn(key, Expect::Any, Op::Delete).await.unwrap();
    }
    put(&kv, "/c", "1").await;
    kv.compact(3).await.unwrap();
    assert_eq!(*disk.removed.lock(), [0; 0], "/a and /b are there at revision 3");
    kv.compact(7).await.unwrap();
    // Without a flush between, the disk might lose the one and keep the other.
    assert_eq!(*disk.removed.lock(), [5, 6]);
    assert_eq!(disk.records.lock().keys().copied().collect::<Vec<_>>(), [7]);
    kv.close().await;
}
