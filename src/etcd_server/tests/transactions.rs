//! Transactions.

use super::*;

fn put_op(key: &str, value: &str) -> RequestOp {
    let put = PutRequest { key: bytes(key), value: bytes(value), ..Default::default() };
    RequestOp { put: Nested::some(put), ..Default::default() }
}

fn get_op(key: &str) -> RequestOp {
    RequestOp { range: Nested::some(one(key)), ..Default::default() }
}

fn delete_op(key: &str, range_end: &str) -> RequestOp {
    let delete = DeleteRangeRequest { key: bytes(key), range_end: bytes(range_end), prev_kv: false };
    RequestOp { delete_range: Nested::some(delete), ..Default::default() }
}

fn txn_op(txn: TxnRequest) -> RequestOp {
    RequestOp { txn: Nested::some(txn), ..Default::default() }
}

fn txn(compare: Vec<Compare>, success: Vec<RequestOp>, failure: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { compare: Repeated(compare), success: Repeated(success), failure: Repeated(failure) }
}

async fn run(server: &EtcdServer, request: &TxnRequest) -> TxnResponse {
    call(server, "KV/Txn", request).await.unwrap()
}

#[tokio::test]
async fn each_comparison_has_each_operator() {
    let server = server();
    let lease: LeaseGrantResponse =
        call(&server, "Lease/LeaseGrant", &LeaseGrantRequest { ttl: 100, id: 7 }).await.unwrap();
    put(&server, "x", "0").await;
    put(&server, "a", "1").await;
    let put = PutRequest { key: bytes("a"), value: bytes("m"), lease: lease.id, ..Default::default() };
    let _: PutResponse = call(&server, "KV/Put", &put).await.unwrap();
    // version 2, created at 3, changed at 4, value m, lease 7
    let of = |target, number| Compare {
        key: bytes("a"),
        target,
        version: (target == 0).then_some(number),
        create_revision: (target == 1).then_some(number),
        mod_revision: (target == 2).then_some(number),
        value: (target == 3).then(|| bytes(["l", "m", "n"][usize::try_from(number).unwrap()])),
        lease: (target == 4).then_some(number),
        ..Default::default()
    };
    for (target, same) in [(0, 2), (1, 3), (2, 4), (3, 1), (4, 7)] {
        for (result, less, equal, more) in [
            (0, false, true, false),
            (1, true, false, false),
            (2, false, false, true),
            (3, true, false, true),
        ] {
            for (number, expected) in [(same - 1, less), (same, equal), (same + 1, more)] {
                let compare = Compare { result, ..of(target, number) };
                let answer = run(&server, &txn(vec![compare.clone()], vec![], vec![])).await;
                assert_eq!(answer.succeeded, expected, "{compare:?}");
            }
        }
    }
    // What does not exist has no version, and no value to compare.
    let absent = Compare { key: bytes("b"), ..Default::default() };
    assert!(run(&server, &txn(vec![absent.clone()], vec![], vec![])).await.succeeded);
    let value = Compare { target: 3, result: 3, value: Some(bytes("1")), ..absent };
    assert!(!run(&server, &txn(vec![value], vec![], vec![])).await.succeeded);
    // All of a range.
    let everywhere = Compare { key: bytes("a"), range_end: bytes("z"), result: 1, ..Default::default() };
    assert!(run(&server, &txn(vec![everywhere.clone()], vec![], vec![])).await.succeeded);
    let twice = Compare { version: Some(1), ..everywhere };
    assert!(!run(&server, &txn(vec![twice], vec![], vec![])).await.succeeded);
}

#[tokio::test]
async fn nested_ones_compare_what_was_before_and_write_at_one_revision() {
    let server = server();
    put(&server, "a", "1").await;
    let is_one = Compare { key: bytes("a"), target: 3, value: Some(bytes("1")), ..Default::default() };
    let inner = txn(vec![is_one.clone()], vec![put_op("b", "inner"), get_op("a")], vec![put_op("c", "x")]);
    let request =
        txn(vec![is_one], vec![put_op("a", "2"), txn_op(inner), get_op("a"), delete_op("z", "")], vec![]);
    let answer = run(&server, &request).await;
    assert!(answer.succeeded);
    assert_eq!(answer.header.0.unwrap().revision, 3);
    let inner = answer.responses.0[1].txn.0.as_ref().unwrap();
    assert!(inner.succeeded, "it compared what was there before");
    assert_eq!(inner.header.0.as_deref(), Some(&ResponseHeader::default()), "it is there, and empty");
    let header = answer.responses.0[0].put.0.as_ref().unwrap().header.0.as_deref();
    assert_eq!(header, Some(&ResponseHeader { revision: 3, ..ResponseHeader::default() }));
    let read = |op: &ResponseOp| texts(&op.range.0.as_ref().unwrap().kvs);
    assert_eq!(
        read(&inner.responses.0[1]),
        [("a".to_owned(), "2".to_owned())],
        "and reads what is there now"
    );
    assert_eq!(read(&answer.responses.0[2]), [("a".to_owned(), "2".to_owned())]);
    let found = range(&server, &all()).await;
    assert!(found.kvs.0.iter().all(|kv| kv.mod_revision == 3));
    assert_eq!(keys_of(&found.kvs), ["a", "b"]);
}

#[tokio::test]
async fn what_writes_a_key_twice_or_too_much_is_refused() {
    let server = server();
    let invalid = |words: &str| (3, format!("etcdserver: {words}"));
    let duplicate = || invalid("duplicate key given in txn request");
    let nested = |op| txn_op(txn(vec![], vec![op], vec![]));
    for operations in [
        vec![put_op("a", "1"), put_op("a", "2")],
        vec![put_op("b", "1"), delete_op("a", "c")],
        vec![delete_op("b", "\0"), put_op("c", "1")],
        vec![put_op("a", "1"), nested(put_op("a", "2"))],
        vec![nested(put_op("a", "1")), nested(put_op("a", "2"))],
        vec![nested(delete_op("a", "")), put_op("a", "2")],
    ] {
        assert_eq!(failure(&server, "KV/Txn", &txn(vec![], operations, vec![])).await, duplicate());
    }
    let either = txn_op(txn(vec![], vec![put_op("a", "1")], vec![put_op("a", "2")]));
    assert!(run(&server, &txn(vec![], vec![either], vec![])).await.succeeded, "one of the two is done");
    let many = |count| txn(vec![], (0..count).map(|at| put_op(&at.to_string(), "")).collect(), vec![]);
    assert_eq!(failure(&server, "KV/Txn", &many(129)).await, invalid("too many operations in txn request"));
    assert!(run(&server, &many(128)).await.succeeded);
    let empty = txn(vec![], vec![RequestOp::default()], vec![]);
    assert_eq!(failure(&server, "KV/Txn", &empty).await, invalid("key not found"));
    let revision = range(&server, &one("a")).await.header.0.unwrap().revision;
    let gone = PutRequest { key: bytes("y"), lease: 5, ..Default::default() };
    let gone = RequestOp { put: Nested::some(gone), ..Default::default() };
    let half = txn(vec![], vec![put_op("x", "1"), gone], vec![]);
    assert_eq!(failure(&server, "KV/Txn", &half).await.0, 5);
    let after = range(&server, &one("x")).await;
    assert_eq!((after.count, after.header.0.unwrap().revision), (0, revision), "all or nothing");
}
