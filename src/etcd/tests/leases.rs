//! Leases: keys that go when their time is up.

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn hanging(lease: LeaseId) -> Op {
    Op::Put { value: Bytes::from_static(b"x"), lease: Some(lease) }
}

/// A store and the clock it runs on.
fn store(data_dir: Option<&Path>) -> (Kv, Clock) {
    let clock = stepped_clock();
    let options = Options { data_dir: data_dir.map(Path::to_owned), ..Options::default() };
    (Kv::open(options, clock.clone()).unwrap(), clock)
}

/// Lets what is due happen, until `done`.
async fn advance(clock: &Clock, by: Duration, mut done: impl FnMut() -> bool) {
    while clock.next_wake().is_none() {
        tokio::task::yield_now().await;
    }
    clock.advance(by);
    while !done() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_expired_lease_deletes_its_keys_as_writes_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    for data_dir in [None, Some(dir.path())] {
        let (kv, clock) = store(data_dir);
        let lease = kv.grant_lease(HOUR).await.unwrap();
        assert_eq!(kv.revision(), 1, "a lease is no change of a key");
        for key in ["/events/a", "/events/b", "/events/kept"] {
            kv.txn(key, Expect::Any, hanging(lease)).await.unwrap();
        }
        put(&kv, "/events/kept", "put again without the lease").await;
        assert_eq!(kv.get("/events/a", None).unwrap().0.unwrap().lease, Some(lease));
        let mut watch = kv.watch("/events/", 5).unwrap();

        advance(&clock, HOUR / 2, || true).await;
        kv.keep_alive(lease).unwrap();
        advance(&clock, HOUR * 3 / 4, || true).await;
        assert_eq!(kv.range("/events/", None, None, None).unwrap().count, 3);
        advance(&clock, HOUR / 4, || kv.revision() == 7).await;

        let events = watch.next().await.unwrap().events;
        let deleted: Vec<_> =
            events.iter().map(|event| (event.kind, event.revision(), &*event.kv.key)).collect();
        assert_eq!(deleted, [(EventKind::Delete, 6, "/events/a"), (EventKind::Delete, 7, "/events/b")]);
        assert!(events.iter().all(|event| event.previous.is_some()));
        while kv.keep_alive(lease).is_ok() {
            tokio::task::yield_now().await;
        }
        let gone = kv.txn("/events/c", Expect::Any, hanging(lease)).await;
        assert!(matches!(gone, Err(StoreError::LeaseNotFound(id)) if id == lease));
        assert!(matches!(kv.revoke_lease(lease).await, Err(StoreError::LeaseNotFound(_))));
        kv.close().await;
    }
}

#[tokio::test]
async fn leases_and_what_hangs_on_them_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (kv, _) = store(Some(dir.path()));
    let revoked = kv.grant_lease(HOUR).await.unwrap();
    let lease = kv.grant_lease(HOUR).await.unwrap();
    kv.txn("/revoked", Expect::Any, hanging(revoked)).await.unwrap();
    kv.txn("/a", Expect::Any, hanging(lease)).await.unwrap();
    kv.txn("/b", Expect::Any, hanging(lease)).await.unwrap();
    put(&kv, "/b", "no longer").await;
    kv.revoke_lease(revoked).await.unwrap();
    assert_eq!(kv.get("/revoked", None).unwrap().0, None);
    kv.close().await;

    let (kv, clock) = store(Some(dir.path()));
    assert_eq!(kv.revision(), 6);
    assert!(kv.keep_alive(revoked).is_err());
    kv.keep_alive(lease).unwrap();
    let next = kv.grant_lease(HOUR * 2).await.unwrap();
    assert!(next > lease, "a number is given once");
    advance(&clock, HOUR, || kv.revision() == 7).await;
    assert_eq!(kv.get("/a", None).unwrap().0, None);
    assert!(kv.get("/b", None).unwrap().0.is_some());
    kv.close().await;
}

#[tokio::test]
async fn keys_of_similar_life_times_share_a_lease() {
    let (kv, clock) = store(None);
    let manager = LeaseManager::new(kv.clone());
    let first = manager.lease(HOUR).await.unwrap();
    assert_eq!(manager.lease(HOUR).await.unwrap(), first);
    clock.advance(Duration::from_secs(60));
    assert_eq!(manager.lease(HOUR).await.unwrap(), first);
    clock.advance(Duration::from_secs(1));
    let second = manager.lease(HOUR).await.unwrap();
    assert_ne!(second, first, "it would expire too early");
    assert_ne!(manager.lease(HOUR / 2).await.unwrap(), second, "it would expire too late");

    let full = manager.lease(HOUR).await.unwrap();
    for _ in 1..1000 {
        assert_eq!(manager.lease(HOUR).await.unwrap(), full);
    }
    assert_ne!(manager.lease(HOUR).await.unwrap(), full);
}

#[tokio::test]
async fn the_compactor_keeps_at_least_one_interval() {
    let (kv, clock) = store(None);
    put(&kv, "/a", "1").await;
    let compactor = tokio::spawn(compactor(&kv, COMPACTION_INTERVAL));
    put(&kv, "/a", "2").await;
    advance(&clock, COMPACTION_INTERVAL, || true).await;
    while clock.next_wake().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(kv.compact_revision(), 0);
    put(&kv, "/a", "3").await;
    advance(&clock, COMPACTION_INTERVAL, || kv.compact_revision() == 3).await;
    assert_eq!(text(&kv.get("/a", Some(3)).unwrap().0.unwrap()).1, "2");

    drop(kv);
    advance(&clock, COMPACTION_INTERVAL, || compactor.is_finished()).await;
}
