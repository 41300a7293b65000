//! Damaging the files of a store: each start is either whole or refused, never less without a word.

use std::fs;
use std::path::PathBuf;

use super::*;

/// How far apart the bytes are that are flipped and the lengths that are cut to, without [`EVERY_BYTE`].
const STRIDE: usize = 17;
/// How far apart they are where there are only zeros: the room that is left in a segment of sled or a slot
/// of the note.
const STRIDE_OF_ZEROS: usize = 8191;
/// So many zeros after something may belong to it.
const MARGIN: usize = 64;
/// `make chaos` sets it.
const EVERY_BYTE: &str = "KUBARIUM_TEST_EVERY_BYTE";
/// Few, so that every byte can be tried.
const KEYS: usize = 12;

/// Writes, deletions, a lease, a compaction, and a second opening, so that there is a snapshot. `rewritten`:
/// in a folder that was written anew.
async fn small_store(dir: &Path, rewritten: bool) -> Vec<KeyValue> {
    let rewrite_bytes = if rewritten { 1 } else { u64::MAX };
    let options = || Options { rewrite_bytes, ..disk_options(dir) };
    let kv = Kv::open(options(), stepped_clock()).unwrap();
    for number in 0..KEYS {
        put(&kv, &format!("/{number}"), "first").await;
    }
    let lease = kv.grant_lease(Duration::from_secs(3600)).await.unwrap();
    let hanging = Op::Put { value: Bytes::from_static(b"hanging"), lease: Some(lease) };
    kv.txn("/leased", Expect::Any, hanging).await.unwrap();
    delete(&kv, "/3").await;
    kv.compact(kv.revision()).await.unwrap();
    kv.close().await;
    drop(kv);
    let kv = Kv::open(options(), stepped_clock()).unwrap();
    put(&kv, "/5", "second").await;
    delete(&kv, "/6").await;
    put(&kv, "/7", "last").await;
    let kvs = kv.range("/", None, None, None).unwrap().kvs;
    kv.close().await;
    kvs
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Opens a damaged copy; whether it was whole.
fn start(dir: &Path, expected: &[KeyValue], what: &str) -> bool {
    match try_on_disk(dir) {
        Ok(kv) => {
            let range = kv.range("/", None, None, None).unwrap();
            assert_eq!(range.kvs, expected, "{what}: silently less");
            assert_eq!(kv.revision(), 18, "{what}");
            true
        }
        Err(StoreError::Lost(loss)) => {
            assert_eq!(loss.promised, 18, "{what}: {loss}");
            false
        }
        Err(StoreError::Corrupt(text) | StoreError::Io(text)) => {
            assert!(!text.is_empty());
            false
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Where a file is damaged.
fn places(content: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let stride = if std::env::var_os(EVERY_BYTE).is_some() { 1 } else { STRIDE };
    let mut last = 0;
    (0..content.len()).filter(move |at| {
        if content[*at] != 0 {
            last = *at;
        }
        at % if at - last > MARGIN { STRIDE_OF_ZEROS } else { stride } == 0
    })
}

/// Each file: removed, cut, flipped.
fn damage_all(original: &Path, expected: &[KeyValue]) {
    let scratch = scratch();
    let mut whole = 0;
    let mut refused = 0;
    let mut number = 0;
    let mut attempt = |relative: &Path, content: Option<Vec<u8>>, what: String| {
        number += 1;
        let parent = scratch.path().join(number.to_string());
        let dir = parent.join("etcd");
        copy(original, &dir);
        match content {
            Some(content) => fs::write(dir.join(relative), content).unwrap(),
            None => fs::remove_file(dir.join(relative)).unwrap(),
        }
        let is_whole = start(&dir, expected, &format!("{} {what}", relative.display()));
        *if is_whole { &mut whole } else { &mut refused } += 1;
        fs::remove_dir_all(parent).unwrap();
    };
    for path in files(original) {
        let relative = path.strip_prefix(original).unwrap();
        let content = fs::read(&path).unwrap();
        attempt(relative, None, "removed".into());
        for length in places(&content) {
            attempt(relative, Some(content[..length].to_vec()), format!("cut to {length}"));
        }
        for at in places(&content) {
            let mut flipped = content.clone();
            flipped[at] ^= 1 << (at % 8);
            attempt(relative, Some(flipped), format!("flipped at {at}"));
        }
    }
    assert!(whole > 0 && refused > 0, "{whole} whole, {refused} refused");
}

async fn damage_each(rewritten: bool) {
    let parent = scratch();
    let dir = parent.path().join("etcd");
    let expected = small_store(&dir, rewritten).await;
    assert_eq!(dir.join("sled.1").exists(), rewritten);
    assert!(start(&dir, &expected, "undamaged"));
    damage_all(&dir, &expected);
}

#[tokio::test]
async fn every_byte_of_a_store_counts_or_does_not_matter() {
    damage_each(false).await;
}

#[tokio::test]
async fn every_byte_of_a_store_that_was_written_anew_counts_or_does_not_matter() {
    damage_each(true).await;
}

/// A store of 100 keys whose end, or whose all, is lost.
async fn lossy(lose: impl Fn(&Path)) -> (tempfile::TempDir, PathBuf) {
    let parent = scratch();
    let dir = parent.path().join("etcd");
    let kv = on_disk(&dir);
    for number in 0..100 {
        put(&kv, &format!("/{number}"), "first").await;
    }
    kv.close().await;
    drop(kv);
    lose(&dir);
    (parent, dir)
}

#[tokio::test]
async fn what_is_lost_is_refused_each_time_and_named() {
    let (_parent, dir) = lossy(|dir| fs::remove_file(dir.join("db")).unwrap()).await;
    for _ in 0..2 {
        let text = try_on_disk(&dir).unwrap_err().to_string();
        let named = [
            "has lost what was acknowledged: all up to revision 101 was promised, all up to 1 is there",
            "gone: revisions 2 to 101",
            "--recover",
            dir.to_str().unwrap(),
        ];
        for part in named {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[tokio::test]
async fn recovering_takes_what_is_there_and_gives_no_revision_twice() {
    let cut = |dir: &Path| {
        let db = fs::read(dir.join("db")).unwrap();
        fs::write(dir.join("db"), &db[..db.len() / 2]).unwrap();
        fs::read_dir(dir).unwrap().flatten().for_each(|entry| {
            if entry.file_name().to_string_lossy().starts_with("snap.") {
                fs::remove_file(entry.path()).unwrap();
            }
        });
    };
    let (_parent, dir) = lossy(cut).await;
    let Err(StoreError::Lost(loss)) = try_on_disk(&dir) else { panic!("it is half gone") };
    assert!(loss.reached > 1 && loss.reached < 101, "{loss}");
    let kv = Kv::open(Options { recover: true, ..disk_options(&dir) }, stepped_clock()).unwrap();
    let recovery = kv.recovery().unwrap().to_string();
    let gone = format!("gone: revisions {} to 101", loss.reached + 1);
    assert!(recovery.contains(&gone) && recovery.contains("etcd.damaged-1"), "{recovery}");
    assert_eq!(kv.range("/", None, None, None).unwrap().count as u64, loss.reached - 1);
    assert_eq!((kv.revision(), kv.compact_revision()), (101, 101));
    assert_eq!(put(&kv, "/more", "x").await, 102);
    kv.close().await;
    drop(kv);
    let kv = on_disk(&dir);
    assert_eq!((kv.revision(), kv.recovery()), (102, None));
}

#[tokio::test]
async fn a_page_that_cannot_be_read_does_not_hide_the_others() {
    let spoil = |dir: &Path| {
        let path = dir.join("db");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() / 3;
        bytes[at] ^= 0xff;
        fs::write(path, bytes).unwrap();
    };
    let (_parent, dir) = lossy(spoil).await;
    for _ in 0..3 {
        assert!(try_on_disk(&dir).is_err());
    }
    let copies = fs::read_dir(dir.parent().unwrap()).unwrap().count() - 1;
    assert!(copies <= 1, "each refused start leaves another copy: {copies}");
    let kv = Kv::open(Options { recover: true, ..disk_options(&dir) }, stepped_clock()).unwrap();
    assert!(kv.recovery().is_some());
    assert_eq!(kv.revision(), 101);
    put(&kv, "/more", "x").await;
}

#[tokio::test]
async fn a_note_that_cannot_be_read_is_refused_and_one_that_never_was_is_not() {
    let (_parent, dir) = lossy(|dir| fs::write(dir.join("acknowledged"), [0; 9000]).unwrap()).await;
    let text = try_on_disk(&dir).unwrap_err().to_string();
    assert!(text.contains("does not say what was acknowledged") && text.contains("--recover"), "{text}");
    let kv = Kv::open(Options { recover: true, ..disk_options(&dir) }, stepped_clock()).unwrap();
    assert_eq!(kv.revision(), 101);
    assert!(kv.recovery().unwrap().gone.contains("nobody can say"));
    kv.close().await;
    drop(kv);
    // As an earlier version left it.
    fs::remove_file(dir.join("acknowledged")).unwrap();
    assert_eq!(on_disk(&dir).revision(), 101);
}
