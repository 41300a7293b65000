//! Watches: where they begin, what a selector sees, how they end.

use super::*;
use crate::storage::metrics::KindCounter;

#[tokio::test]
async fn a_watch_tells_what_happened_after_its_revision() {
    for subject in StoreSubject::all().await {
        let r1 = subject.put("n/a", "", "1").await;
        let r2 = subject.put("n/a", "", "2").await;
        let mut watch = subject.watch("", &from(r1)).await.unwrap();
        let r3 = subject.put("m/b", "", "1").await;
        let r4 = subject.delete("n/a").await;
        let expected = [format!("MODIFIED n/a@{r2}"), format!("ADDED m/b@{r3}"), format!("DELETED n/a@{r4}")];
        assert_eq!(take(&mut watch, 3).await, expected);
        let mut watch = subject.watch("m", &from(r1)).await.unwrap();
        assert_eq!(take(&mut watch, 1).await, [format!("ADDED m/b@{r3}")]);
    }
}

#[tokio::test]
async fn a_deleted_object_comes_in_its_last_state() {
    for subject in StoreSubject::all().await {
        let r1 = subject.put("n/a", "node", "last").await;
        let mut watch = subject.watch("", &from(r1)).await.unwrap();
        let r2 = subject.delete("n/a").await;
        let event = watch.recv().await.unwrap();
        let object = event.object().unwrap();
        assert_eq!((event.type_name(), object.metadata.resource_version), ("DELETED", r2));
        assert_eq!((object.metadata.labels["app"].as_str(), object.fields[0].as_str()), ("last", "node"));
        assert_eq!(object.to_value()["metadata"]["resourceVersion"], r2.to_string());
    }
}

#[tokio::test]
async fn a_selector_sees_objects_come_and_go() {
    for subject in StoreSubject::all().await {
        for predicate in [labelled("app=in"), on_node("in")] {
            let key = "n/a";
            let start = subject.put(key, "out", "out").await;
            let options = ListOptions { predicate, ..from(start) };
            let mut watch = subject.watch("", &options).await.unwrap();
            let mut expected = Vec::new();
            for (value, event) in [("in", "ADDED"), ("in", "MODIFIED"), ("out", "DELETED"), ("in", "ADDED")] {
                expected.push(format!("{event} {key}@{}", subject.put(key, value, value).await));
            }
            subject.put("n/never", "out", "out").await;
            expected.push(format!("DELETED {key}@{}", subject.delete(key).await));
            assert_eq!(take(&mut watch, 5).await, expected);
        }
    }
}

#[tokio::test]
async fn an_object_that_leaves_the_selector_is_shown_as_it_was() {
    for subject in StoreSubject::all().await {
        let start = subject.put("n/a", "", "in").await;
        let options = ListOptions { predicate: labelled("app=in"), ..from(start) };
        let mut watch = subject.watch("", &options).await.unwrap();
        let left = subject.put("n/a", "", "out").await;
        let event = watch.recv().await.unwrap();
        let object = event.object().unwrap();
        assert_eq!(event.type_name(), "DELETED");
        assert_eq!((object.metadata.labels["app"].as_str(), object.metadata.resource_version), ("in", left));
    }
}

#[tokio::test]
async fn a_watch_without_a_revision_begins_with_the_state() {
    for subject in StoreSubject::all().await {
        let r1 = subject.put("n/a", "", "1").await;
        let r2 = subject.put("n/b", "", "2").await;
        for options in [ListOptions::default(), from(0)] {
            if options.resource_version.is_some() {
                // Any state will do, so the cache has to have reached this one.
                subject.list("", &ListOptions::default()).await.unwrap();
            }
            let mut watch = subject.watch("", &options).await.unwrap();
            assert_eq!(take(&mut watch, 2).await, [format!("ADDED n/a@{r1}"), format!("ADDED n/b@{r2}")]);
            let mut none = subject.watch("other", &options).await.unwrap();
            assert!(none.try_recv().is_err());
        }
        let mut watch = subject.watch("", &ListOptions::default()).await.unwrap();
        let r3 = subject.put("n/a", "", "2").await;
        assert_eq!(take(&mut watch, 3).await[2], format!("MODIFIED n/a@{r3}"));
    }
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let options = |initial: bool, revision: Option<u64>| ListOptions {
        send_initial_events: Some(initial),
        resource_version_match: Some("NotOlderThan".into()),
        resource_version: revision.map(|revision| revision.to_string()),
        allow_watch_bookmarks: true,
        ..ListOptions::default()
    };
    for subject in StoreSubject::all().await {
        let r1 = subject.put("n/a", "", "1").await;
        let r2 = subject.put("n/b", "", "1").await;
        for revision in [None, Some(r1), Some(r2)] {
            let mut watch = subject.watch("", &options(true, revision)).await.unwrap();
            let events = take(&mut watch, 3).await;
            assert_eq!(
                events,
                [format!("ADDED n/a@{r1}"), format!("ADDED n/b@{r2}"), format!("BOOKMARK {r2} end")]
            );
        }
        let mut watch = subject.watch("", &options(false, None)).await.unwrap();
        let r3 = subject.put("n/c", "", "1").await;
        assert_eq!(take(&mut watch, 1).await, [format!("ADDED n/c@{r3}")]);
    }
}

#[tokio::test]
async fn a_watch_of_a_forgotten_revision_is_an_error_event() {
    for mut subject in StoreSubject::all().await {
        let old = subject.put("n/a", "", "1").await;
        for _ in 0..5 {
            subject.put("n/a", "", "1").await;
        }
        let newest = subject.store.kv().revision().await.unwrap();
        subject.store.kv().compact(newest).await.unwrap();
        // The cache begins here, and so knows no more than etcd does.
        subject.cacher = subject
            .cacher
            .take()
            .map(|_| Cacher::new(subject.store.clone(), subject.kind.clone(), Entropy::seeded(1)));
        subject.list("", &ListOptions::default()).await.unwrap();
        let mut watch = subject.watch("", &from(old)).await.unwrap();
        let events = take(&mut watch, 2).await;
        assert_eq!(events, [format!("ERROR 410 too old resource version: {old} ({newest})")]);
    }
}

/// An etcd before 3.5.15 forgets such a deletion, and tells a watch what comes behind it.
#[tokio::test]
async fn a_deletion_at_the_revision_of_a_compaction_is_not_overlooked() {
    for mut subject in StoreSubject::all().await {
        subject.put("n/a", "", "1").await;
        let before = subject.put("n/a", "", "2").await;
        let deleted = subject.delete("n/a").await;
        subject.put("n/b", "", "1").await;
        subject.store.kv().compact(deleted).await.unwrap();
        subject.cacher = None;
        let mut watch = subject.watch("", &from(before)).await.unwrap();
        let events = take(&mut watch, 1).await;
        let is_told = events[0] == format!("DELETED n/a@{deleted}") || events[0].starts_with("ERROR 410 ");
        assert!(is_told, "{events:?}");
    }
}

#[tokio::test]
async fn a_watch_from_before_the_cache_reads_the_log() {
    let mut subject = StoreSubject::new(false);
    let r1 = subject.put("n/a", "", "1").await;
    let r2 = subject.put("n/b", "", "1").await;
    subject.cacher = Some(Cacher::new(subject.store.clone(), subject.kind.clone(), Entropy::seeded(1)));
    let mut watch = subject.watch("", &from(r1)).await.unwrap();
    let r3 = subject.put("n/c", "", "1").await;
    assert_eq!(take(&mut watch, 2).await, [format!("ADDED n/b@{r2}"), format!("ADDED n/c@{r3}")]);
}

#[tokio::test]
async fn bookmarks_come_each_minute_and_before_the_end() {
    for subject in StoreSubject::all().await {
        let start = subject.put("n/a", "", "1").await;
        let options = ListOptions {
            allow_watch_bookmarks: true,
            timeout_seconds: Some(90),
            predicate: labelled("app=none"),
            ..from(start)
        };
        let mut watch = subject.watch("", &options).await.unwrap();
        let mut last = start;
        let mut seen = Vec::new();
        loop {
            let Some(event) = subject.stepping(watch.recv()).await else { break };
            let WatchEvent::Bookmark(bookmark) = event else { panic!("{event:?}") };
            assert!(bookmark.resource_version >= last);
            seen.push(subject.clock.elapsed().as_secs());
            last = subject.put("n/a", "", "1").await;
        }
        // An etcd takes real time for its answers, while the clock goes on.
        let late = if subject.store.kv().is_shared() { 20 } else { 0 };
        let expected = [60..=62 + late, 88..=90 + late];
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen.iter().zip(&expected).all(|(at, range)| range.contains(at)), "{seen:?}");
        assert!((90..=92 + late).contains(&subject.clock.elapsed().as_secs()));
    }
}

#[tokio::test]
async fn objects_that_nobody_reads_rest() {
    let subject = StoreSubject::new(true);
    let start = subject.put("n/a", "", "1").await;
    let options = ListOptions { allow_watch_bookmarks: true, ..from(start) };
    let mut watch = subject.watch("", &options).await.unwrap();
    let object = subject.get("n/a", At::NotOlderThan(start)).await.unwrap().unwrap();
    let view = object.view::<Value>();
    for _ in 0..3 {
        subject.stepping(watch.recv()).await.unwrap();
    }
    assert!(object.is_kept_view(&view), "as long as somebody has it");
    let kept = Arc::downgrade(&view);
    drop(view);
    for _ in 0..2 {
        subject.stepping(watch.recv()).await.unwrap();
    }
    assert_eq!(kept.strong_count(), 0);
}

/// Writes of which each is old when the next comes, so that the ring keeps its least size; who reads in time
/// is told each.
async fn outgrow_ring(subject: &StoreSubject, quick: &mut Receiver, writes: usize) {
    for _ in 0..writes {
        subject.clock.advance(Duration::from_secs(120));
        let revision = subject.put("n/a", "", "1").await;
        assert_eq!(take(quick, 1).await, [format!("MODIFIED n/a@{revision}")]);
    }
}

#[tokio::test]
async fn a_slow_watcher_is_cut_and_disturbs_nobody() {
    let subject = StoreSubject::new(true);
    let start = subject.put("n/a", "", "1").await;
    let mut slow = subject.watch("", &from(start)).await.unwrap();
    let mut slower = subject.watch("", &from(start)).await.unwrap();
    let mut quick = subject.watch("", &from(start)).await.unwrap();
    // More than its channel, less than the ring: it catches up.
    for _ in 0..150 {
        subject.put("n/a", "", "1").await;
        take(&mut quick, 1).await;
    }
    let seen = take(&mut slow, 150).await;
    assert_eq!(seen.last().unwrap(), &format!("MODIFIED n/a@{}", start + 150));
    // More than the ring: only so much can be told.
    outgrow_ring(&subject, &mut quick, 200).await;
    assert!(take(&mut slower, 350).await.len() < 350);
    assert_eq!(slower.recv().await.map(|event| show(&event)), None);
    let counters = subject.store.counters(&subject.kind);
    assert_eq!(counters.count(KindCounter::TerminatedWatchers), 2, "slow is cut as well, later");
}

/// A watch from before what the ring holds begins in etcd's log, where each watcher reads for itself.
#[tokio::test]
async fn who_comes_late_goes_over_to_the_cache_when_it_has_caught_up() {
    let subject = StoreSubject::new(true);
    let start = subject.put("n/a", "", "1").await;
    subject.list("", &ListOptions::default()).await.unwrap();
    let mut quick = subject.watch("", &from(start)).await.unwrap();
    outgrow_ring(&subject, &mut quick, 150).await;
    let cacher = subject.cacher.as_ref().unwrap();
    let before = cacher.live_watches();
    let mut late = subject.watch("", &from(start)).await.unwrap();
    assert_eq!(cacher.live_watches(), before, "the ring holds no more than its last 100");
    let seen = take(&mut late, 150).await;
    assert_eq!(seen.last().unwrap(), &format!("MODIFIED n/a@{}", start + 150));
    for _ in 0..10_000 {
        if cacher.live_watches() > before {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(cacher.live_watches(), before + 1);
    let next = [subject.put("n/b", "", "1").await, subject.delete("n/b").await];
    let expected = [format!("ADDED n/b@{}", next[0]), format!("DELETED n/b@{}", next[1])];
    assert_eq!(take(&mut late, 2).await, expected);
}

/// While it reads the log, too, what the cache holds is not there a second time.
#[tokio::test]
async fn who_comes_late_is_sent_the_objects_of_the_cache() {
    let subject = StoreSubject::new(true);
    let start = subject.put("n/a", "", "1").await;
    let kept = subject.put("n/kept", "", "1").await;
    subject.list("", &ListOptions::default()).await.unwrap();
    let mut quick = subject.watch("", &from(kept)).await.unwrap();
    outgrow_ring(&subject, &mut quick, 150).await;
    let mut late = subject.watch("", &from(start)).await.unwrap();
    let Some(WatchEvent::Added(sent)) = late.recv().await else { panic!("n/kept was made after the start") };
    let cached = subject.get("n/kept", At::Any).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&sent, &cached));
}

#[tokio::test]
async fn readers_that_have_gone_are_forgotten() {
    let subject = StoreSubject::new(true);
    let start = subject.put("n/a", "", "1").await;
    subject.list("", &ListOptions::default()).await.unwrap();
    for _ in 0..1000 {
        drop(subject.watch("elsewhere", &from(start)).await.unwrap());
    }
    assert!(subject.cacher.as_ref().unwrap().live_watches() < 200);
}

#[tokio::test]
async fn many_watchers_that_nobody_reads_hold_up_nothing() {
    let subject = StoreSubject::new(true);
    let start = subject.put("n/a", "node", "1").await;
    subject.list("", &ListOptions::default()).await.unwrap();
    let mut idle = Vec::new();
    for number in 0..10_000 {
        let predicate = if number % 2 == 0 { Predicate::default() } else { on_node(&number.to_string()) };
        idle.push(subject.watch("", &ListOptions { predicate, ..from(start) }).await.unwrap());
    }
    let mut quick =
        subject.watch("n", &ListOptions { predicate: on_node("node"), ..from(start) }).await.unwrap();
    let mut last = start;
    for _ in 0..120 {
        last = subject.put("n/a", "node", "1").await;
        assert_eq!(take(&mut quick, 1).await, [format!("MODIFIED n/a@{last}")]);
    }
    let list = subject.list("", &ListOptions::default()).await.unwrap();
    assert_eq!(list.resource_version, last);
    // Nothing that a watcher can select is kept from it, however late it reads.
    assert_eq!(take(&mut idle[0], 120).await.len(), 120);
    assert!(idle[1].try_recv().is_err());
}
