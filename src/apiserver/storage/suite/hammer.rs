//! Random writes from several tasks; what each watch adds up to must be what is stored.

use std::collections::BTreeMap;

use super::*;

type HammerState = BTreeMap<String, u64>;

/// Takes the events up to one of `last`, and adds them up.
async fn add_up(mut watch: Receiver, mut state: HammerState, last: u64) -> HammerState {
    let mut position = 0;
    while let Some(event) = watch.recv().await {
        if let WatchEvent::Bookmark(bookmark) = event {
            if bookmark.resource_version >= last {
                return state;
            }
            continue;
        }
        let object = event.object().unwrap_or_else(|| panic!("{event:?}"));
        let revision = object.metadata.resource_version;
        assert!(revision > position, "{revision} after {position}");
        match &event {
            WatchEvent::Added(_) => assert!(state.insert(object.key(), revision).is_none(), "{event:?}"),
            WatchEvent::Modified(_) => assert!(state.insert(object.key(), revision).is_some(), "{event:?}"),
            _ => assert!(state.remove(&object.key()).is_some(), "{event:?}"),
        }
        position = revision;
    }
    panic!("the watch ended at {position}, before {last}");
}

async fn write_at_random(subject: Arc<StoreSubject>, writer: u64, rounds: usize) {
    let entropy = Entropy::seeded(writer);
    for _ in 0..rounds {
        let key = format!("n{writer}/{}", entropy.below(8));
        let exists = subject.store.get(&subject.kind, &key).await.unwrap().is_some();
        if exists && entropy.below(3) == 0 {
            subject.delete(&key).await;
        } else {
            let value = ["in", "out"][entropy.below(2)];
            subject.put(&key, value, value).await;
        }
    }
}

async fn run(subject: StoreSubject) {
    let subject = Arc::new(subject);
    let writers: Vec<_> =
        (0..4).map(|writer| tokio::spawn(write_at_random(subject.clone(), writer, 150))).collect();
    let predicates = [Predicate::default(), labelled("app=in"), on_node("in"), labelled("app!=in")];
    let mut readers = Vec::new();
    for round in 0..12 {
        let predicate = predicates[round % predicates.len()].clone();
        let options = ListOptions { predicate: predicate.clone(), ..ListOptions::default() };
        let list = subject.list("", &options).await.unwrap();
        let state =
            list.items.iter().map(|object| (object.key(), object.metadata.resource_version)).collect();
        let options = ListOptions {
            predicate: predicate.clone(),
            allow_watch_bookmarks: true,
            ..from(list.resource_version)
        };
        readers.push((predicate, subject.watch("", &options).await.unwrap(), state));
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let last = subject.store.kv().revision().await.unwrap();
    let sums = readers
        .into_iter()
        .map(async |(predicate, watch, state)| (predicate, add_up(watch, state, last).await));
    for (predicate, added_up) in subject.stepping(futures::future::join_all(sums)).await {
        let options = ListOptions { predicate, ..ListOptions::default() };
        let list = subject.list("", &options).await.unwrap();
        let stored: HammerState =
            list.items.iter().map(|object| (object.key(), object.metadata.resource_version)).collect();
        assert_eq!(added_up, stored);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_the_store_add_up() {
    run(StoreSubject::new(false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_the_cacher_add_up() {
    run(StoreSubject::new(true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_an_etcd_add_up() {
    for etcd in [TestEtcd::debians().await, TestEtcd::own().await] {
        let etcd = Arc::new(etcd);
        run(StoreSubject::on(&etcd, "/registry", false).await).await;
        run(StoreSubject::on(&etcd, "/elsewhere", true).await).await;
    }
}
