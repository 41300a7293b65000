//! Cutting the power: what was acknowledged is on the device, whatever the system had in its memory.
//!
//! The device is a model: a file's content is what it was when it was synced last, a folder's names likewise.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Condvar};

use sync::{Mutex, MutexGuard};

use super::super::device::Device;
use super::super::folder;
use super::*;

type BeforeSync = Box<dyn Fn(&Platter) + Send>;

/// What would be left.
#[derive(Default)]
struct Platter {
    /// Called before each sync.
    before: Mutex<Option<BeforeSync>>,
    left: Mutex<Left>,
    /// Whether syncs of sled's file wait, and how many do.
    blocked: Mutex<(bool, usize)>,
    unblocked: Condvar,
    /// Whether it has a switch that makes it forget to sync.
    is_unsafe: bool,
}

impl std::fmt::Debug for Platter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Platter")
    }
}

#[derive(Debug, Default)]
struct Left {
    /// By number of the file.
    files: HashMap<u64, Vec<u8>>,
    /// By number of the folder: names, and what they name.
    folders: HashMap<u64, BTreeMap<String, (u64, bool)>>,
    syncs_of_data: usize,
}

impl Device for Platter {
    fn is_safe(&self) -> bool {
        !self.is_unsafe
    }

    fn sync_file(&self, file: &File, path: &Path) -> io::Result<()> {
        if self.is_unsafe {
            return Ok(());
        }
        self.tell();
        if path.ends_with(folder::DATA) {
            let mut blocked = self.blocked.lock();
            blocked.1 += 1;
            drop(self.unblocked.wait_while(blocked, |(blocked, _)| *blocked).unwrap());
            self.left().syncs_of_data += 1;
        }
        // What is written while it is synced may be left, or not.
        let mut left = self.left();
        let content = fs::read(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)))?;
        left.files.insert(file.metadata()?.ino(), content);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if self.is_unsafe {
            return Ok(());
        }
        self.tell();
        let mut left = self.left();
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // Gone in the meantime: as if it had never been there.
            let Ok(metadata) = entry.metadata() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            names.insert(name, (metadata.ino(), metadata.is_dir()));
        }
        left.folders.insert(fs::metadata(path)?.ino(), names);
        Ok(())
    }
}

impl Platter {
    fn tell(&self) {
        if let Some(before) = &*self.before.lock() {
            before(self);
        }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock()
    }

    /// What a folder holds after the power was cut now.
    fn cut(&self, folder: &Path, into: &Path) {
        let left = self.left();
        left.write(fs::metadata(folder).unwrap().ino(), into);
    }

    fn block(&self, blocked: bool) {
        *self.blocked.lock() = (blocked, 0);
        self.unblocked.notify_all();
    }

    fn waits(&self) -> bool {
        self.blocked.lock().1 > 0
    }
}

impl Left {
    fn write(&self, folder: u64, into: &Path) {
        fs::create_dir_all(into).unwrap();
        for (name, (number, is_folder)) in self.folders.get(&folder).into_iter().flatten() {
            let path = into.join(name);
            if *is_folder {
                self.write(*number, &path)
            } else {
                fs::write(path, self.files.get(number).cloned().unwrap_or_default()).unwrap()
            }
        }
    }
}

fn options(dir: &Path) -> Options {
    let data_dir = Some(dir.join("etcd"));
    Options { data_dir, recent_bytes: 2000, rewrite_bytes: 600_000, ..Options::default() }
}

fn open(platter: &Arc<Platter>, dir: &Path) -> Kv {
    Kv::open_on(platter.clone(), options(dir), stepped_clock()).unwrap()
}

/// What clients know.
#[derive(Debug, Clone, Default)]
struct Known {
    acknowledged: BTreeMap<Revision, (String, Option<usize>)>,
    /// Of each writer the key of the write that it waits for.
    pending: HashMap<usize, String>,
}

impl Known {
    /// A writer is told what became of its write: a cut comes before that or after it.
    fn hear(&mut self, writer: usize, done: Txn, write: (String, Option<usize>)) {
        self.pending.remove(&writer);
        if let Txn::Committed { revision, .. } = done {
            self.acknowledged.insert(revision, write);
        }
    }
}

/// Writes values of all sizes, and compacts now and then.
async fn write(kv: Kv, writer: usize, known: Arc<Mutex<Known>>, cut: impl Fn()) {
    let mut numbers = Numbers(7 + writer as u64);
    for round in 0..60 {
        let key = format!("/{writer}/{}", numbers.below(6));
        let longest = if numbers.below(8) == 0 { 200_000 } else { 3000 };
        let length = numbers.below(longest);
        let (op, written) = match numbers.below(6) {
            0 => (Op::Delete, None),
            _ => (value(&"x".repeat(length)), Some(length)),
        };
        known.lock().pending.insert(writer, key.clone());
        let done = kv.txn(&key, Expect::Any, op).await.unwrap();
        known.lock().hear(writer, done, (key, written));
        if round % 15 == 14 {
            kv.compact(kv.revision()).await.unwrap();
        }
        if numbers.below(20) == 0 {
            cut();
        }
    }
}

/// Everything that was acknowledged up to then is there, and nothing older in its place.
fn check(kv: &Kv, known: &Known) {
    let newest = known.acknowledged.last_key_value().map_or(1, |(revision, _)| *revision);
    assert!(kv.revision() >= newest, "acknowledged up to {newest}, found {}", kv.revision());
    let mut expected: BTreeMap<&String, (Revision, Option<usize>)> = BTreeMap::new();
    for (revision, (key, written)) in &known.acknowledged {
        expected.insert(key, (*revision, *written));
    }
    for (key, (revision, written)) in expected {
        // What nobody was told of yet may be there, or not.
        if !known.pending.values().any(|pending| pending == key) {
            let found = kv.get(key, None).unwrap().0.map(|found| (found.mod_revision, found.value.len()));
            assert_eq!(found, written.map(|length| (revision, length)), "{key}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_power_cut() {
    let dir = scratch();
    let cuts = scratch();
    let platter = Arc::new(Platter::default());
    let kv = open(&platter, dir.path());
    let known = Arc::new(Mutex::new(Known::default()));
    let survivors = Arc::new(Mutex::new(Vec::new()));
    let writers = (0..6).map(|writer| {
        let (platter, survivors) = (platter.clone(), survivors.clone());
        let (from, into, of_writers) = (dir.path().to_owned(), cuts.path().to_owned(), known.clone());
        tokio::spawn(write(kv.clone(), writer, known.clone(), move || {
            // Nobody begins to write meanwhile, of whom then nothing would be known.
            let known = of_writers.lock();
            let mut survivors = survivors.lock();
            let cut = into.join(survivors.len().to_string());
            platter.cut(&from, &cut);
            survivors.push((cut, known.clone()));
        }))
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let survivors = std::mem::take(&mut *survivors.lock());
    assert!(survivors.len() > 5, "only {} cuts", survivors.len());
    assert!(
        dir.path()
            .join("etcd")
            .read_dir()
            .unwrap()
            .flatten()
            .any(|entry| { entry.file_name().to_string_lossy().starts_with("sled.") }),
        "it was never written anew"
    );
    for (cut, known) in survivors {
        check(&open(&Arc::new(Platter::default()), &cut), &known);
    }
}

#[tokio::test]
async fn neither_a_kill_nor_a_power_cut_at_any_point_of_a_rewriting_loses_anything() {
    let dir = scratch();
    let ends = scratch();
    let platter = Arc::new(Platter::default());
    let kv = open(&platter, dir.path());
    for number in 0..300 {
        put(&kv, &format!("/{}", number % 20), &"x".repeat(10_000)).await;
    }
    let (revision, expected) = (kv.revision(), kv.range("/", None, None, None).unwrap().kvs);
    let count = Arc::new(Mutex::new(0));
    let (counted, from, into) = (count.clone(), dir.path().to_owned(), ends.path().to_owned());
    *platter.before.lock() = Some(Box::new(move |platter| {
        let mut count = counted.lock();
        // What a kill leaves, and what a power cut leaves.
        copy(&from, &into.join(format!("{count}.killed")));
        platter.cut(&from, &into.join(format!("{count}.cut")));
        *count += 1;
    }));
    kv.compact(revision).await.unwrap();
    *platter.before.lock() = None;
    assert!(dir.path().join("etcd/sled.1/complete").exists());
    assert!(*count.lock() > 5, "{count:?}");
    for end in fs::read_dir(ends.path()).unwrap().flatten() {
        let kv = open(&Arc::new(Platter::default()), &end.path());
        assert_eq!(kv.revision(), revision, "{end:?}");
        assert_eq!(kv.range("/", None, None, None).unwrap().kvs, expected, "{end:?}");
    }
}

#[tokio::test]
async fn without_syncs_a_power_cut_leaves_nothing() {
    let dir = scratch();
    let platter = Arc::new(Platter { is_unsafe: true, ..Platter::default() });
    let kv = open(&platter, dir.path());
    put(&kv, "/a", "1").await;
    let cut = dir.path().join("cut");
    platter.cut(dir.path(), &cut);
    assert_eq!(open(&Arc::new(Platter::default()), &cut).revision(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_wait_share_one_sync_and_are_answered_after_it() {
    let dir = scratch();
    let platter = Arc::new(Platter::default());
    let kv = open(&platter, dir.path());
    let before = platter.left().syncs_of_data;
    platter.block(true);
    let write = |number: usize| {
        let kv = kv.clone();
        tokio::spawn(async move { kv.txn(&format!("/{number}"), Expect::ModRevision(0), value("x")).await })
    };
    let mut writes = vec![write(0)];
    while !platter.waits() {
        tokio::task::yield_now().await;
    }
    writes.extend((1..32).map(write));
    while kv.waiting() < 31 {
        tokio::task::yield_now().await;
    }
    assert!(writes.iter().all(|write| !write.is_finished()), "nobody is told before the sync");
    assert_eq!(kv.revision(), 1, "and nobody sees it");
    platter.block(false);
    for write in writes {
        write.await.unwrap().unwrap();
    }
    // One for the first, and one for all that came meanwhile.
    assert_eq!(platter.left().syncs_of_data - before, 2);
}

/// The kernel's own calls are made: a file that cannot be synced says so.
#[test]
fn the_devices_sync_what_they_are_given() {
    let dir = scratch();
    let file = File::create(dir.path().join("file")).unwrap();
    let pipe = File::open("/proc/self/fd/0").ok().filter(|file| file.sync_data().is_err());
    for (unsafe_no_fsync, fails) in [(false, true), (true, false)] {
        let device = super::super::device::of(unsafe_no_fsync);
        assert_eq!(device.is_safe(), !unsafe_no_fsync);
        device.sync_file(&file, dir.path()).unwrap();
        device.sync_dir(dir.path()).unwrap();
        assert_eq!(device.sync_dir(&dir.path().join("nowhere")).is_err(), fails);
        if let Some(pipe) = &pipe {
            assert_eq!(device.sync_file(pipe, dir.path()).is_err(), fails);
        }
    }
}
