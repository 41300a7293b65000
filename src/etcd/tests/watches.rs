//! Watches: the log, read from a revision on.

use super::*;

/// Of each event the revision, the key, and the values after and before.
type Seen = Vec<(Revision, String, Option<String>, Option<String>)>;

fn seen(events: &[KeyEvent]) -> Seen {
    let put = |event: &KeyEvent| (event.kind == EventKind::Put).then(|| text(&event.kv).1);
    let before = |event: &KeyEvent| event.previous.as_ref().map(|kv| text(kv).1);
    let seen = events.iter().map(|event| (event.revision(), text(&event.kv).0, put(event), before(event)));
    seen.collect()
}

/// Reads until the watch has got to a revision.
async fn read_to(watch: &mut Watch, revision: Revision) -> Vec<KeyEvent> {
    let mut events = Vec::new();
    loop {
        let batch = watch.next().await.unwrap();
        events.extend(batch.events);
        assert!(events.is_sorted_by(|one, other| one.revision() < other.revision()));
        if batch.revision >= revision {
            return events;
        }
    }
}

#[tokio::test]
async fn a_watch_delivers_its_prefix_from_its_revision_on() {
    for kv in each().0 {
        put(&kv, "/pods/a", "1").await;
        let mut from_start = kv.watch("/pods/", 1).unwrap();
        put(&kv, "/nodes/n", "1").await;
        put(&kv, "/pods/a", "2").await;
        let mut from_here = kv.watch("/pods/", 4).unwrap();
        delete(&kv, "/pods/a").await;
        put(&kv, "/pods/a", "3").await;

        let some = |text: &str| Some(text.to_owned());
        let key = || "/pods/a".to_owned();
        let later = [(5, key(), None, some("2")), (6, key(), some("3"), None)];
        let earlier = [(2, key(), some("1"), None), (4, key(), some("2"), some("1"))];
        assert_eq!(seen(&read_to(&mut from_here, 6).await), later);
        assert_eq!(seen(&read_to(&mut from_start, 6).await), [earlier, later].concat());
        assert_eq!(from_start.try_next().unwrap(), None);
        kv.close().await;
    }
}

#[tokio::test]
async fn a_deletion_tells_what_was_deleted_and_when() {
    for kv in each().0 {
        put(&kv, "/a", "1").await;
        let mut watch = kv.watch("/", 2).unwrap();
        delete(&kv, "/a").await;
        let event = read_to(&mut watch, 3).await.remove(0);
        assert_eq!((event.kind, event.kv.mod_revision, event.kv.value.len()), (EventKind::Delete, 3, 0));
        let previous = event.previous.unwrap();
        assert_eq!((previous.mod_revision, previous.version, &*previous.value), (2, 1, &b"1"[..]));
        kv.close().await;
    }
}

#[tokio::test]
async fn an_idle_watch_tells_its_progress_when_asked_and_compaction_leaves_it_alone() {
    for kv in each().0 {
        let mut idle = kv.watch("/idle/", 1).unwrap();
        let mut other = kv.watch("/busy/", 1).unwrap();
        assert_eq!(idle.try_next().unwrap(), None);
        for number in 0..100 {
            put(&kv, "/busy/a", &number.to_string()).await;
        }
        kv.compact(100).await.unwrap();
        assert_eq!(idle.try_next().unwrap(), None);
        kv.request_progress("/idle/");
        assert_eq!(idle.next().await.unwrap(), WatchBatch { events: Vec::new(), revision: 101 });
        assert_eq!(idle.try_next().unwrap(), None);
        let overtaken = other.next().await;
        assert!(matches!(overtaken, Err(StoreError::Compacted { compact_revision: 100, current: 101 })));

        put(&kv, "/idle/a", "1").await;
        kv.request_progress("/idle/");
        assert_eq!(read_to(&mut idle, 102).await.len(), 1);
        kv.close().await;
    }
}

#[tokio::test]
async fn a_watch_that_is_behind_what_memory_keeps_reads_the_log_in_pieces() {
    for kv in each().0 {
        for number in 0..2500 {
            put(&kv, &format!("/a/{}", number % 7), &number.to_string()).await;
            put(&kv, "/b", "x").await;
        }
        let mut watch = kv.watch("/a/", 1).unwrap();
        let first = watch.next().await.unwrap();
        assert!(first.events.len() < 2500 && first.revision < kv.revision());
        let mut events = first.events;
        events.extend(read_to(&mut watch, 5001).await);
        let expected: Seen = (0..2500)
            .map(|number: u64| {
                let before = number.checked_sub(7).map(|before| before.to_string());
                (2 + 2 * number, format!("/a/{}", number % 7), Some(number.to_string()), before)
            })
            .collect();
        assert_eq!(seen(&events), expected);
        kv.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watches_that_wait_while_others_write_miss_nothing() {
    for kv in each().0 {
        let watcher = |kv: &Kv, prefix: String| {
            let mut watch = kv.watch(&prefix, 1).unwrap();
            tokio::spawn(async move {
                let mut revisions = Vec::new();
                while revisions.len() < 200 {
                    let batch = watch.next().await.unwrap();
                    assert!(batch.events.iter().all(|event| event.kv.key.starts_with(&prefix)));
                    revisions.extend(batch.events.iter().map(KeyEvent::revision));
                }
                revisions
            })
        };
        let writer = |kv: Kv, prefix: String| async move {
            let mut revisions = Vec::new();
            for number in 0..100 {
                revisions.push(put(&kv, &format!("{prefix}{}", number % 5), "x").await);
            }
            revisions
        };
        let prefixes = || (0..4).map(|number| format!("/{number}/"));
        let watchers: Vec<_> = prefixes().map(|prefix| watcher(&kv, prefix)).collect();
        // Two writers for each prefix.
        let writers: Vec<_> =
            prefixes().chain(prefixes()).map(|prefix| tokio::spawn(writer(kv.clone(), prefix))).collect();
        let mut written = vec![Vec::new(); 4];
        for (number, writer) in writers.into_iter().enumerate() {
            written[number % 4].extend(writer.await.unwrap());
        }
        for (watcher, mut written) in watchers.into_iter().zip(written) {
            written.sort_unstable();
            assert_eq!(watcher.await.unwrap(), written);
        }
        kv.close().await;
    }
}

#[tokio::test]
async fn a_watch_ends_with_the_last_handle() {
    for kv in each().0 {
        let mut watch = kv.watch("/", 1).unwrap();
        let waiting = tokio::spawn(async move { watch.next().await });
        tokio::task::yield_now().await;
        drop(kv);
        assert!(matches!(waiting.await.unwrap(), Err(StoreError::Closed)));
    }
}

#[tokio::test]
async fn a_watch_of_etcds_api_may_begin_at_the_compacted_revision_itself() {
    for kv in each().0 {
        put(&kv, "/a", "1").await;
        put(&kv, "/b", "1").await;
        put(&kv, "/a", "2").await;
        delete(&kv, "/b").await;
        put(&kv, "/a", "3").await;
        let watch = |after| kv.watch_notifying(KeySpan::prefix("/"), after, Arc::default());
        for (compacted, key, after) in [(4, "/a", Some("2")), (5, "/b", None)] {
            kv.compact(compacted).await.unwrap();
            let events = read_to(&mut watch(compacted - 1).unwrap(), 6).await;
            let first = seen(&events).remove(0);
            assert_eq!(first, (compacted, key.to_owned(), after.map(str::to_owned), None));
            assert_eq!(seen(&events).pop().unwrap().2, Some("3".to_owned()));
            let gone = |error| matches!(error, StoreError::Compacted { .. });
            assert!(watch(compacted - 2).is_err_and(gone), "an older one is refused");
            assert!(kv.watch("/", compacted - 1).is_err_and(gone), "who needs what was before is refused");
            assert_eq!(kv.range("/", None, None, Some(compacted)).unwrap().revision, compacted);
        }
        kv.compact(6).await.unwrap();
        assert_eq!(seen(&read_to(&mut watch(5).unwrap(), 6).await).len(), 1, "the deletion is forgotten");
        kv.close().await;
    }
}
