//! Killing the process that writes, and letting its disk fill up: what it acknowledged is there afterwards.
//!
//! The process is this test binary once more, running only [`child`], which says on standard output what has been
//! acknowledged.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;

const DATA_DIR: &str = "KUBARIUM_TEST_DATA_DIR";
const SEED: &str = "KUBARIUM_TEST_SEED";

/// The acknowledged writes: of each revision the key and its value, or None for a deletion.
type Acknowledged = BTreeMap<Revision, (String, Option<String>)>;

/// Writes with several tasks until killed, or until a write fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests below, in a process of its own"]
async fn child() {
    let Ok(dir) = std::env::var(DATA_DIR) else { return };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let kv = on_disk(Path::new(&dir));
    say(&format!("start {}", kv.revision()));
    let writers: Vec<_> = (0..8).map(|writer| tokio::spawn(write(kv.clone(), writer, seed))).collect();
    for writer in writers {
        let error = writer.await.unwrap();
        say(&format!("error {error}"));
    }
    say(&format!("alive {}", kv.range("/", None, None, None).unwrap().count));
    kv.close().await;
}

async fn write(kv: Kv, writer: u64, seed: u64) -> Error {
    let mut numbers = Numbers(seed * 100 + writer);
    loop {
        let key = format!("/{writer}/{}", numbers.below(20));
        let text = numbers.below(10).to_string().repeat(1 + numbers.below(4000));
        let op = if numbers.below(5) == 0 { Op::Delete } else { value(&text) };
        let deletes = op == Op::Delete;
        match kv.txn(&key, Expect::Any, op).await {
            Ok(Txn::Committed { revision, .. }) if deletes => say(&format!("ack {revision} {key}")),
            Ok(Txn::Committed { revision, .. }) => say(&format!("ack {revision} {key} {text}")),
            Ok(Txn::Conflict { .. }) => {}
            Err(error) => return error,
        }
        if numbers.below(500) == 0
            && let Err(error) = kv.compact(kv.revision().saturating_sub(100)).await
        {
            return error;
        }
    }
}

/// In one write, so that a kill leaves no half of a line that looks like a whole one.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

fn spawn(dir: &Path, seed: u64, shell: Option<&str>) -> Child {
    let test = ["etcd::tests::crash::child", "--exact", "--ignored", "--nocapture"];
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
fn parse(line: &str, started: &mut Option<Revision>, acknowledged: &mut Acknowledged) {
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

fn check(kv: &Kv, acknowledged: &Acknowledged, what: &str) {
    let newest = acknowledged.last_key_value().map_or(1, |(revision, _)| *revision);
    assert!(kv.revision() >= newest, "{what}: acknowledged up to {newest}, found {}", kv.revision());
    let mut latest = BTreeMap::new();
    for (revision, (key, text)) in acknowledged {
        latest.insert(key, (*revision, text));
        if *revision >= kv.compact_revision() {
            let found = kv.get(key, Some(*revision)).unwrap().0;
            assert_eq!(found.map(|kv| super::text(&kv).1), *text, "{what}: {key} at {revision}");
        }
    }
    for (key, (revision, text)) in latest {
        let found = kv.get(key, None).unwrap().0;
        // Something newer may be there that was not acknowledged any more.
        if found.as_ref().is_none_or(|kv| kv.mod_revision <= revision)
            && kv.get(key, None).unwrap().1 == newest
        {
            assert_eq!(found.map(|kv| super::text(&kv).1), *text, "{what}: {key}");
        }
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::new();
    let mut numbers = Numbers(2026);
    for round in 0..12 {
        let mut child = spawn(dir.path(), round, None);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut started = None;
        for _ in 0..4 + numbers.below(600) {
            let Some(line) = lines.next() else { break };
            parse(&line, &mut started, &mut acknowledged);
        }
        child.kill().unwrap();
        lines.for_each(|line| parse(&line, &mut started, &mut acknowledged));
        child.wait().unwrap();

        let kv = on_disk(dir.path());
        check(&kv, &acknowledged, &format!("round {round}"));
        let started = started.expect("the child started");
        assert!(kv.revision() >= started);
        kv.close().await;
    }
    assert!(acknowledged.len() > 500, "only {} writes", acknowledged.len());
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_fails_writes_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // No file may grow over 4 MiB (in blocks of 512 bytes); the signal that says so is ignored.
    let child = spawn(dir.path(), 1, Some("trap '' XFSZ; ulimit -f 8192"));
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let (mut started, mut acknowledged) = (None, Acknowledged::new());
    lines.lines().for_each(|line| parse(line, &mut started, &mut acknowledged));
    assert!(output.status.success(), "the process ended with {}", output.status);
    assert_eq!(
        lines.lines().filter(|line| line.starts_with("error the store cannot use its files")).count(),
        8
    );
    assert!(lines.lines().any(|line| line.starts_with("alive ")), "reads went on");
    assert!(acknowledged.len() > 100);
    check(&on_disk(dir.path()), &acknowledged, "after the disk was full");
}
