//! Counters that are there once for each kind, and differ in nothing but that.

use KindCounter::*;

/// What is counted; its place is that of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindCounter {
    /// Lists that the watch cache has answered.
    CacheLists,
    /// Objects that were looked at for them.
    CacheFetched,
    /// Objects in their answers.
    CacheReturned,
    /// Objects and changes that a watch begins with in the watch cache.
    InitEvents,
    /// Changes that the watch cache was told of.
    EventsReceived,
    /// Changes that it has told its watchers, each once however many they are. Upstream counts progress,
    /// too, which it tells nobody.
    EventsDispatched,
    /// Watches that it has ended since their readers took nothing.
    TerminatedWatchers,
    /// How often it was filled.
    Initializations,
    /// Lists that the store was asked for.
    StorageLists,
    /// Keys that were read for them.
    StorageFetched,
    /// Objects that were held against selectors.
    StorageEvaluated,
    /// Objects in their answers, or in the caches that they fill.
    StorageReturned,
    /// Changes that the store has told.
    StorageEvents,
    /// How often it has told how far it is, and nothing else.
    Bookmarks,
}

/// How many counters there are; a number, since a type that is worked out of the rows may be needed to
/// compile them.
pub(super) const COUNTERS: usize = 14;

/// How a counter is shown.
pub(super) struct CounterRow {
    /// Which it is.
    pub counter: KindCounter,
    /// It is shown once this has been counted.
    pub shown_with: KindCounter,
    /// Whether upstream says by which index the objects were found; ours has none.
    pub has_index: bool,
    /// What upstream calls it.
    pub name: &'static str,
    /// What upstream says of it.
    pub help: &'static str,
}

impl CounterRow {
    const fn new(counter: KindCounter, name: &'static str, help: &'static str) -> CounterRow {
        CounterRow { counter, shown_with: counter, has_index: false, name, help }
    }

    const fn with(self, shown_with: KindCounter) -> CounterRow {
        CounterRow { shown_with, ..self }
    }

    const fn indexed(self) -> CounterRow {
        CounterRow { has_index: true, ..self }
    }
}

/// In the order of the counters.
pub(super) const ROWS: [CounterRow; COUNTERS] = [
    CounterRow::new(
        CacheLists,
        "apiserver_cache_list_total",
        "[ALPHA] Number of LIST requests served from watch cache",
    )
    .indexed(),
    CounterRow::new(
        CacheFetched,
        "apiserver_cache_list_fetched_objects_total",
        "[ALPHA] Number of objects read from watch cache in the course of serving a LIST request",
    )
    .indexed()
    .with(CacheLists),
    CounterRow::new(
        CacheReturned,
        "apiserver_cache_list_returned_objects_total",
        "[ALPHA] Number of objects returned for a LIST request from watch cache",
    )
    .with(CacheLists),
    CounterRow::new(
        InitEvents,
        "apiserver_init_events_total",
        "[ALPHA] Counter of init events processed in watch cache broken by resource type.",
    ),
    CounterRow::new(
        EventsReceived,
        "apiserver_watch_cache_events_received_total",
        "[ALPHA] Counter of events received in watch cache broken by resource type.",
    ),
    CounterRow::new(
        EventsDispatched,
        "apiserver_watch_cache_events_dispatched_total",
        "[ALPHA] Counter of events dispatched in watch cache broken by resource type.",
    ),
    CounterRow::new(
        TerminatedWatchers,
        "apiserver_terminated_watchers_total",
        "[ALPHA] Counter of watchers closed due to unresponsiveness broken by resource type.",
    ),
    CounterRow::new(
        Initializations,
        "apiserver_watch_cache_initializations_total",
        "[ALPHA] Counter of watch cache initializations broken by resource type.",
    ),
    CounterRow::new(
        StorageLists,
        "apiserver_storage_list_total",
        "[ALPHA] Number of LIST requests served from storage",
    ),
    CounterRow::new(
        StorageFetched,
        "apiserver_storage_list_fetched_objects_total",
        "[ALPHA] Number of objects read from storage in the course of serving a LIST request",
    )
    .with(StorageLists),
    CounterRow::new(
        StorageEvaluated,
        "apiserver_storage_list_evaluated_objects_total",
        "[ALPHA] Number of objects tested in the course of serving a LIST request from storage",
    )
    .with(StorageLists),
    CounterRow::new(
        StorageReturned,
        "apiserver_storage_list_returned_objects_total",
        "[ALPHA] Number of objects returned for a LIST request from storage",
    )
    .with(StorageLists),
    CounterRow::new(
        StorageEvents,
        "apiserver_storage_events_received_total",
        "[BETA] Number of etcd events received split by kind.",
    ),
    CounterRow::new(
        Bookmarks,
        "etcd_bookmark_total",
        "[ALPHA] Number of etcd bookmarks (progress notify events) split by kind.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_row() {
        let places: Vec<usize> = ROWS.iter().map(|row| row.counter as usize).collect();
        assert_eq!(places, (0..ROWS.len()).collect::<Vec<_>>());
    }
}
