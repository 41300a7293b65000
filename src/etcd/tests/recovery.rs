//! Opening what another process holds, what a crash left, and what is damaged.

use std::fs;

use super::*;

/// A folder with a store that was closed, at revision 101.
async fn closed_store() -> tempfile::TempDir {
    let parent = tempfile::tempdir().unwrap();
    let kv = on_disk(&parent.path().join("data"));
    for number in 0..100 {
        put(&kv, &format!("/{number}"), &number.to_string()).await;
    }
    kv.close().await;
    drop(kv);
    parent
}

fn is_whole(kv: &Kv) {
    assert_eq!(kv.revision(), 101);
    let range = kv.range("/", None, None, None).unwrap();
    assert_eq!(range.kvs.len(), 100);
    assert!(range.kvs.iter().all(|kv| text(kv).0[1..] == text(kv).1));
}

fn snapshots(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("snap.")).collect()
}

#[tokio::test]
async fn a_data_dir_belongs_to_one_store_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let kv = on_disk(dir.path());
    let refused = try_on_disk(dir.path()).unwrap_err();
    assert!(matches!(&refused, StoreError::Locked { process: Some(_), .. }), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("--data-dir") && text.contains(&std::process::id().to_string()), "{text}");
    put(&kv, "/a", "still works").await;
    drop(kv);
    assert_eq!(on_disk(dir.path()).revision(), 2);
}

#[tokio::test]
async fn a_data_dir_that_cannot_be_made_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let error = try_on_disk(&file.join("data")).unwrap_err();
    assert!(matches!(&error, StoreError::Io(text) if text.contains("file/data")), "{error:?}");
}

#[tokio::test]
async fn a_snapshot_that_was_being_written_does_not_keep_the_store_from_starting() {
    for content in [&b""[..], b"half a snapshot, and more than twelve bytes of it"] {
        let parent = closed_store().await;
        let dir = parent.path().join("data");
        fs::write(dir.join("snap.FFFFFFFFFFFFFFF0.generating"), content).unwrap();
        is_whole(&on_disk(&dir));
        assert!(snapshots(&dir).iter().all(|path| !path.to_string_lossy().ends_with("generating")));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "nothing was damaged, nothing is copied");
    }
}

#[tokio::test]
async fn a_damaged_snapshot_is_done_without() {
    let damages: [fn(&Path); 4] = [
        |dir| fs::write(dir.join("snap.FFFFFFFFFFFFFFF0"), b"").unwrap(),
        |dir| fs::write(dir.join("snap.FFFFFFFFFFFFFFF0"), [7; 100]).unwrap(),
        |dir| snapshots(dir).iter().for_each(|path| fs::write(path, [0; 40]).unwrap()),
        |dir| {
            for path in snapshots(dir) {
                let mut bytes = fs::read(&path).unwrap();
                bytes[0] ^= 0xff;
                fs::write(path, bytes).unwrap();
            }
        },
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let parent = closed_store().await;
        let dir = parent.path().join("data");
        // A snapshot is written when a store is opened that holds something.
        drop(on_disk(&dir));
        assert!(!snapshots(&dir).is_empty());
        damage(&dir);
        let kv = on_disk(&dir);
        is_whole(&kv);
        assert!(parent.path().join("data.damaged-1/db").exists(), "damage {number}");
        put(&kv, "/more", "x").await;
        drop(kv);
        assert_eq!(on_disk(&dir).revision(), 102);
    }
}

#[tokio::test]
async fn a_store_without_a_data_dir_takes_away_what_a_killed_one_left() {
    // No process has this number.
    let left = std::env::temp_dir().join("kubarium-etcd.4294967295.0");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("db"), "left").unwrap();
    let kv = overflowing();
    for number in 0..20 {
        put(&kv, &format!("/{number}"), "1").await;
    }
    assert_eq!(kv.range("/", None, None, None).unwrap().kvs.len(), 20);
    drop(kv);
    assert!(!Path::new("/proc/self").exists() || !left.exists());
}
