//! `kubarium etcd`: what it keeps, and what it refuses.

use super::*;
use crate::support::{at_home, eventually};

#[tokio::test]
async fn what_it_keeps_is_there_after_a_restart_and_one_process_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--listen-client-urls", "127.0.0.1:0", "--name", "one"];
    let etcd = EtcdProcess::start(folder.path(), &flags);
    let put = PutRequest { key: bytes("a"), value: bytes("1"), ..Default::default() };
    let put: PutResponse = ask(etcd.address, "KV/Put", &put).await.unwrap().unwrap();
    assert_eq!(put.header.0.unwrap().revision, 2);
    let mut other = command(folder.path());
    let other = other.args(["etcd", "--data-dir"]).arg(folder.path().join("data")).args(flags);
    let refused = other.output().unwrap();
    assert!(
        !refused.status.success() && texts(&refused).1.contains("in the hands of process"),
        "{refused:?}"
    );
    etcd.kill();
    let etcd = EtcdProcess::start(folder.path(), &flags);
    let read = RangeRequest { key: bytes("a"), ..Default::default() };
    let found: RangeResponse = ask(etcd.address, "KV/Range", &read).await.unwrap().unwrap();
    assert_eq!((&found.kvs.0[0].value[..], found.header.0.unwrap().revision), (&b"1"[..], 2));
    let members: MemberListResponse =
        ask(etcd.address, "Cluster/MemberList", &Empty {}).await.unwrap().unwrap();
    assert_eq!(members.members.0[0].name, "one");
}

#[test]
fn what_cannot_be_served_is_said_by_its_flag() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "file", "nothing");
    for (words, expected) in [
        (
            &["etcd", "--listen-client-urls", "https://127.0.0.1:0"][..],
            "https needs --cert-file and --key-file",
        ),
        (&["etcd", "--listen-client-urls", "unix://x"], "http:// and https:// are"),
        (&["etcd", "--cert-file", &file], "--key-file"),
        (
            &[
                "etcd",
                "--listen-client-urls",
                "https://127.0.0.1:0",
                "--cert-file",
                &file,
                "--key-file",
                &file,
            ],
            "not PEM",
        ),
        (
            &["etcd", "--listen-client-urls", "http://0.0.0.0:0"],
            "lets everybody read and write everything, Secrets too",
        ),
        (
            &["up", "--listen-client-urls", "0.0.0.0:0"],
            "lets everybody read and write everything, Secrets too",
        ),
    ] {
        let refused = command(folder.path()).current_dir(folder.path()).args(words).output().unwrap();
        let said = texts(&refused).1;
        assert!(!refused.status.success() && said.contains(expected), "{words:?}: {said}");
    }
}

/// As a shell does that starts it for good, and ends.
#[test]
fn it_stays_when_whoever_started_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut shell = at_home(Command::new("sh"), folder.path());
    let line = "\"$0\" etcd --data-dir data --listen-client-urls 127.0.0.1:0 >log 2>&1 </dev/null & echo $!";
    let started = shell.current_dir(folder.path()).args(["-c", line, env!("CARGO_BIN_EXE_kubarium")]);
    let pid: i32 = texts(&started.output().unwrap()).0.trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ended = EndedAtEnd(pid);
    let address = eventually("its address", || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let line = said.lines().find_map(|line| line.strip_prefix("serving client traffic on "));
        line.map(ToOwned::to_owned)
    });
    let etcdctl = Etcdctl::new(&address);
    // Long enough for it to look several times who has started it.
    for value in 0..40 {
        etcdctl.ok(&["put", "a", &value.to_string()]);
    }
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    eventually("it to end", || std::net::TcpStream::connect(&address).is_err().then_some(()));
}

/// Nobody's child, which goes with its test.
struct EndedAtEnd(rustix::process::Pid);

impl Drop for EndedAtEnd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = rustix::process::kill_process(self.0, rustix::process::Signal::KILL);
        }
    }
}

/// It ends with a signal, though a client keeps a watch open.
#[test]
fn it_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut etcd = EtcdProcess::start(folder.path(), &["--listen-client-urls", "127.0.0.1:0"]);
    let etcdctl = Etcdctl::new(etcd.address);
    let mut watch = etcdctl.command(&["watch", "a"]);
    let watch = watch.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    let _watching = KilledAtEnd(watch.spawn().unwrap());
    etcdctl.ok(&["put", "a", "1"]);
    let pid = rustix::process::Pid::from_raw(i32::try_from(etcd.child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = eventually("etcd to end", || etcd.child.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_quota_is_told_and_kept_until_it_is_disarmed() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--listen-client-urls", "127.0.0.1:0", "--quota-backend-bytes", "20000000"];
    let etcd = EtcdProcess::start(folder.path(), &flags);
    let put = PutRequest { key: bytes("large"), value: vec![b'x'; 1 << 20].into(), ..Default::default() };
    let mut revision = 0;
    let refused = loop {
        match ask::<PutResponse>(etcd.address, "KV/Put", &put).await.unwrap() {
            Ok(put) => revision = put.header.0.unwrap().revision,
            Err(refused) => break refused,
        }
        assert!(revision < 100, "it is never full");
    };
    assert_eq!(refused.message, "etcdserver: mvcc: database space exceeded");
    const RAISED: &str = "memberID:10276657743932975437 alarm:NOSPACE";
    let etcdctl = Etcdctl::new(etcd.address);
    assert_eq!(etcdctl.ok(&["alarm", "list"]).trim(), RAISED);
    assert!(etcdctl.ok(&["endpoint", "status", "--write-out=table"]).contains("NOSPACE"));
    etcd.kill();
    let etcd = EtcdProcess::start(folder.path(), &flags);
    let etcdctl = Etcdctl::new(etcd.address);
    assert!(etcdctl.fails(&["put", "a", "1"]).contains("etcdserver: mvcc: database space exceeded"));
    assert_eq!(etcdctl.ok(&["del", "large"]).trim(), "1");
    etcdctl.ok(&["compact", &(revision + 1).to_string()]);
    etcdctl.ok(&["defrag"]);
    assert_eq!(etcdctl.ok(&["alarm", "disarm"]).trim(), RAISED);
    etcdctl.ok(&["put", "a", "1"]);
    assert_eq!(etcdctl.ok(&["alarm", "list"]), "");
}
