//! Several reads and writes in one step.

use super::*;

/// Puts all of these in one step; the revision.
async fn put_all(kv: &Kv, keys: &'static [&'static str], text: &'static str) -> Revision {
    let put_all = move |txn: &mut Transaction<'_>| {
        for key in keys {
            txn.put(key, Bytes::from_static(text.as_bytes()), None)?;
        }
        Ok::<_, StoreError>(txn.revision())
    };
    kv.transact(put_all).await.unwrap()
}

#[tokio::test]
async fn all_of_it_has_one_revision_and_is_delivered_together() {
    for kv in each().0 {
        put(&kv, "/a", "0").await;
        let mut watch = kv.watch("/", 2).unwrap();
        let mut one = kv.watch_of(KeySpan::Key("/b".into()), 2).unwrap();
        assert_eq!(put_all(&kv, &["/a", "/b", "/c"], "1").await, 3);
        let batch = watch.next().await.unwrap();
        let seen: Vec<_> = batch.events.iter().map(|event| (event.revision(), &*event.kv.key)).collect();
        assert_eq!(seen, [(3, "/a"), (3, "/b"), (3, "/c")]);
        assert_eq!(text(batch.events[0].previous.as_ref().unwrap()).1, "0");
        assert_eq!(one.next().await.unwrap().events.len(), 1);
        assert_eq!(kv.range("/", None, None, Some(2)).unwrap().count, 1);
        assert_eq!(kv.range("/", None, None, Some(3)).unwrap().count, 3);
        assert_eq!(kv.get("/a", None).unwrap().0.unwrap().version, 2);
        kv.close().await;
    }
}

#[tokio::test]
async fn a_failure_leaves_nothing_and_uses_no_revision() {
    for kv in each().0 {
        put(&kv, "/a", "0").await;
        let twice = |txn: &mut Transaction<'_>| {
            txn.put("/b", Bytes::new(), None)?;
            txn.delete("/a")?;
            txn.put("/a", Bytes::new(), None)
        };
        assert!(matches!(kv.transact(twice).await, Err(StoreError::KeyWrittenTwice(key)) if key == "/a"));
        let hanging = |txn: &mut Transaction<'_>| {
            txn.put("/b", Bytes::new(), None)?;
            txn.put("/c", Bytes::new(), Some(LeaseId(7)))
        };
        assert!(matches!(kv.transact(hanging).await, Err(StoreError::LeaseNotFound(LeaseId(7)))));
        let reads = kv.transact(|txn| Ok::<_, StoreError>((txn.delete("/x")?, txn.revision()))).await;
        assert_eq!(reads.unwrap(), (None, 2));
        assert_eq!((kv.revision(), kv.range("/", None, None, None).unwrap().count), (2, 1));
        kv.close().await;
    }
}

#[tokio::test]
async fn it_reads_what_itself_and_those_before_it_have_written() {
    for kv in each().0 {
        let writes = (0..9).map(|at| {
            let kv = kv.clone();
            async move { put(&kv, &format!("/{at}"), "1").await }
        });
        let counted = kv.transact(|txn| {
            txn.put("/x", Bytes::from_static(b"1"), None)?;
            txn.delete("/0")?;
            let found = txn.range(&KeySpan::prefix("/"), 2, None)?;
            let before = txn.range(&KeySpan::prefix("/"), 0, Some(txn.revision() - 1))?;
            let future = txn.range(&KeySpan::ALL, 1, Some(txn.revision() + 1)).unwrap_err();
            assert!(matches!(future, StoreError::FutureRevision { .. }));
            Ok::<_, StoreError>((found.count, found.kvs.len(), before.count))
        });
        let (_, counted) = tokio::join!(futures_of(writes), counted);
        let (now, page, before) = counted.unwrap();
        assert_eq!(page, now.min(2));
        // Less /0, if it was there, and with /x.
        assert!(now == before || now == before + 1, "{now} {before}");
        kv.close().await;
    }
}

async fn futures_of<F: Future<Output = Revision> + Send + 'static>(writes: impl Iterator<Item = F>) {
    let tasks: Vec<_> = writes.map(tokio::spawn).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_batch_of_a_watch_never_ends_within_a_revision() {
    let dir = tempfile::tempdir().unwrap();
    for kv in [in_memory(), on_disk(dir.path())] {
        let many = |txn: &mut Transaction<'_>| {
            (0..3000).try_for_each(|at| txn.put(&format!("/{at:04}"), Bytes::new(), None).map(drop))
        };
        put(&kv, "/", "0").await;
        kv.transact(many).await.unwrap();
        put(&kv, "/z", "0").await;
        let mut watch = kv.watch("/", 1).unwrap();
        let mut sizes = Vec::new();
        let mut newest = 1;
        while let Some(batch) = watch.try_next().unwrap() {
            assert!(batch.events.iter().all(|event| event.revision() > newest));
            newest = batch.revision;
            sizes.push(batch.events.len());
        }
        assert_eq!((sizes.iter().sum::<usize>(), newest), (3002, 4), "{sizes:?}");
        kv.close().await;
    }
}

/// What is superseded in a group goes, and does not come back with a restart, while others of it stay.
#[tokio::test]
async fn compaction_takes_its_part_of_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let kv = on_disk(dir.path());
    put_all(&kv, &["/a", "/b", "/c"], "1").await;
    let turn = |txn: &mut Transaction<'_>| {
        txn.delete("/a")?;
        txn.put("/b", Bytes::from_static(b"2"), None)
    };
    kv.transact(turn).await.unwrap();
    delete(&kv, "/b").await;
    kv.compact(4).await.unwrap();
    kv.close().await;
    for rewrite_bytes in [u64::MAX, 0] {
        let options = Options { rewrite_bytes, ..disk_options(dir.path()) };
        let kv = Kv::open(options, stepped_clock()).unwrap();
        assert_eq!(texts(&kv.range("/", None, None, None).unwrap()), [("/c".to_owned(), "1".to_owned())]);
        assert_eq!(kv.get("/c", None).unwrap().0.unwrap().mod_revision, 2);
        // Also when the log is written anew, and from an image.
        let revision = put(&kv, "/d", "1").await;
        kv.compact(revision).await.unwrap();
        let image = kv.image().unwrap();
        let loaded = Kv::load(&image, Options::default(), stepped_clock()).unwrap();
        assert_eq!(loaded.range("/", None, None, None).unwrap().count, 2);
        delete(&kv, "/d").await;
        kv.compact(revision + 1).await.unwrap();
        kv.close().await;
    }
}

#[tokio::test]
async fn leases_have_the_names_that_they_were_given() {
    let dir = tempfile::tempdir().unwrap();
    let kv = on_disk(dir.path());
    let hour = Duration::from_secs(3600);
    // What the second lease would be called.
    let name = crate::lease_names::name(2);
    let named = kv.grant_named_lease(name, hour).await.unwrap();
    let again = kv.grant_named_lease(name, hour).await;
    assert!(matches!(again, Err(StoreError::LeaseExists(lease)) if lease == named));
    let own = kv.grant_lease(hour).await.unwrap();
    let own_name = kv.lease_name(own);
    assert!(own_name != name && own_name > 1 << 52, "{own_name}: not that of another, and no count");
    let put = move |txn: &mut Transaction<'_>| txn.put("/a", Bytes::new(), Some(named));
    kv.transact(put).await.unwrap();
    kv.close().await;
    let kv = on_disk(dir.path());
    assert_eq!((kv.lease_named(name), kv.lease_named(own_name)), (Some(named), Some(own)));
    let names: Vec<_> = kv.leases().iter().map(|status| (status.lease, status.name)).collect();
    assert_eq!(names, [(named, name), (own, own_name)]);
    assert_eq!(kv.lease_status(named).unwrap().remaining, hour);
    assert_eq!(kv.lease_keys(named).unwrap(), [Arc::from("/a")]);
    kv.revoke_lease(named).await.unwrap();
    assert_eq!((kv.lease_named(name), kv.get("/a", None).unwrap().0), (None, None));
    kv.close().await;
}
