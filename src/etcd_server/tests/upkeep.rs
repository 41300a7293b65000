//! Maintenance, the one member, and what there is of users.

use sha2::{Digest, Sha256};

use super::*;

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
    let body = Body::from(framed(&Empty {}));
    let mut pieces = answers(&server, "Maintenance/Snapshot", body).await.unwrap();
    let mut blobs = Vec::new();
    while let Some(piece) = pieces.next::<SnapshotResponse>().await {
        blobs.push(piece.blob);
    }
    let digest = blobs.pop().unwrap();
    let file = blobs.concat();
    assert_eq!(&*digest, &*Sha256::digest(&file));
    assert_eq!(file.len() % 4096, 0);
    let root = u64::from_le_bytes(file[16 + 16..][..8].try_into().unwrap());
    let buckets = leaves(&file, root);
    let names: Vec<String> = buckets.iter().map(|(key, _)| String::from_utf8(key.clone()).unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"meta".to_owned()), "{names:?}");
    let keys = buckets.iter().find(|(key, _)| key == b"key").unwrap();
    let rows = leaves(&file, u64::from_le_bytes(keys.1[..8].try_into().unwrap()));
    assert_eq!(rows.len(), 500);
    for (at, (key, value)) in rows.into_iter().enumerate() {
        assert_eq!(key, [&(at as u64 + 2).to_be_bytes()[..], b"_", &[0; 8]].concat());
        let kv = KeyValue::decode(value.into()).unwrap();
        assert_eq!((kv.key, kv.value.len()), (bytes(&format!("/{at:03}")), at * 20));
    }
}

/// All keys and values below a page.
fn leaves(file: &[u8], page: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let page = &file[usize::try_from(page).unwrap() * 4096..];
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap()) as usize;
    let kind = u16::from_le_bytes(page[8..10].try_into().unwrap());
    let count = usize::from(u16::from_le_bytes(page[10..12].try_into().unwrap()));
    let element = |at: usize| &page[16 + 16 * at..];
    if kind == 1 {
        let below = |at| u64::from_le_bytes(element(at)[8..16].try_into().unwrap());
        return (0..count).flat_map(|at| leaves(file, below(at))).collect();
    }
    let item = |at| {
        let element = element(at);
        let (start, key, value) = (number(&element[4..8]), number(&element[8..12]), number(&element[12..16]));
        (element[start..start + key].to_vec(), element[start + key..start + key + value].to_vec())
    };
    (0..count).map(item).collect()
}
