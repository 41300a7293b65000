//! Revisions, compares, ranges, history, compaction: on both kinds of store.

use super::*;

#[tokio::test]
async fn revisions_count_by_one_and_tell_a_keys_life() {
    for kv in each().0 {
        assert_eq!((kv.revision(), kv.compact_revision()), (1, 0));
        assert_eq!(put(&kv, "/a", "1").await, 2);
        assert_eq!(put(&kv, "/b", "1").await, 3);
        assert_eq!(put(&kv, "/a", "2").await, 4);
        let (found, revision) = kv.get("/a", None).unwrap();
        let found = found.unwrap();
        assert_eq!((found.create_revision, found.mod_revision, found.version, revision), (2, 4, 2, 4));

        assert!(!kv.is_empty("/a").unwrap() && kv.is_empty("/none").unwrap());
        assert_eq!(delete(&kv, "/a").await, 5);
        assert_eq!(kv.get("/a", None).unwrap(), (None, 5));
        assert!(kv.is_empty("/a").unwrap() && !kv.is_empty("/").unwrap());
        assert_eq!(put(&kv, "/a", "3").await, 6);
        let found = kv.get("/a", None).unwrap().0.unwrap();
        assert_eq!((found.create_revision, found.mod_revision, found.version), (6, 6, 1));
        let at_4 = kv.get("/a", Some(4)).unwrap();
        assert_eq!((text(&at_4.0.unwrap()).1.as_str(), at_4.1), ("2", 4));
        kv.close().await;
    }
}

#[tokio::test]
async fn a_write_happens_only_if_what_is_there_is_what_was_expected() {
    // `/there` stands at revision 2, `/gone` was deleted at 4.
    let table = [
        ("/new", Expect::ModRevision(0), value("x"), Ok(None)),
        ("/new", Expect::Any, value("x"), Ok(None)),
        ("/new", Expect::ModRevision(2), value("x"), Err(None)),
        ("/new", Expect::Any, Op::Delete, Err(None)),
        ("/new", Expect::ModRevision(0), Op::Delete, Err(None)),
        ("/there", Expect::ModRevision(0), value("x"), Err(Some(2))),
        ("/there", Expect::ModRevision(1), value("x"), Err(Some(2))),
        ("/there", Expect::ModRevision(3), Op::Delete, Err(Some(2))),
        ("/there", Expect::ModRevision(2), value("x"), Ok(Some(2))),
        ("/there", Expect::ModRevision(2), Op::Delete, Ok(Some(2))),
        ("/there", Expect::Any, Op::Delete, Ok(Some(2))),
        ("/gone", Expect::ModRevision(4), value("x"), Err(None)),
        ("/gone", Expect::ModRevision(3), value("x"), Err(None)),
        ("/gone", Expect::ModRevision(0), value("x"), Ok(None)),
        ("/gone", Expect::Any, Op::Delete, Err(None)),
    ];
    for (key, expect, op, outcome) in table {
        for kv in each().0 {
            put(&kv, "/there", "old").await;
            put(&kv, "/gone", "old").await;
            delete(&kv, "/gone").await;
            let found = match kv.txn(key, expect, op.clone()).await.unwrap() {
                Txn::Committed { revision, previous } => {
                    assert_eq!((revision, kv.revision()), (5, 5));
                    Ok(previous.map(|kv| kv.mod_revision))
                }
                Txn::Conflict { current } => {
                    assert_eq!(kv.revision(), 4, "a conflict uses no revision");
                    Err(current.map(|kv| kv.mod_revision))
                }
            };
            assert_eq!(found, outcome, "{key} {expect:?} {op:?}");
            kv.close().await;
        }
    }
}

#[tokio::test]
async fn a_range_is_ordered_bounded_and_of_one_revision() {
    for kv in each().0 {
        for key in ["/b/2", "/a/1", "/b/1", "/b/3", "/c/1", "/b"] {
            put(&kv, key, key).await;
        }
        put(&kv, "/b/1", "later").await;
        delete(&kv, "/b/3").await;
        // prefix, from, limit, at, keys, more, count
        type Row = (
            &'static str,
            Option<&'static str>,
            Option<usize>,
            Option<Revision>,
            &'static [&'static str],
            bool,
            usize,
        );
        let table: [Row; 10] = [
            ("/b/", None, None, None, &["/b/1", "/b/2"], false, 2),
            ("/b/", None, None, Some(7), &["/b/1", "/b/2", "/b/3"], false, 3),
            ("/b/", None, Some(2), Some(7), &["/b/1", "/b/2"], true, 3),
            ("/b/", Some("/b/2\0"), Some(2), Some(7), &["/b/3"], false, 1),
            ("/b/", Some("/b/2"), None, Some(7), &["/b/2", "/b/3"], false, 2),
            ("/b/", Some("/a"), Some(1), None, &["/b/1"], true, 2),
            ("/b/", Some("/c"), None, None, &[], false, 0),
            ("/b/", None, Some(0), None, &[], true, 2),
            ("", None, None, Some(3), &["/a/1", "/b/2"], false, 2),
            ("/x", None, None, None, &[], false, 0),
        ];
        for (prefix, from, limit, at, keys, more, count) in table {
            let range = kv.range(prefix, from, limit, at).unwrap();
            let found: Vec<_> = range.kvs.iter().map(|kv| &*kv.key).collect();
            let what = format!("{prefix} {from:?} {limit:?} {at:?}");
            assert_eq!((found.as_slice(), range.more, range.count), (keys, more, count), "{what}");
            assert_eq!(range.revision, at.unwrap_or(9), "{what}");
        }
        assert_eq!(texts(&kv.range("/b/1", None, None, Some(8)).unwrap())[0].1, "later");
        kv.close().await;
    }
}

#[tokio::test]
async fn values_of_any_size_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = [0, 1, 3_000, 40_000, 200_000, 3 << 20];
    let kv = on_disk(dir.path());
    for (number, size) in sizes.into_iter().enumerate() {
        put(&kv, &format!("/{number}"), &"x".repeat(size)).await;
    }
    kv.close().await;
    drop(kv);
    let kv = on_disk(dir.path());
    let found = kv.range("/", None, None, None).unwrap();
    assert_eq!(found.kvs.iter().map(|kv| kv.value.len()).collect::<Vec<_>>(), sizes);
    assert_eq!(put(&kv, "/more", "x").await, 8);
}

#[tokio::test]
async fn compaction_keeps_what_is_live_and_refuses_what_is_gone() {
    for kv in each().0 {
        put(&kv, "/a", "1").await;
        put(&kv, "/b", "1").await;
        put(&kv, "/a", "2").await;
        delete(&kv, "/b").await;
        put(&kv, "/a", "3").await;
        assert!(matches!(kv.compact(7).await, Err(StoreError::FutureRevision { requested: 7, current: 6 })));
        kv.compact(5).await.unwrap();
        kv.compact(4).await.unwrap();
        assert_eq!((kv.compact_revision(), kv.revision()), (5, 6));

        for at in [1, 4] {
            let gone = |error| matches!(error, StoreError::Compacted { compact_revision: 5, current: 6 });
            assert!(kv.get("/a", Some(at)).is_err_and(gone));
            assert!(kv.range("/", None, None, Some(at)).is_err_and(gone));
            assert!(kv.watch("/", at).is_err_and(gone));
        }
        let future = |error| matches!(error, StoreError::FutureRevision { requested: 7, current: 6 });
        assert!(kv.get("/a", Some(7)).is_err_and(future));
        assert!(kv.range("/", None, None, Some(7)).is_err_and(future));
        assert!(kv.watch("/", 7).is_err_and(future));

        assert_eq!(texts(&kv.range("/", None, None, Some(5)).unwrap()), [("/a".into(), "2".into())]);
        assert_eq!(texts(&kv.range("/", None, None, None).unwrap()), [("/a".into(), "3".into())]);
        kv.close().await;
    }
}

#[tokio::test]
async fn a_store_that_was_closed_answers_so() {
    for kv in each().0 {
        put(&kv, "/a", "1").await;
        let mut watch = kv.watch("/", 1).unwrap();
        kv.close().await;
        kv.close().await;
        let closed = |error| matches!(error, StoreError::Closed);
        assert!(kv.get("/a", None).is_err_and(closed));
        assert!(kv.range("/", None, None, None).is_err_and(closed));
        assert!(kv.watch("/", 1).is_err_and(closed));
        assert!(kv.txn("/a", Expect::Any, value("2")).await.is_err_and(closed));
        assert!(kv.compact(1).await.is_err_and(closed));
        assert!(kv.grant_lease(Duration::from_secs(1)).await.is_err_and(closed));
        assert!(watch.next().await.is_err_and(closed));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_at_once_are_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    // Room for one in the queue, so that writers wait for room as well.
    for data_dir in [None, Some(dir.path().to_owned())] {
        let options = Options { data_dir, queue_length: 1, ..Options::default() };
        let kv = Kv::open(options, stepped_clock()).unwrap();
        let increment = |kv: Kv| async move {
            let mut written = Vec::new();
            while written.len() < 10 {
                let current = kv.get("/counter", None).unwrap().0;
                let number: u64 = current.as_ref().map_or(0, |kv| text(kv).1.parse().unwrap());
                let expect = Expect::ModRevision(current.map_or(0, |kv| kv.mod_revision));
                let txn = kv.txn("/counter", expect, value(&(number + 1).to_string())).await.unwrap();
                written.extend(match txn {
                    Txn::Committed { revision, .. } => Some(revision),
                    Txn::Conflict { .. } => None,
                });
            }
            written
        };
        let tasks: Vec<_> = (0..16).map(|_| tokio::spawn(increment(kv.clone()))).collect();
        let mut revisions = Vec::new();
        for task in tasks {
            revisions.extend(task.await.unwrap());
        }
        revisions.sort_unstable();
        assert_eq!(revisions, (2..=161).collect::<Vec<_>>());
        assert_eq!(text(&kv.get("/counter", None).unwrap().0.unwrap()).1, "160");
        kv.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_stand_while_compaction_takes_records_away() {
    let (stores, _dir) = each();
    for kv in stores {
        for number in 0..50 {
            put(&kv, &format!("/{number:02}"), "old").await;
        }
        let reader = tokio::spawn({
            let kv = kv.clone();
            async move {
                while kv.compact_revision() < 400 {
                    let range = kv.range("/", None, None, None).unwrap();
                    assert_eq!(range.kvs.len(), 50);
                    assert!(kv.get("/07", None).unwrap().0.is_some());
                    tokio::task::yield_now().await;
                }
            }
        });
        for number in 0..400 {
            put(&kv, &format!("/{:02}", number % 50), "new").await;
            if number % 10 == 0 {
                kv.compact(kv.revision()).await.unwrap();
            }
        }
        reader.await.unwrap();
        kv.close().await;
    }
}

#[tokio::test]
async fn what_is_in_memory_is_shown_and_what_left_it_is_not() {
    for (kv, is_all_in_memory) in each().0.into_iter().zip([true, false, false]) {
        put(&kv, "/a", "1").await;
        put(&kv, "/a", "2").await;
        put(&kv, "/b", "3").await;
        delete(&kv, "/b").await;
        let shown = || {
            let mut shown = Vec::new();
            kv.each_value_in_memory(|key, value| {
                shown.push(format!("{key}={}", String::from_utf8_lossy(value)));
            });
            shown.retain(|value| !value.ends_with('='));
            shown
        };
        assert_eq!(shown(), ["/a=1", "/a=2", "/a=1", "/b=3", "/b=3"]);
        let held = kv.keys_in_memory();
        assert!(held.keys == 2 && held.bytes >= 4 + 4 * 16, "{held:?}");
        for _ in 0..20 {
            put(&kv, "/c", &"x".repeat(100)).await;
        }
        assert_eq!(shown().contains(&"/a=2".to_owned()), is_all_in_memory);
        assert_eq!(kv.keys_in_memory().keys, 3);
        kv.close().await;
    }
}
