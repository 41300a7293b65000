//! Maintenance, the one member, and what there is of users.

use sha2::{Digest, Sha256};

use super::*;
use crate::bolt_reader::BoltFile;

#[tokio::test]
async fn it_says_what_it_is() {
    let server = server();
    put(&server, "a", "1").await;
    let status: StatusResponse = call(&server, "Maintenance/Status", &Empty {}).await.unwrap();
    let member = status.header.0.unwrap().member_id;
    assert_eq!((&*status.version, status.leader, status.raft_index), ("3.6.8", member, 2));
    let members: MemberListResponse = call(&server, "Cluster/MemberList", &Empty {}).await.unwrap();
    assert_eq!((members.members.0[0].id, &*members.members.0[0].name), (member, "default"));
    let alarms: AlarmResponse = call(&server, "Maintenance/Alarm", &AlarmRequest::default()).await.unwrap();
    assert!(alarms.alarms.0.is_empty());
    let _: HeaderResponse = call(&server, "Maintenance/Defragment", &Empty {}).await.unwrap();
    let auth: AuthStatusResponse = call(&server, "Auth/AuthStatus", &Empty {}).await.unwrap();
    assert!(!auth.enabled);
    let _: HeaderResponse = call(&server, "Auth/AuthDisable", &Empty {}).await.unwrap();
    for (method, code, words) in [
        ("Auth/Authenticate", 9, "etcdserver: authentication is not enabled"),
        ("Auth/UserAdd", 12, "keeps no users and roles"),
        ("Cluster/MemberAdd", 12, "members are not added"),
        ("Maintenance/MoveLeader", 12, "no other member"),
        ("KV/Nothing", 12, "unknown method Nothing"),
    ] {
        let (found, message) = failure(&server, method, &Empty {}).await;
        assert!(found == code && message.contains(words), "{method}: {found} {message}");
    }
}

#[tokio::test]
async fn the_same_history_has_the_same_hash() {
    let hash = async |values: &[&str], revision| {
        let server = server();
        for value in values {
            put(&server, "a", value).await;
        }
        let request = HashKvRequest { revision };
        let answer: HashKvResponse = call(&server, "Maintenance/HashKV", &request).await.unwrap();
        (answer.hash, answer.hash_revision)
    };
    let (one, at) = hash(&["1", "2"], 0).await;
    assert_eq!(at, 3);
    assert_eq!(hash(&["1", "2", "3"], 3).await, (one, 3));
    assert_ne!(hash(&["1", "3"], 0).await.0, one);
    // Of nothing it is that of the bucket's name.
    let mut hasher = crate::hash::Hasher::default();
    hasher.write(b"key");
    assert_eq!(hash(&[], 0).await.0, u64::from(hasher.finish()));
}

/// Members that have thrown away what was compacted, and others that have not yet, say the same.
#[tokio::test]
async fn what_is_compacted_and_over_is_in_no_hash() {
    let kv = Kv::open(Options::default(), Clock::real()).unwrap();
    let server = server_on(kv.clone());
    for (key, value) in [("a", "1"), ("b", "1"), ("a", "2")] {
        put(&server, key, value).await;
    }
    let hash = async |revision| {
        let request = HashKvRequest { revision };
        let answer: HashKvResponse = call(&server, "Maintenance/HashKV", &request).await.unwrap();
        answer.hash
    };
    let of = |revisions: &[u64]| {
        let history = crate::history::read(&kv, server.values()).unwrap();
        let mut hasher = crate::hash::Hasher::default();
        hasher.write(b"key");
        for row in history.rows.iter().filter(|row| revisions.contains(&row.revision)) {
            hasher.write(&row.key());
            hasher.write(&row.value);
        }
        u64::from(hasher.finish())
    };
    assert_eq!(hash(0).await, of(&[2, 3, 4]));
    kv.compact(3).await.unwrap();
    assert_eq!(hash(3).await, of(&[2, 3]));
    assert_eq!(hash(0).await, of(&[3, 4]), "a is another by then");
    for key in ["a", "b"] {
        let gone = DeleteRangeRequest { key: bytes(key), ..DeleteRangeRequest::default() };
        let _: DeleteRangeResponse = call(&server, "KV/DeleteRange", &gone).await.unwrap();
    }
    assert_eq!(hash(5).await, of(&[3, 4, 5]));
    assert_eq!(hash(6).await, of(&[2, 3, 4, 5, 6]), "there is no key");
}

/// What etcdutl makes of the file is asked where etcdutl is; here: that all is reachable and has its
/// checksum.
#[tokio::test]
async fn a_snapshot_is_a_file_of_pages_and_its_checksum() {
    let server = server();
    for at in 0..500 {
        put(&server, &format!("/{at:03}"), &"v".repeat(at * 20)).await;
    }
    let mut blobs = snapshot(&server).await;
    let digest = blobs.pop().unwrap();
    let file = blobs.concat();
    assert_eq!(&*digest, &*Sha256::digest(&file));
    assert_eq!(file.len() % 4096, 0);
    let buckets = BoltFile::open(file.into()).unwrap().buckets().unwrap();
    let names: Vec<&[u8]> = buckets.keys().map(|name| &**name).collect();
    assert!(names.contains(&&b"meta"[..]) && names.len() == 10, "{names:?}");
    let rows = &buckets[&b"key"[..]];
    assert_eq!(rows.len(), 500);
    for (at, (key, value)) in rows.iter().enumerate() {
        assert_eq!(**key, [&(at as u64 + 2).to_be_bytes()[..], b"_", &[0; 8]].concat());
        let kv = KeyValue::decode(value.clone()).unwrap();
        assert_eq!((kv.key, kv.value.len()), (bytes(&format!("/{at:03}")), at * 20));
    }
}

/// What is asked over plain HTTP: code, content type and body.
async fn asked(server: &EtcdServer, method: &str, path: &str) -> (u16, String, String) {
    let request = Request::builder().method(method).uri(format!("http://etcd{path}"));
    let response = server.serve(request.body(Body::empty()).unwrap()).await;
    let kind = response.headers().get("content-type").map_or("", |kind| kind.to_str().unwrap()).to_owned();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, kind, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn what_is_counted_stands_under_etcds_names() {
    let server = server();
    for key in ["a", "b"] {
        put(&server, key, "1").await;
    }
    range(&server, &one("a")).await;
    failure(&server, "KV/Put", &PutRequest::default()).await;
    let put = RequestOp {
        put: Nested::some(PutRequest { key: bytes("c"), ..Default::default() }),
        ..Default::default()
    };
    let success = Repeated(vec![put, RequestOp { range: Nested::some(all()), ..Default::default() }]);
    let _: TxnResponse =
        call(&server, "KV/Txn", &TxnRequest { success, ..Default::default() }).await.unwrap();
    let grant = LeaseGrantRequest { ttl: 100, id: 0 };
    let _: LeaseGrantResponse = call(&server, "Lease/LeaseGrant", &grant).await.unwrap();
    let mut watching = Talk::begin(&server, "Watch/Watch").await;
    let create = WatchCreateRequest { key: bytes("a"), ..Default::default() };
    watching.say(&WatchRequest { create: Nested::some(create), ..Default::default() });
    let _: WatchResponse = watching.hear().await;

    let (code, kind, text) = asked(&server, "GET", "/metrics").await;
    assert_eq!((code, &*kind), (200, "text/plain; version=0.0.4; charset=utf-8"));
    let called = |method: &str| {
        format!("{{grpc_method=\"{method}\",grpc_service=\"etcdserverpb.KV\",grpc_type=\"unary\"}}")
    };
    for line in [
        "etcd_server_has_leader 1",
        "etcd_server_version{server_version=\"3.6.8\"} 1",
        "etcd_cluster_version{cluster_version=\"3.6\"} 1",
        "etcd_debugging_mvcc_keys_total 3",
        "etcd_debugging_mvcc_current_revision 4",
        "etcd_mvcc_put_total 3",
        "etcd_mvcc_range_total 2",
        "etcd_mvcc_txn_total 1",
        "etcd_mvcc_db_total_size_in_bytes 0",
        "etcd_debugging_lease_granted_total 1",
        "etcd_debugging_mvcc_watch_stream_total 1",
        "etcd_debugging_mvcc_watcher_total 1",
        &format!("grpc_server_started_total{} 3", called("Put")),
        &format!("grpc_server_handled_total{} 2", called("Put").replacen('{', "{grpc_code=\"OK\",", 1)),
        &format!(
            "grpc_server_handled_total{} 1",
            called("Put").replacen('{', "{grpc_code=\"InvalidArgument\",", 1)
        ),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for name in [
        "process_resident_memory_bytes ",
        "etcd_network_client_grpc_received_bytes_total ",
        "process_open_fds ",
    ] {
        let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert!(value.parse::<u64>().unwrap() > 0, "{name}{value}");
    }
    drop(watching);
    let (_, _, text) = asked(&server, "GET", "/metrics").await;
    assert!(text.contains("\netcd_debugging_mvcc_watcher_total 0\n"), "{text}");
    assert_eq!(asked(&server, "GET", "/health").await.2, r#"{"health":"true","reason":""}"#);
    assert!(asked(&server, "GET", "/version").await.2.contains("3.6.8"));
    assert_eq!(asked(&server, "POST", "/health").await.0, 405);
}

/// A server on a data dir that may have so many bytes.
fn server_of(folder: &tempfile::TempDir, quota_bytes: i64) -> EtcdServer {
    let options =
        Options { data_dir: Some(folder.path().join("store")), unsafe_no_fsync: true, ..Options::default() };
    let kv = Kv::open(options, Clock::real()).unwrap();
    let told = ServerOptions {
        quota_bytes,
        alarms_file: Some(folder.path().join("alarms")),
        ..ServerOptions::default()
    };
    EtcdServer::new(Arc::new(move || Ok(kv.clone())), Arc::new(AsKept), told)
}

async fn plain(server: &EtcdServer, path: &str) -> (u16, String) {
    let request = Request::get(format!("http://etcd{path}")).body(Body::empty()).unwrap();
    let response = server.serve(request).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_quota_that_is_spent_refuses_what_needs_room_until_there_is_some() {
    const SPENT: (u32, &str) = (8, "etcdserver: mvcc: database space exceeded");
    let folder = tempfile::tempdir().unwrap();
    let server = server_of(&folder, 24 << 20);
    let large = PutRequest { key: "a".into(), value: vec![b'x'; 1 << 20].into(), ..Default::default() };
    let mut puts = 0;
    let refused = loop {
        let put = call::<_, PutResponse>(&server, "KV/Put", &large).await;
        match put {
            Ok(_) => puts += 1,
            Err(status) => break status,
        }
        assert!(puts < 100, "it is never full");
    };
    assert_eq!((refused.code, &*refused.message), SPENT);
    let status: StatusResponse = call(&server, "Maintenance/Status", &Empty {}).await.unwrap();
    assert_eq!(status.errors, ["memberID:10276657743932975437 alarm:NOSPACE "]);
    assert_eq!(status.db_size_quota, 24 << 20);
    let (code, body) = plain(&server, "/health").await;
    assert_eq!((code, &*body), (503, r#"{"health":"false","reason":"ALARM NOSPACE"}"#));
    for path in ["/health?exclude=NOSPACE", "/readyz", "/livez"] {
        assert_eq!(plain(&server, path).await.0, 200, "{path}");
    }
    // What needs room is refused, be it ever so small; the rest is not.
    let small = PutRequest { key: "b".into(), ..Default::default() };
    let found = failure(&server, "KV/Put", &small).await;
    assert_eq!((found.0, &*found.1), SPENT);
    let found = failure(&server, "Lease/LeaseGrant", &LeaseGrantRequest { ttl: 60, id: 0 }).await;
    assert_eq!((found.0, &*found.1), SPENT);
    let put = RequestOp { put: Nested::some(small.clone()), ..Default::default() };
    let txn = TxnRequest { success: Repeated(vec![put]), ..Default::default() };
    let found = failure(&server, "KV/Txn", &txn).await;
    assert_eq!((found.0, &*found.1), SPENT);
    let _: TxnResponse = call(&server, "KV/Txn", &TxnRequest::default()).await.unwrap();
    let gone = DeleteRangeRequest { key: "a".into(), ..Default::default() };
    let gone: DeleteRangeResponse = call(&server, "KV/DeleteRange", &gone).await.unwrap();
    let revision = gone.header.0.unwrap().revision;
    let compact = CompactionRequest { revision, physical: true };
    let _: HeaderResponse = call(&server, "KV/Compact", &compact).await.unwrap();
    let _: HeaderResponse = call(&server, "Maintenance/Defragment", &Empty {}).await.unwrap();
    // Room alone is not enough: somebody has to say so.
    assert_eq!(failure(&server, "KV/Put", &small).await.0, SPENT.0);
    let raised: AlarmResponse = call(&server, "Maintenance/Alarm", &AlarmRequest::default()).await.unwrap();
    let AlarmMember { member_id, alarm } = raised.alarms.0[0].clone();
    let disarm = AlarmRequest { action: 2, member_id, alarm };
    let _: AlarmResponse = call(&server, "Maintenance/Alarm", &disarm).await.unwrap();
    let _: PutResponse = call(&server, "KV/Put", &small).await.unwrap();
    assert_eq!(plain(&server, "/health").await.0, 200);
}

#[tokio::test]
async fn a_corrupt_one_is_read_and_not_written() {
    let server = server();
    let corrupt = AlarmRequest { action: 1, member_id: 7, alarm: 2 };
    let _: AlarmResponse = call(&server, "Maintenance/Alarm", &corrupt).await.unwrap();
    for (method, found) in [
        ("KV/Put", failure(&server, "KV/Put", &PutRequest { key: "a".into(), ..Default::default() }).await),
        (
            "KV/DeleteRange",
            failure(&server, "KV/DeleteRange", &DeleteRangeRequest { key: "a".into(), ..Default::default() })
                .await,
        ),
        ("KV/Compact", failure(&server, "KV/Compact", &CompactionRequest::default()).await),
        ("Lease/LeaseRevoke", failure(&server, "Lease/LeaseRevoke", &LeaseRequest { id: 1 }).await),
    ] {
        assert_eq!(found, (15, "etcdserver: corrupt cluster".to_owned()), "{method}");
    }
    let read = RangeRequest { key: "a".into(), ..Default::default() };
    let _: RangeResponse = call(&server, "KV/Range", &read).await.unwrap();
    assert_eq!(plain(&server, "/health").await.1, r#"{"health":"false","reason":"ALARM CORRUPT"}"#);
}

#[tokio::test]
async fn the_disk_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let server = server_of(&folder, 0);
    put(&server, "a", "1").await;
    put(&server, "a", "2").await;
    let text = plain(&server, "/metrics").await.1;
    for line in [
        "etcd_server_quota_backend_bytes 2147483648",
        "# TYPE etcd_disk_wal_fsync_duration_seconds histogram",
        "etcd_disk_wal_fsync_duration_seconds_count 2",
        "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"8.192\"} 2",
        "etcd_disk_backend_commit_duration_seconds_count 2",
        "etcd_disk_backend_commit_duration_seconds_bucket{le=\"+Inf\"} 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
