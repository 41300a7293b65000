//! Range, put, deletion and compaction.

use super::*;

#[tokio::test]
async fn a_put_says_what_it_replaced_and_a_range_what_there_is() {
    let server = server();
    assert_eq!(put(&server, "a", "1").await, 2);
    let request = PutRequest { key: bytes("a"), value: bytes("2"), prev_kv: true, ..Default::default() };
    let answer: PutResponse = call(&server, "KV/Put", &request).await.unwrap();
    let previous = answer.prev_kv.0.unwrap();
    assert_eq!((&*previous.value, previous.mod_revision, previous.version), (&b"1"[..], 2, 1));
    let found = range(&server, &one("a")).await;
    let kv = &found.kvs.0[0];
    assert_eq!((kv.create_revision, kv.mod_revision, kv.version, kv.lease), (2, 3, 2, 0));
    assert_eq!((found.count, found.more, found.header.0.unwrap().revision), (1, false, 3));
    // Of before, and of nothing.
    let before = range(&server, &RangeRequest { revision: 2, ..one("a") }).await;
    assert_eq!(texts(&before.kvs), [("a".to_owned(), "1".to_owned())]);
    assert_eq!(before.header.0.unwrap().revision, 3, "the store stands there");
    assert_eq!(range(&server, &one("b")).await.count, 0);
}

#[tokio::test]
async fn ranges_are_bounded_sorted_and_filtered() {
    let server = server();
    for (key, value) in [("/c", "1"), ("/a", "3"), ("/b", "2"), ("/a", "4"), ("0", "5")] {
        put(&server, key, value).await;
    }
    let folder = || RangeRequest { key: bytes("/"), range_end: bytes("0"), ..Default::default() };
    let table: [(RangeRequest, &[&str], bool); 15] = [
        (folder(), &["/a", "/b", "/c"], false),
        (RangeRequest { limit: 2, ..folder() }, &["/a", "/b"], true),
        (RangeRequest { sort_order: 2, ..folder() }, &["/c", "/b", "/a"], false),
        (RangeRequest { sort_order: 2, limit: 1, ..folder() }, &["/c"], true),
        (RangeRequest { sort_target: 3, ..folder() }, &["/c", "/b", "/a"], false),
        // Of the first two keys the one that was written first, and then of all.
        (RangeRequest { sort_target: 3, limit: 1, ..folder() }, &["/b"], true),
        (RangeRequest { sort_target: 3, sort_order: 1, limit: 1, ..folder() }, &["/c"], true),
        (RangeRequest { sort_target: 3, limit: 3, ..folder() }, &["/c", "/b", "/a"], false),
        (RangeRequest { sort_target: 2, sort_order: 2, ..folder() }, &["/b", "/a", "/c"], false),
        (RangeRequest { sort_target: 1, sort_order: 2, limit: 1, ..folder() }, &["/a"], true),
        (RangeRequest { sort_target: 4, sort_order: 1, ..folder() }, &["/c", "/b", "/a"], false),
        (RangeRequest { min_mod_revision: 4, ..folder() }, &["/a", "/b"], false),
        (RangeRequest { max_create_revision: 3, limit: 1, ..folder() }, &["/a"], true),
        (RangeRequest { count_only: true, limit: 1, ..folder() }, &[], false),
        (
            RangeRequest { key: bytes("/b"), range_end: bytes("\0"), ..Default::default() },
            &["/b", "/c", "0"],
            false,
        ),
    ];
    for (request, expected, more) in table {
        let found = range(&server, &request).await;
        assert_eq!(
            (&keys_of(&found.kvs)[..], found.more, found.count),
            (&expected.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()[..], more, 3),
            "{request:?}"
        );
    }
    let named = range(&server, &RangeRequest { keys_only: true, ..folder() }).await;
    assert!(named.kvs.0.iter().all(|kv| kv.value.is_empty()) && named.kvs.0.len() == 3);
}

#[tokio::test]
async fn a_put_may_keep_the_value_or_the_lease_that_is_there() {
    let server = server();
    put(&server, "a", "1").await;
    let keep = |key: &str| PutRequest { key: bytes(key), ignore_value: true, ..Default::default() };
    let _: PutResponse = call(&server, "KV/Put", &keep("a")).await.unwrap();
    let found = range(&server, &one("a")).await;
    assert_eq!((&*found.kvs.0[0].value, found.kvs.0[0].version), (&b"1"[..], 2));
    let invalid = |words: &str| (3, format!("etcdserver: {words}"));
    assert_eq!(failure(&server, "KV/Put", &keep("b")).await, invalid("key not found"));
    assert_eq!(failure(&server, "KV/Put", &PutRequest::default()).await, invalid("key is not provided"));
    let both = PutRequest { value: bytes("x"), ..keep("a") };
    assert_eq!(failure(&server, "KV/Put", &both).await, invalid("value is provided"));
    let both = PutRequest { key: bytes("a"), ignore_lease: true, lease: 5, ..Default::default() };
    assert_eq!(failure(&server, "KV/Put", &both).await, invalid("lease is provided"));
    let gone = PutRequest { key: bytes("a"), lease: 5, ..Default::default() };
    assert_eq!(failure(&server, "KV/Put", &gone).await, (5, "etcdserver: requested lease not found".into()));
}

#[tokio::test]
async fn a_deletion_of_a_range_is_one_revision() {
    let server = server();
    for key in ["/a", "/b", "x"] {
        put(&server, key, "1").await;
    }
    let request = DeleteRangeRequest { key: bytes("/"), range_end: bytes("0"), prev_kv: true };
    let answer: DeleteRangeResponse = call(&server, "KV/DeleteRange", &request).await.unwrap();
    assert_eq!((answer.deleted, keys_of(&answer.prev_kvs)), (2, vec!["/a".to_owned(), "/b".to_owned()]));
    assert_eq!(answer.header.0.unwrap().revision, 5);
    let again: DeleteRangeResponse = call(&server, "KV/DeleteRange", &request).await.unwrap();
    assert_eq!((again.deleted, again.header.0.unwrap().revision), (0, 5));
    assert_eq!(keys_of(&range(&server, &all()).await.kvs), ["x"]);
}

#[tokio::test]
async fn what_is_compacted_or_to_come_is_refused_in_etcds_words() {
    let server = server();
    for value in ["1", "2", "3"] {
        put(&server, "a", value).await;
    }
    let compact = |revision| CompactionRequest { revision, physical: true };
    let nothing = (11, "etcdserver: mvcc: required revision has been compacted".to_owned());
    assert_eq!(failure(&server, "KV/Compact", &compact(-1)).await, nothing);
    // Up to nothing it is compacted once.
    let hash =
        async || call::<_, HashKvResponse>(&server, "Maintenance/HashKV", &HashKvRequest::default()).await;
    assert_eq!(hash().await.unwrap().compact_revision, -1);
    let _: HeaderResponse = call(&server, "KV/Compact", &compact(0)).await.unwrap();
    assert_eq!(hash().await.unwrap().compact_revision, 0);
    assert_eq!(failure(&server, "KV/Compact", &compact(0)).await, nothing);
    let _: HeaderResponse = call(&server, "KV/Compact", &compact(3)).await.unwrap();
    let compacted = (11, "etcdserver: mvcc: required revision has been compacted".to_owned());
    let future = (11, "etcdserver: mvcc: required revision is a future revision".to_owned());
    assert_eq!(failure(&server, "KV/Compact", &compact(3)).await, compacted);
    assert_eq!(failure(&server, "KV/Compact", &compact(9)).await, future);
    let at = |revision| RangeRequest { revision, ..one("a") };
    assert_eq!(failure(&server, "KV/Range", &at(2)).await, compacted);
    assert_eq!(failure(&server, "KV/Range", &at(5)).await, future);
    assert_eq!(range(&server, &at(3)).await.count, 1);
}

/// Keys are bytes: in the middle of texts, behind them, and those that texts are kept like.
const ANY: [&[u8]; 6] = [b"a", b"a/b", b"a/\x80", b"\xc3\x28", b"\xf4\x8f\xbf\xbf00", b"\xff"];

#[tokio::test]
async fn keys_of_any_bytes_are_put_found_counted_and_deleted_in_their_order() {
    let server = server();
    for key in ANY.into_iter().rev() {
        let put = PutRequest { key: Bytes::from_static(key), ..Default::default() };
        let _: PutResponse = call(&server, "KV/Put", &put).await.unwrap();
    }
    let found = |request| {
        let server = &server;
        async move {
            let answer = range(server, &request).await;
            let keys: Vec<Bytes> = answer.kvs.0.into_iter().map(|kv| kv.key).collect();
            (keys, answer.count, answer.more)
        }
    };
    assert_eq!(found(all()).await, (ANY.map(Bytes::from_static).to_vec(), 6, false));
    let (two, count, more) = found(RangeRequest { limit: 2, ..all() }).await;
    assert_eq!((two, count, more), (ANY[..2].iter().map(|key| Bytes::from_static(key)).collect(), 6, true));
    let (down, ..) = found(RangeRequest { sort_order: 2, ..all() }).await;
    assert_eq!(down.first().unwrap(), ANY[5]);
    let below = RangeRequest { key: bytes("a/"), range_end: bytes("a0"), ..Default::default() };
    assert_eq!(found(below.clone()).await.0, [ANY[1], ANY[2]]);
    assert_eq!(found(RangeRequest { revision: 5, ..below.clone() }).await.0, [ANY[2]], "before the other");
    for key in ANY {
        assert_eq!(found(RangeRequest { key: Bytes::from_static(key), ..Default::default() }).await.0, [key]);
    }
    let delete = RequestOp {
        delete_range: Nested::some(DeleteRangeRequest {
            key: bytes("a/"),
            range_end: bytes("a0"),
            prev_kv: true,
        }),
        ..Default::default()
    };
    let compare =
        Compare { key: Bytes::from_static(b"\xff"), target: 0, version: Some(1), ..Default::default() };
    let request = TxnRequest {
        compare: Repeated(vec![compare]),
        success: Repeated(vec![delete]),
        ..Default::default()
    };
    let done: TxnResponse = call(&server, "KV/Txn", &request).await.unwrap();
    assert!(done.succeeded && done.responses.0[0].delete_range.0.as_ref().unwrap().deleted == 2);
    assert_eq!(found(below).await.1, 0);
}

#[tokio::test]
async fn a_watch_tells_keys_of_any_bytes_in_the_order_of_their_revisions() {
    let server = server();
    let mut talk = Talk::begin(&server, "Watch/Watch").await;
    let whole = all();
    let create = WatchCreateRequest { key: whole.key, range_end: whole.range_end, ..Default::default() };
    talk.say(&WatchRequest { create: Nested::some(create), ..Default::default() });
    assert!(talk.hear::<WatchResponse>().await.created);
    let mut expected = Vec::new();
    for round in 0..50 {
        let key = Bytes::from_static(ANY[round * 5 % ANY.len()]);
        expected.push((key.clone(), 2 + round as i64));
        let _: PutResponse =
            call(&server, "KV/Put", &PutRequest { key, ..Default::default() }).await.unwrap();
    }
    let mut told = Vec::new();
    while told.len() < expected.len() {
        let response: WatchResponse = talk.hear().await;
        let kvs = response.events.0.into_iter().map(|event| event.kv.0.unwrap());
        told.extend(kvs.map(|kv| (kv.key, kv.mod_revision)));
    }
    assert_eq!(told, expected);
    talk.say(&WatchRequest { progress: Nested::some(Empty {}), ..Default::default() });
    let progress: WatchResponse = talk.hear().await;
    assert_eq!((progress.watch_id, progress.header.0.unwrap().revision), (-1, 51));
}
