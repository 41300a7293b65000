//! StreamedWatches.

use super::*;

fn create(key: &str, range_end: &str) -> WatchCreateRequest {
    WatchCreateRequest { key: bytes(key), range_end: bytes(range_end), ..Default::default() }
}

fn asks(create: WatchCreateRequest) -> WatchRequest {
    WatchRequest { create: Nested::some(create), ..Default::default() }
}

/// Of each event whether it is a deletion, the key and the value.
fn events(response: &WatchResponse) -> Vec<(bool, String, String)> {
    let event = |event: &Event| {
        let kv = Repeated(vec![(**event.kv.0.as_ref().unwrap()).clone()]);
        let (key, value) = texts(&kv).remove(0);
        (event.kind == 1, key, value)
    };
    response.events.0.iter().map(event).collect()
}

fn put_event(key: &str, value: &str) -> (bool, String, String) {
    (false, key.to_owned(), value.to_owned())
}

async fn delete(server: &EtcdServer, key: &str) {
    let request = DeleteRangeRequest { key: bytes(key), ..Default::default() };
    let _: DeleteRangeResponse = call(server, "KV/DeleteRange", &request).await.unwrap();
}

async fn begun(server: &EtcdServer, requests: Vec<WatchCreateRequest>) -> Talk {
    let mut talk = Talk::begin(server, "Watch/Watch").await;
    for (id, request) in requests.into_iter().enumerate() {
        talk.say(&asks(request));
        let made: WatchResponse = talk.hear().await;
        assert!(made.created && !made.canceled && made.watch_id == i64::try_from(id).unwrap(), "{made:?}");
    }
    talk
}

#[tokio::test]
async fn several_watches_of_one_stream_each_hear_their_keys() {
    let server = server();
    put(&server, "/a", "0").await;
    let from_start = WatchCreateRequest { start_revision: 2, prev_kv: true, ..create("/", "0") };
    let mut talk = begun(&server, vec![from_start, create("/b", "")]).await;
    put(&server, "/a", "1").await;
    put(&server, "/b", "1").await;
    delete(&server, "/a").await;
    let mut heard: [Vec<_>; 2] = Default::default();
    while heard[0].len() < 4 || heard[1].is_empty() {
        let response: WatchResponse = talk.hear().await;
        let revisions: Vec<i64> =
            response.events.0.iter().map(|event| event.kv.0.as_ref().unwrap().mod_revision).collect();
        assert!(
            revisions.is_sorted()
                && *revisions.last().unwrap() <= response.header.0.as_ref().unwrap().revision
        );
        let before = |event: &Event| event.prev_kv.0.as_ref().map(|kv| kv.mod_revision);
        if response.watch_id == 0 && revisions.contains(&5) {
            assert_eq!(before(response.events.0.last().unwrap()), Some(3));
        }
        heard[usize::try_from(response.watch_id).unwrap()].extend(events(&response));
    }
    let gone = (true, "/a".to_owned(), String::new());
    assert_eq!(heard[0], [put_event("/a", "0"), put_event("/a", "1"), put_event("/b", "1"), gone]);
    assert_eq!(heard[1], [put_event("/b", "1")]);
}

#[tokio::test]
async fn a_cancelled_watch_says_so_and_no_more() {
    let server = server();
    let mut talk = begun(&server, vec![create("/a", ""), create("/a", "")]).await;
    let cancel = WatchCancelRequest { watch_id: 0 };
    talk.say(&WatchRequest { cancel: Nested::some(cancel), ..Default::default() });
    let gone: WatchResponse = talk.hear().await;
    assert!(gone.canceled && gone.watch_id == 0 && gone.cancel_reason.is_empty());
    put(&server, "/a", "1").await;
    let heard: WatchResponse = talk.hear().await;
    assert_eq!((heard.watch_id, events(&heard)), (1, vec![put_event("/a", "1")]));
    // The end of what is asked is the end of all.
    drop(talk.requests);
    assert!(talk.answers.next::<WatchResponse>().await.is_none());
    assert_eq!(talk.answers.ended.unwrap().code, 0);
}

#[tokio::test]
async fn filters_and_a_start_that_is_to_come_leave_out_events() {
    let server = server();
    let no_puts = WatchCreateRequest { filters: vec![0], ..create("/", "0") };
    let no_deletions = WatchCreateRequest { filters: vec![1], ..create("/", "0") };
    let later = WatchCreateRequest { start_revision: 4, ..create("/", "0") };
    let mut talk = begun(&server, vec![no_puts, no_deletions, later]).await;
    put(&server, "/a", "1").await;
    delete(&server, "/a").await;
    put(&server, "/a", "2").await;
    let mut heard: [Vec<_>; 3] = Default::default();
    while heard.iter().map(Vec::len).sum::<usize>() < 4 {
        let response: WatchResponse = talk.hear().await;
        heard[usize::try_from(response.watch_id).unwrap()].extend(events(&response));
    }
    assert_eq!(heard[0], [(true, "/a".to_owned(), String::new())]);
    assert_eq!(heard[1], [put_event("/a", "1"), put_event("/a", "2")]);
    assert_eq!(heard[2], [put_event("/a", "2")]);
}

#[tokio::test]
async fn what_cannot_be_watched_is_told() {
    let server = server();
    for value in ["1", "2", "3"] {
        put(&server, "/a", value).await;
    }
    let compact = CompactionRequest { revision: 4, physical: false };
    let _: HeaderResponse = call(&server, "KV/Compact", &compact).await.unwrap();
    let mut talk = begun(&server, vec![]).await;
    talk.say(&asks(WatchCreateRequest { start_revision: 2, watch_id: 9, ..create("/a", "") }));
    let made: WatchResponse = talk.hear().await;
    assert!(made.created && !made.canceled && made.watch_id == 9);
    let gone: WatchResponse = talk.hear().await;
    assert!(gone.canceled && gone.compact_revision == 4 && gone.watch_id == 9);
    let from_there = WatchCreateRequest { start_revision: 4, prev_kv: true, ..create("/a", "") };
    talk.say(&asks(from_there));
    assert!(talk.hear::<WatchResponse>().await.created, "etcd refuses what is older than that");
    let told: WatchResponse = talk.hear().await;
    assert_eq!(events(&told), [put_event("/a", "3")]);
    assert!(told.events.0[0].prev_kv.0.is_none(), "what was there before is compacted");
    let empty = "mvcc: watcher range is empty";
    let duplicate = "mvcc: duplicate watch ID provided on the WatchStream";
    let compacted = "etcdserver: mvcc: required revision has been compacted";
    talk.say(&asks(WatchCreateRequest { watch_id: 5, ..create("/a", "") }));
    assert!(talk.hear::<WatchResponse>().await.created);
    for (request, reason) in [
        (create("/b", "/a"), empty),
        (WatchCreateRequest { watch_id: 5, ..create("/a", "") }, duplicate),
        (WatchCreateRequest { start_revision: -1, ..create("/a", "") }, compacted),
    ] {
        talk.say(&asks(request));
        let refused: WatchResponse = talk.hear().await;
        assert!(refused.created && refused.canceled && refused.watch_id == -1);
        assert_eq!(refused.cancel_reason, reason);
    }
}

#[tokio::test]
async fn progress_comes_after_all_that_was_before_it() {
    let server = server();
    let mut talk = begun(&server, vec![create("/", "0"), create("x", "")]).await;
    for round in 0..20 {
        put(&server, "/a", "1").await;
        put(&server, "y", "1").await;
        talk.say(&WatchRequest { progress: Nested::some(Empty {}), ..Default::default() });
        let event: WatchResponse = talk.hear().await;
        assert_eq!(event.events.0.len(), 1);
        let progress: WatchResponse = talk.hear().await;
        assert_eq!((progress.watch_id, progress.events.0.len()), (-1, 0));
        assert_eq!(progress.header.0.unwrap().revision, 3 + 2 * round);
    }
}

#[tokio::test]
async fn a_quiet_watch_that_wants_it_is_told_how_far_it_is() {
    let server = server();
    let wants = WatchCreateRequest { progress_notify: true, ..create("/", "0") };
    let mut talk = begun(&server, vec![create("/", "0"), wants]).await;
    put(&server, "x", "1").await;
    loop {
        let progress: WatchResponse = talk.hear().await;
        assert_eq!((progress.watch_id, progress.events.0.len()), (1, 0));
        if progress.header.0.unwrap().revision == 2 {
            break;
        }
    }
}

#[tokio::test]
async fn what_is_long_comes_in_fragments_if_that_is_wanted() {
    let server = server();
    let long = "x".repeat(1_000_000);
    for key in ["/a", "/b", "/c", "/d"] {
        put(&server, key, &long).await;
    }
    let wants = |fragment| WatchCreateRequest { start_revision: 2, fragment, ..create("/", "0") };
    let mut talk = begun(&server, vec![wants(true)]).await;
    let (first, second): (WatchResponse, WatchResponse) = (talk.hear().await, talk.hear().await);
    assert_eq!((first.fragment, first.events.0.len()), (true, 2));
    assert_eq!((second.fragment, second.events.0.len()), (false, 2));
}

/// Who reads nothing is made no answers; what it missed is there when it reads, unless it is compacted.
#[tokio::test]
async fn who_reads_nothing_is_told_when_compaction_overtakes_it() {
    let server = server();
    let mut behind = begun(&server, vec![create("/", "0")]).await;
    for at in 0..5000 {
        put(&server, "/a", &at.to_string()).await;
    }
    let compact = CompactionRequest { revision: 4000, physical: false };
    let _: HeaderResponse = call(&server, "KV/Compact", &compact).await.unwrap();
    let gone: WatchResponse = behind.hear().await;
    assert!(gone.canceled && gone.compact_revision == 4000, "{:?}", gone.events.0.len());
}

#[tokio::test]
async fn a_store_that_is_closed_ends_its_watches() {
    let kv = Kv::open(Options::default(), Clock::real()).unwrap();
    let server = server_on(kv.clone());
    let mut talk = begun(&server, vec![create("/", "0")]).await;
    let closing = tokio::spawn(async move { kv.close().await });
    assert!(talk.answers.next::<WatchResponse>().await.is_none());
    assert_eq!(talk.answers.ended.unwrap().message, "etcdserver: server stopped");
    closing.await.unwrap();
}
