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
