//! The page after known reads, writes and watches.

use std::time::Duration;

use apimachinery::fields::FieldSelector;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apis::core::config_map::CONFIG_MAPS;
use apis::core::event::EVENTS;
use apis::kind::Builtin;
use chrono::DateTime;
use clock::Clock;
use component_base::metrics::Render;
use entropy::Entropy;
use etcd::Kv;
use serde_json::json;

use super::*;
use crate::storage::cacher::Cacher;
use crate::storage::request::ListRequest;
use crate::storage::store::{Store, Written};
use crate::storage::{ByteStore, Storage};

fn storage() -> Storage {
    Storage::in_memory(Clock::stepped(DateTime::UNIX_EPOCH), Entropy::seeded(1))
}

async fn put(storage: &Storage, kind: &Builtin, name: &str, expected: u64) -> u64 {
    let tree = json!({"metadata": {"name": name, "namespace": "n"}});
    match storage.put(kind, &format!("n/{name}"), expected, &tree, None).await.unwrap() {
        Written::Committed(object) => object.metadata.resource_version,
        Written::Conflict(_) => expected,
    }
}

fn page(counted: &dyn Render) -> String {
    let mut out = String::new();
    counted.render(&mut out);
    out
}

/// Each is a line of the page.
#[track_caller]
fn shows(page: &str, samples: &[&str]) {
    for sample in samples {
        assert!(page.lines().any(|line| line == *sample), "{sample} is not in\n{page}");
    }
}

#[tokio::test]
async fn what_the_store_is_asked_is_counted_by_operation() {
    let storage = storage();
    let first = put(&storage, &EVENTS, "a", 0).await;
    put(&storage, &EVENTS, "b", 0).await;
    put(&storage, &EVENTS, "a", first).await;
    // Another revision is found: the store has done what it was asked.
    put(&storage, &EVENTS, "a", first).await;
    let found = storage.get(&EVENTS, "n/b", None).await.unwrap().unwrap();
    storage.delete(&EVENTS, "n/b", found.metadata.resource_version, None).await.unwrap();
    storage.list(&EVENTS, "", &ListOptions::default()).await.unwrap();
    let fields = FieldSelector::equal("metadata.name", "a");
    let named =
        ListOptions { predicate: Predicate { fields, ..Predicate::default() }, ..ListOptions::default() };
    storage.list(&EVENTS, "n", &named).await.unwrap();
    storage.count(&EVENTS).await.unwrap();
    storage.kv().close().await;
    storage.get(&EVENTS, "n/a", None).await.unwrap_err();
    storage.list(&EVENTS, "", &ListOptions::default()).await.unwrap_err();
    let page = page(&storage);
    let of = |operation: &str| format!("{{group=\"\",operation={operation:?},resource=\"events\"}}");
    for (operation, count) in
        [("create", 2), ("update", 2), ("delete", 1), ("get", 3), ("list", 2), ("listWithCount", 1)]
    {
        let labels = of(operation);
        shows(&page, &[&format!("etcd_requests_total{labels} {count}")]);
        shows(&page, &[&format!("etcd_request_duration_seconds_count{labels} {count}")]);
    }
    shows(
        &page,
        &[
            &format!("etcd_request_errors_total{} 1", of("get")),
            &format!("etcd_request_errors_total{} 1", of("list")),
            "# TYPE etcd_request_duration_seconds histogram",
            "etcd_request_duration_seconds_bucket{group=\"\",operation=\"get\",resource=\"events\",le=\"0.005\"} 3",
            "apiserver_storage_list_total{group=\"\",resource=\"events\"} 3",
            "apiserver_storage_list_fetched_objects_total{group=\"\",resource=\"events\"} 2",
            "apiserver_storage_list_evaluated_objects_total{group=\"\",resource=\"events\"} 2",
            "apiserver_storage_list_returned_objects_total{group=\"\",resource=\"events\"} 2",
            "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} 0",
        ],
    );
    assert!(!page.contains(&format!("etcd_request_errors_total{}", of("update"))), "{page}");
}

#[tokio::test]
async fn what_a_watch_cache_answers_and_hears_is_counted() {
    let storage = storage();
    put(&storage, &CONFIG_MAPS, "a", 0).await;
    let whole = storage.list(&CONFIG_MAPS, "", &ListOptions::default()).await.unwrap();
    assert_eq!(whole.items.len(), 1);
    let selected = Predicate { fields: FieldSelector::equal("metadata.name", "b"), ..Predicate::default() };
    let mut watch = storage.watch(&CONFIG_MAPS, "", &ListOptions::default()).await.unwrap();
    watch.recv().await.unwrap();
    let last = put(&storage, &CONFIG_MAPS, "b", 0).await;
    watch.recv().await.unwrap();
    let named = ListOptions { predicate: selected, ..ListOptions::default() };
    assert_eq!(storage.list(&CONFIG_MAPS, "", &named).await.unwrap().items.len(), 1);
    let after = ListOptions { resource_version: Some((last - 1).to_string()), ..ListOptions::default() };
    storage.watch(&CONFIG_MAPS, "", &after).await.unwrap().recv().await.unwrap();
    let size: usize =
        storage.list(&CONFIG_MAPS, "", &any()).await.unwrap().items.iter().map(|it| it.size_bytes()).sum();
    let page = page(&storage);
    let of = "{group=\"\",resource=\"configmaps\"}";
    let indexed = "{group=\"\",index=\"\",resource=\"configmaps\"}";
    let consistent = "{fallback=\"false\",group=\"\",resource=\"configmaps\",success=\"true\"}";
    for sample in [
        format!("apiserver_cache_list_total{indexed} 3"),
        // The second list looks at both, and the third.
        format!("apiserver_cache_list_fetched_objects_total{indexed} 5"),
        format!("apiserver_cache_list_returned_objects_total{of} 4"),
        format!("apiserver_init_events_total{of} 2"),
        format!("apiserver_watch_cache_events_received_total{of} 1"),
        format!("apiserver_watch_cache_events_dispatched_total{of} 1"),
        format!("apiserver_watch_cache_initializations_total{of} 1"),
        format!("apiserver_watch_cache_resource_version{of} {last}"),
        format!("watch_cache_capacity{of} 100"),
        format!("apiserver_resource_size_estimate_bytes{of} {size}"),
        format!("apiserver_watch_cache_consistent_read_total{consistent} 2"),
        // Two lists and a watch of the newest state, each of which waited no time of a clock that stands.
        format!("apiserver_watch_cache_read_wait_seconds_count{of} 3"),
        format!("apiserver_storage_events_received_total{of} 1"),
        // That its watch has begun.
        format!("etcd_bookmark_total{of} 1"),
        format!("apiserver_storage_list_total{of} 1"),
    ] {
        shows(&page, &[&sample]);
    }
    assert!(!page.contains("apiserver_terminated_watchers_total"), "{page}");
    storage.forget(&CONFIG_MAPS);
    assert!(!self::page(&storage).contains("apiserver_watch_cache_resource_version"));
}

fn any() -> ListOptions {
    ListOptions { resource_version: Some("0".into()), ..ListOptions::default() }
}

#[tokio::test]
async fn a_list_that_the_cache_is_too_late_for_has_fallen_back() {
    let clock = Clock::stepped(DateTime::UNIX_EPOCH);
    let kv = Kv::open(etcd::Options::default(), clock.clone()).unwrap();
    let store = Store::new(ByteStore::from(kv), clock.clone());
    let cacher = Cacher::new(store.clone(), CONFIG_MAPS.clone(), Entropy::seeded(1));
    let everything = ListRequest::everything();
    cacher.list(&everything).await.unwrap();
    let tree = json!({"metadata": {"name": "a", "namespace": "n"}});
    store.put(&CONFIG_MAPS, "n/a", 0, &tree, None).await.unwrap();
    // Nobody else gets a turn in between: the cache does not hear of it.
    let mut late = std::pin::pin!(cacher.list(&everything));
    assert!(futures::poll!(&mut late).is_pending());
    clock.advance(Duration::from_secs(4));
    let std::task::Poll::Ready(list) = futures::poll!(&mut late) else { panic!("it still waits") };
    assert_eq!(list.unwrap().items.len(), 1);
    let page = page(store.metrics());
    let labels =
        |fallback| format!("{{fallback=\"{fallback}\",group=\"\",resource=\"configmaps\",success=\"true\"}}");
    let name = "apiserver_watch_cache_consistent_read_total";
    let waits = "apiserver_watch_cache_read_wait_seconds";
    shows(
        &page,
        &[
            &format!("{name}{} 1", labels(false)),
            &format!("{name}{} 1", labels(true)),
            &format!("{waits}_bucket{{group=\"\",resource=\"configmaps\",le=\"3\"}} 1"),
            &format!("{waits}_bucket{{group=\"\",resource=\"configmaps\",le=\"+Inf\"}} 2"),
            &format!("{waits}_sum{{group=\"\",resource=\"configmaps\"}} 4"),
        ],
    );
}

#[test]
fn of_kinds_beyond_the_bound_nothing_is_shown() {
    let metrics = StorageMetrics::default();
    let kind = |number| Kind::builtin("g", "v1", "Kind", &format!("kind{number:04}s"), "g.v1");
    for number in 0..=MAX_KINDS {
        metrics.of(&kind(number)).add(KindCounter::Bookmarks, 2);
        metrics.of(&kind(number)).add(KindCounter::Bookmarks, 1);
    }
    let page = page(&metrics);
    let samples: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(samples.len(), MAX_KINDS);
    let last = format!("etcd_bookmark_total{{group=\"g\",resource=\"kind{:04}s\"}} 3", MAX_KINDS - 1);
    assert_eq!(samples.last(), Some(&&*last));
}
