//! Killing the process that writes, and letting its disk fill up: what it acknowledged is there afterwards.
//!
//! The process is this test binary once more, running only [`child`], which says on standard output what has
//! been acknowledged.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;

const DATA_DIR: &str = "KUBARIUM_TEST_DATA_DIR";
const SEED: &str = "KUBARIUM_TEST_SEED";

/// Writes: of each revision the key and its value (see [`digest`]), or None for a deletion.
type Writes = BTreeMap<Revision, (String, Option<String>)>;
type Keys = BTreeMap<String, String>;

/// Writes with several tasks until killed, or until a write fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests below, in a process of its own"]
async fn child() {
    let Ok(dir) = std::env::var(DATA_DIR) else { return };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    // Small enough to be written anew between two kills.
    let options = Options { rewrite_bytes: 1 << 20, ..disk_options(Path::new(&dir)) };
    let kv = Kv::open(options, stepped_clock()).unwrap();
    say(&format!("start {}", kv.revision()));
    let writers: Vec<_> = (0..8).map(|writer| tokio::spawn(write(kv.clone(), writer, seed))).collect();
    for writer in writers {
        let error = writer.await.unwrap();
        say(&format!("error {error}"));
    }
    // What is not in memory any more cannot be read for certain once sled has seen its disk fail.
    match kv.range("/", None, None, None) {
        Ok(range) => say(&format!("alive {}", range.count)),
        Err(error) => say(&format!("alive, but {error}")),
    }
    kv.close().await;
}

async fn write(kv: Kv, writer: u64, seed: u64) -> StoreError {
    let mut numbers = Numbers(seed * 100 + writer);
    loop {
        let key = format!("/{writer}/{}", numbers.below(20));
        // Large ones go to files of their own, in sled.
        let longest = if numbers.below(50) == 0 { 300_000 } else { 4000 };
        let text = numbers.below(10).to_string().repeat(1 + numbers.below(longest));
        let (op, written) = match numbers.below(5) {
            0 => (Op::Delete, String::new()),
            _ => (value(&text), digest(&text)),
        };
        match kv.txn(&key, Expect::Any, op).await {
            Ok(Txn::Committed { revision, .. }) => say(format!("ack {revision} {key} {written}").trim()),
            Ok(Txn::Conflict { .. }) => {}
            Err(error) => return error,
        }
        if numbers.below(500) == 0
            && let Err(error) = kv.compact(kv.revision().saturating_sub(300)).await
        {
            return error;
        }
    }
}

/// A value of one digit many times, as `digit*times`.
fn digest(text: &str) -> String {
    assert!(text.bytes().all(|byte| text.starts_with(char::from(byte))), "what was written is all one digit");
    format!("{}*{}", &text[..1], text.len())
}

/// In one write, so that a kill leaves no half of a line that looks like a whole one.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

fn spawn(dir: &Path, seed: u64, shell: Option<&str>) -> Child {
    let test = ["tests::crash::child", "--exact", "--ignored", "--nocapture"];
    let program = std::env::current_exe().unwrap();
    let mut command = match shell {
        None => Command::new(program),
        Some(setup) => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(format!("{setup}; exec \"$0\" \"$@\"")).arg(program);
            command
        }
    };
    command.args(test).env(DATA_DIR, dir).env(SEED, seed.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// The first revision, and what was acknowledged after.
fn parse(line: &str, started: &mut Option<Revision>, acknowledged: &mut Writes) {
    let mut words = line.split(' ');
    match (words.next(), words.next().and_then(|word| word.parse().ok())) {
        (Some("start"), Some(revision)) => *started = Some(revision),
        (Some("ack"), Some(revision)) => {
            let key = words.next().unwrap().to_owned();
            let before = acknowledged.insert(revision, (key, words.next().map(str::to_owned)));
            assert_eq!(before, None, "revision {revision} was given twice");
        }
        _ => {}
    }
}

/// Compares what is there with what was there at revision `started` and what was acknowledged since; returns
/// what is there. Writes that were not acknowledged any more may be there as well.
fn check(kv: &Kv, started: Revision, before: Keys, acknowledged: &Writes, what: &str) -> Keys {
    let newest = acknowledged.last_key_value().map_or(started, |(revision, _)| *revision);
    assert!(kv.revision() >= newest, "{what}: acknowledged up to {newest}, found {}", kv.revision());
    let after = started.max(kv.compact_revision());
    let logged = log(kv, after);
    for (revision, write) in acknowledged.range(after + 1..) {
        assert_eq!(logged.get(revision), Some(write), "{what}: revision {revision}");
    }
    let found: Keys = kv
        .range("/", None, None, None)
        .unwrap()
        .kvs
        .iter()
        .map(text)
        .map(|(key, text)| (key, digest(&text)))
        .collect();
    // What compaction took away can be told only if all of it was acknowledged.
    if (started + 1..=after).all(|revision| acknowledged.contains_key(&revision)) {
        let mut expected = before;
        for (key, text) in acknowledged.range(..=after).map(|(_, write)| write).chain(logged.values()) {
            match text {
                Some(text) => drop(expected.insert(key.clone(), text.clone())),
                None => drop(expected.remove(key)),
            }
        }
        let (missing, strange) = (differ(&expected, &found), differ(&found, &expected));
        assert!(
            found == expected,
            "{what}: at {after}, acknowledged {newest}, found {}: missing {missing:?}, found {strange:?}",
            kv.revision()
        );
    }
    found
}

/// What is in the one, and not so in the other.
fn differ(one: &Keys, other: &Keys) -> Keys {
    one.iter()
        .filter(|(key, text)| other.get(*key) != Some(*text))
        .map(|(k, t)| (k.clone(), t.clone()))
        .collect()
}

/// All writes after a revision, as a watch tells them.
fn log(kv: &Kv, after: Revision) -> Writes {
    let mut watch = kv.watch("/", after).unwrap();
    let mut writes = Writes::new();
    while let Some(batch) = watch.try_next().unwrap() {
        for event in batch.events {
            let (key, text) = text(&event.kv);
            let text = (event.kind == EventKind::Put).then(|| digest(&text));
            writes.insert(event.revision(), (key, text));
        }
    }
    writes
}

#[tokio::test]
async fn a_killed_process_loses_nothing_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut revision = 1;
    let mut keys = Keys::new();
    let mut total = 0;
    let mut numbers = Numbers(2026);
    for round in 0..12 {
        let mut child = spawn(dir.path(), round, None);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut started = None;
        let mut acknowledged = Writes::new();
        for _ in 0..4 + numbers.below(600) {
            let Some(line) = lines.next() else { break };
            parse(&line, &mut started, &mut acknowledged);
        }
        child.kill().unwrap();
        lines.for_each(|line| parse(&line, &mut started, &mut acknowledged));
        child.wait().unwrap();

        let kv = on_disk(dir.path());
        if let Some(started) = started {
            assert_eq!(started, revision, "round {round}");
        }
        keys = check(&kv, revision, keys, &acknowledged, &format!("round {round}"));
        revision = kv.revision();
        total += acknowledged.len();
        kv.close().await;
    }
    assert!(total > 500, "only {total} writes");
    let names = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name());
    let was_rewritten = names.into_iter().any(|name| name.to_string_lossy().starts_with("sled."));
    assert!(was_rewritten, "the files were never written anew");
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_fails_writes_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // No file may grow over 4 MiB (in blocks of 512 bytes); the signal that says so is ignored.
    let child = spawn(dir.path(), 1, Some("trap '' XFSZ; ulimit -f 8192"));
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut started = None;
    let mut acknowledged = Writes::new();
    lines.lines().for_each(|line| parse(line, &mut started, &mut acknowledged));
    assert!(output.status.success(), "the process ended with {}", output.status);
    assert_eq!(
        lines.lines().filter(|line| line.starts_with("error the store cannot use its files")).count(),
        8
    );
    assert!(lines.lines().any(|line| line.starts_with("alive")), "the process went on");
    assert!(acknowledged.len() > 100);
    check(&on_disk(dir.path()), 1, Keys::new(), &acknowledged, "after the disk was full");
}
