//! What no client should send.

use super::*;

async fn refused(server: &EtcdServer, method: &str, body: impl Into<Body>) -> (u32, String) {
    let failed = send::<Empty>(server, method, body.into()).await.unwrap_err();
    (failed.code, failed.message)
}

#[tokio::test]
async fn frames_that_are_cut_compressed_or_no_message_end_their_call() {
    let server = server();
    let whole = framed(&one("a"));
    for cut in 1..whole.len() {
        assert_eq!(refused(&server, "KV/Range", whole.slice(..cut)).await, (13, "unexpected EOF".into()));
    }
    assert_eq!(refused(&server, "KV/Range", Body::empty()).await.0, 13);
    let mut compressed = whole.to_vec();
    compressed[0] = 1;
    assert_eq!(refused(&server, "KV/Range", compressed).await.0, 12);
    for garbage in
        [&b"\0\0\0\0\x02\x0a\x09"[..], b"\0\0\0\0\x01\xff", b"\0\0\0\0\x02\x08\x01", b"\0\0\0\0\x01\x0f"]
    {
        let (code, words) = refused(&server, "KV/Range", garbage.to_vec()).await;
        assert!(code == 13 && words.starts_with("grpc: error unmarshalling request"), "{words}");
    }
    // What is not known is skipped.
    let unknown = b"\0\0\0\0\x0b\x0a\x01a\xf8\x07\x05\xfa\x07\x02xy".to_vec();
    let found: RangeResponse = send(&server, "KV/Range", unknown.into()).await.unwrap();
    assert_eq!(found.count, 0);
}

#[tokio::test]
async fn what_is_too_long_is_refused_as_etcd_does_and_before_it_is_read() {
    let server = server();
    let long = |bytes: usize| PutRequest { key: bytes_of(1), value: bytes_of(bytes), ..Default::default() };
    let (code, words) = failure(&server, "KV/Put", &long(1_572_864)).await;
    assert_eq!((code, &*words), (3, "etcdserver: request is too large"));
    let _: PutResponse = call(&server, "KV/Put", &long(1_572_000)).await.unwrap();
    let announced = [&[0_u8][..], &3_000_000_u32.to_be_bytes()].concat();
    let (code, words) = refused(&server, "KV/Put", announced).await;
    let expected = "grpc: received message larger than max (3000000 vs. 2097152)";
    assert_eq!((code, &*words), (8, expected));
}

fn bytes_of(count: usize) -> Bytes {
    vec![b'x'; count].into()
}

#[tokio::test]
async fn transactions_within_transactions_have_a_bound() {
    let server = server();
    let mut request = TxnRequest::default();
    for _ in 0..60 {
        let operation = RequestOp { txn: Nested::some(request), ..Default::default() };
        request = TxnRequest { success: Repeated(vec![operation]), ..Default::default() };
    }
    let (code, words) = failure(&server, "KV/Txn", &request).await;
    assert!(code == 13 && words.contains("nested too deeply"), "{words}");
    // However deep: it is not followed.
    let wrapped = |tag: u8, inner: &[u8]| {
        let mut length = inner.len();
        let mut outer = vec![tag];
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(inner);
        outer
    };
    let mut deep = Vec::new();
    while deep.len() < 60_000 {
        deep = wrapped(0x12, &wrapped(0x22, &deep));
    }
    let framed = [&[0_u8][..], &u32::try_from(deep.len()).unwrap().to_be_bytes(), &deep].concat();
    assert_eq!(refused(&server, "KV/Txn", framed).await.0, 13);
}

#[tokio::test]
async fn plain_http_is_answered_as_etcd_answers_it() {
    let server = server();
    for (path, code, words) in [
        ("/health", 200, "\"health\":\"true\""),
        ("/version", 200, "\"etcdserver\":\"3.6.8\""),
        ("/readyz", 200, "ok"),
        ("/v2/keys", 404, "404 page not found"),
    ] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = server.serve(request).await;
        assert_eq!(answer.status().as_u16(), code, "{path}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(words), "{path}: {body:?}");
    }
}
