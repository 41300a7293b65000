//! Forks, rewound ones and images: the same past, a future of one's own.

use super::*;

const KEYS: usize = 12;

/// Puts and deletions of a few keys, in an order that a seed decides.
async fn write(kv: &Kv, random: &mut Numbers, count: usize) {
    for _ in 0..count {
        let key = format!("/k/{}", random.below(KEYS));
        let op = match random.below(4) {
            0 => Op::Delete,
            _ => Op::Put { value: vec![random.below(256) as u8; 50].into(), lease: None },
        };
        kv.txn(&key, Expect::Any, op).await.unwrap();
    }
}

fn all(kv: &Kv, at: Option<Revision>) -> Vec<KeyValue> {
    kv.range("", None, None, at).unwrap().kvs
}

fn changes(kv: &Kv, after: Revision) -> Vec<KeyEvent> {
    let mut watch = kv.watch("/k/", after).unwrap();
    let mut events = Vec::new();
    while let Some(batch) = watch.try_next().unwrap() {
        events.extend(batch.events);
    }
    events
}

#[tokio::test]
async fn a_fork_has_the_past_and_neither_hears_of_the_others_future() {
    let (stores, _dir) = each();
    for parent in stores {
        let random = &mut Numbers(3);
        write(&parent, random, 300).await;
        let (revision, before) = (parent.revision(), all(&parent, None));
        let history = changes(&parent, 1);
        let fork = parent.fork(None, stepped_clock()).unwrap();
        assert_eq!((fork.revision(), all(&fork, None)), (revision, before.clone()));
        assert_eq!(changes(&fork, 1), history);
        write(&parent, random, 200).await;
        let parents = all(&parent, None);
        parent.compact(parent.revision()).await.unwrap();
        assert_eq!(all(&fork, None), before, "what the parent compacts stays for its forks");
        assert_eq!(changes(&fork, 1), history);
        write(&fork, random, 200).await;
        assert_eq!(all(&parent, None), parents);
        assert_eq!(all(&fork, Some(revision)), before);
        let forks = all(&fork, None);
        let grandchild = fork.fork(None, stepped_clock()).unwrap();
        parent.close().await;
        assert_eq!(all(&fork, Some(revision)), before, "a fork outlives its parent");
        fork.compact(fork.revision()).await.unwrap();
        drop(fork);
        assert_eq!(all(&grandchild, None), forks);
        assert_eq!(all(&grandchild, Some(revision)), before);
        assert!(matches!(parent.fork(None, stepped_clock()), Err(StoreError::Closed)));
    }
}

#[tokio::test]
async fn what_a_compaction_left_for_a_fork_goes_after_it_and_the_files_of_a_closed_parent_are_free() {
    let dir = tempfile::tempdir().unwrap();
    let parent = on_disk(dir.path());
    write(&parent, &mut Numbers(5), 300).await;
    let (revision, before) = (parent.revision(), all(&parent, None));
    let fork = parent.fork(None, stepped_clock()).unwrap();
    parent.close().await;
    drop(parent);
    let again = on_disk(dir.path());
    assert_eq!((all(&again, None), all(&fork, None)), (before.clone(), before.clone()));
    again.compact(revision).await.unwrap();
    assert_eq!(again.image().unwrap().revision(), revision);
    assert_eq!(all(&again, None), before);
    drop(fork);
}

#[tokio::test]
async fn a_rewound_fork_is_as_the_store_was_then() {
    let (stores, _dir) = each();
    for parent in stores {
        write(&parent, &mut Numbers(4), 120).await;
        parent.compact(20).await.unwrap();
        for to in (20..=parent.revision()).step_by(7) {
            let fork = parent.fork(Some(to), stepped_clock()).unwrap();
            assert_eq!((fork.revision(), all(&fork, None)), (to, all(&parent, Some(to))));
            let written = fork.txn("/k/0", Expect::Any, Op::Put { value: Bytes::new(), lease: None }).await;
            assert!(matches!(written, Ok(Txn::Committed { revision, .. }) if revision == to + 1));
            assert_eq!(changes(&fork, to).len(), 1);
        }
        let current = parent.revision();
        let compacted = parent.fork(Some(19), stepped_clock()).map(drop);
        assert!(
            matches!(compacted, Err(StoreError::Compacted { compact_revision: 20, .. })),
            "{compacted:?}"
        );
        let future = parent.fork(Some(current + 1), stepped_clock()).map(drop);
        assert!(matches!(future, Err(StoreError::FutureRevision { .. })), "{future:?}");
    }
}

#[tokio::test]
async fn leases_go_on_in_a_fork_and_one_that_has_ended_does_not_come_back() {
    let clock = stepped_clock();
    let parent = Kv::open(Options::default(), clock.clone()).unwrap();
    let lease = parent.grant_lease(Duration::from_secs(10)).await.unwrap();
    let put = |lease| Op::Put { value: Bytes::new(), lease };
    parent.txn("/k/a", Expect::Any, put(Some(lease))).await.unwrap();
    let then = parent.revision();
    clock.advance(Duration::from_secs(4));
    let own_time = clock.fork();
    let fork = parent.fork(None, own_time.clone()).unwrap();
    let image = parent.image().unwrap();
    let loaded_time = stepped_clock();
    let loaded = Kv::load(&image, Options::default(), loaded_time.clone()).unwrap();
    for (kv, time) in [(&fork, &own_time), (&loaded, &loaded_time)] {
        time.advance(Duration::from_secs(5));
        tokio::task::yield_now().await;
        assert!(kv.get("/k/a", None).unwrap().0.is_some());
        let mut watch = kv.watch("/k/", then).unwrap();
        while time.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        time.advance(Duration::from_secs(1));
        assert_eq!(watch.next().await.unwrap().events[0].kind, EventKind::Delete);
    }
    parent.revoke_lease(lease).await.unwrap();
    let rewound = parent.fork(Some(then), clock.fork()).unwrap();
    let mut watch = rewound.watch("/k/", then).unwrap();
    assert_eq!(watch.next().await.unwrap().events[0].kind, EventKind::Delete);
}

#[tokio::test]
async fn an_image_is_the_whole_store_in_memory_and_on_disk() {
    let (stores, _dir) = each();
    for parent in stores {
        write(&parent, &mut Numbers(6), 200).await;
        parent.compact(50).await.unwrap();
        let revision = parent.revision();
        let mut bytes = Vec::new();
        parent.image().unwrap().encode(&mut bytes);
        let image = StoreImage::decode(bytes.clone().into()).unwrap();
        let options = Options { recent_bytes: 2000, ..Options::default() };
        let loaded = Kv::load(&image, options, stepped_clock()).unwrap();
        let home = tempfile::tempdir().unwrap();
        let data_dir = home.path().join("etcd");
        image.restore(&data_dir, &stepped_clock()).unwrap();
        let restored = on_disk(&data_dir);
        for copy in [&loaded, &restored] {
            assert_eq!((copy.revision(), copy.compact_revision()), (revision, 50));
            assert_eq!(all(copy, None), all(&parent, None));
            assert_eq!(changes(copy, 50), changes(&parent, 50));
            write(copy, &mut Numbers(7), 50).await;
            copy.compact(copy.revision()).await.unwrap();
        }
        assert_eq!(all(&loaded, None), all(&restored, None));
        let refused = image.restore(&data_dir, &stepped_clock()).unwrap_err();
        assert!(refused.to_string().contains("there is a store in it already"), "{refused}");
    }
}

#[tokio::test]
async fn what_is_no_image_is_refused() {
    let kv = in_memory();
    write(&kv, &mut Numbers(8), 5).await;
    let mut bytes = Vec::new();
    kv.image().unwrap().encode(&mut bytes);
    for cut in 0..bytes.len() {
        assert_eq!(
            StoreImage::decode(Bytes::copy_from_slice(&bytes[..cut])).map(drop),
            Err(DamagedImage),
            "cut at {cut}"
        );
    }
    for at in 0..bytes.len() {
        let mut spoilt = bytes.clone();
        spoilt[at] ^= 0xff;
        // Refused, or read as something: never a panic.
        if let Ok(image) = StoreImage::decode(spoilt.into()) {
            let _ = Kv::load(&image, Options::default(), stepped_clock())
                .map(|kv| kv.range("", None, None, None));
        }
    }
    assert_eq!(StoreImage::decode([bytes, vec![0]].concat().into()).map(drop), Err(DamagedImage));
}

#[tokio::test]
async fn a_fork_is_taken_at_one_revision_while_writers_write() {
    let parent = in_memory();
    let writer = tokio::spawn({
        let parent = parent.clone();
        async move {
            for number in 0..500_u64 {
                for key in ["/k/a", "/k/b"] {
                    let value = number.to_be_bytes().to_vec().into();
                    parent.txn(key, Expect::Any, Op::Put { value, lease: None }).await.unwrap();
                }
                tokio::task::yield_now().await;
            }
        }
    });
    while !writer.is_finished() {
        let fork = parent.fork(None, stepped_clock()).unwrap();
        let newest = all(&fork, None).iter().map(|kv| kv.mod_revision).max().unwrap_or(1);
        assert_eq!(newest, fork.revision());
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}
