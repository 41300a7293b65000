//! Compaction gives room back.

use super::*;

const OBJECTS: usize = 16;
const UPDATES: usize = 65_000;

fn bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let size = |entry: std::fs::DirEntry| {
        if entry.path().is_dir() { bytes(&entry.path()) } else { entry.metadata().unwrap().len() }
    };
    entries.map(size).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_updates_of_few_objects_leave_little_after_a_compaction() {
    let dir = scratch();
    let kv = on_disk(dir.path());
    let writers = (0..OBJECTS).map(|object| {
        let kv = kv.clone();
        tokio::spawn(async move {
            for update in 0..UPDATES / OBJECTS {
                put(&kv, &format!("/{object}"), &format!("{update:0500}")).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert!(bytes(dir.path()) > 20 << 20, "{}", bytes(dir.path()));
    let before = kv.range("/", None, None, None).unwrap();
    let mut watch = kv.watch("/", kv.revision()).unwrap();
    kv.compact(kv.revision()).await.unwrap();
    assert!(bytes(dir.path()) < 20 << 20, "{}", bytes(dir.path()));
    // It goes on where it was.
    assert_eq!(kv.range("/", None, None, None).unwrap(), before);
    let more = put(&kv, "/more", "x").await;
    assert_eq!(watch.next().await.unwrap().revision, more);
    kv.close().await;
    drop(kv);
    let kv = on_disk(dir.path());
    assert_eq!(kv.revision(), more);
    assert_eq!(kv.range("/", None, None, None).unwrap().count, OBJECTS + 1);
}

#[tokio::test]
async fn what_is_written_and_deleted_meanwhile_is_as_it_was_written() {
    let dir = scratch();
    let options = || Options { rewrite_bytes: 1, ..disk_options(dir.path()) };
    let kv = Kv::open(options(), stepped_clock()).unwrap();
    let large = "x".repeat(400_000);
    for number in 0..12 {
        put(&kv, &format!("/{number}"), &large).await;
    }
    put(&kv, "/0", "small").await;
    // Steps of a rewriting, with writes and another compaction in between.
    let rewriting = {
        let kv = kv.clone();
        tokio::spawn(async move { kv.compact(5).await.unwrap() })
    };
    for number in 0..12 {
        tokio::task::yield_now().await;
        match number % 3 {
            0 => drop(delete(&kv, &format!("/{number}")).await),
            1 => drop(put(&kv, &format!("/{number}"), "changed").await),
            _ => kv.compact(kv.revision()).await.unwrap(),
        }
    }
    rewriting.await.unwrap();
    let (revision, expected) = (kv.revision(), kv.range("/", None, None, None).unwrap());
    kv.close().await;
    drop(kv);
    let kv = Kv::open(options(), stepped_clock()).unwrap();
    assert_eq!((kv.revision(), kv.range("/", None, None, None).unwrap()), (revision, expected));
}

#[tokio::test]
async fn the_revision_stays_when_the_newest_changes_were_deletions_that_are_gone() {
    let dir = scratch();
    let kv = on_disk(dir.path());
    put(&kv, "/kept", "1").await;
    put(&kv, "/gone", "1").await;
    let revision = delete(&kv, "/gone").await;
    kv.compact(revision).await.unwrap();
    kv.close().await;
    drop(kv);
    assert_eq!(on_disk(dir.path()).revision(), revision);
}

#[tokio::test]
async fn a_rewriting_that_was_not_finished_leaves_the_old_files() {
    let dir = scratch();
    let kv = on_disk(dir.path());
    put(&kv, "/a", "1").await;
    kv.close().await;
    drop(kv);
    let unfinished = dir.path().join("sled.1");
    std::fs::create_dir(&unfinished).unwrap();
    std::fs::write(unfinished.join("db"), b"half").unwrap();
    assert_eq!(on_disk(dir.path()).revision(), 2);
    assert!(!unfinished.exists());
}
