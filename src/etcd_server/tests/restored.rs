//! Snapshots that are read again, whole and damaged.

use etcd::{EventKind, StoreImage};

use super::*;
use crate::restored::{self, EtcdSnapshotError, LeasesOf};

/// A store with a past: overwritten, deleted, made again, on a lease, compacted.
async fn with_a_past() -> (Kv, EtcdServer) {
    let kv = Kv::open(Options::default(), Clock::real()).unwrap();
    let server = server_on(kv.clone());
    for at in 0..300 {
        put(&server, &format!("/registry/a/{at:03}"), &"v".repeat(at * 5)).await;
    }
    let granted = LeaseGrantRequest { ttl: 1000, id: 77 };
    let _: LeaseGrantResponse = call(&server, "Lease/LeaseGrant", &granted).await.unwrap();
    let leased = PutRequest { key: bytes("/registry/leased"), lease: 77, ..PutRequest::default() };
    let _: PutResponse = call(&server, "KV/Put", &leased).await.unwrap();
    put(&server, "/registry/a/007", "second").await;
    kv.compact(kv.revision()).await.unwrap();
    put(&server, "/registry/a/007", "third").await;
    let gone = DeleteRangeRequest { key: bytes("/registry/a/008"), ..DeleteRangeRequest::default() };
    let _: DeleteRangeResponse = call(&server, "KV/DeleteRange", &gone).await.unwrap();
    put(&server, "/registry/a/008", "again").await;
    put(&server, "/others", "theirs").await;
    (kv, server)
}

fn decode(file: Bytes, prefix: &str) -> Result<StoreImage, EtcdSnapshotError> {
    restored::decode(file, prefix, LeasesOf::Snapshot)
}

fn load(image: &StoreImage) -> Kv {
    Kv::load(image, Options::default(), Clock::real()).unwrap()
}

#[tokio::test]
async fn what_is_read_again_has_the_same_revisions_leases_and_history() {
    let (kv, server) = with_a_past().await;
    let file = Bytes::from(snapshot(&server).await.concat());
    let read = load(&decode(file.clone(), "/registry").unwrap());
    assert_eq!((read.revision(), read.compact_revision()), (kv.revision(), kv.compact_revision()));
    let all = |kv: &Kv| kv.range("/", None, None, None).unwrap().kvs;
    assert_eq!(all(&read), all(&kv));
    let before = Some(kv.compact_revision() + 1);
    assert_eq!(read.get("/registry/a/008", before).unwrap(), kv.get("/registry/a/008", before).unwrap());
    let mut watch = read.watch("/registry/", kv.compact_revision()).unwrap();
    let events = watch.next().await.unwrap().events;
    let told: Vec<(EventKind, &str)> = events.iter().map(|event| (event.kind, &*event.kv.key)).collect();
    let (put, delete) = (EventKind::Put, EventKind::Delete);
    let expected = [(put, "/registry/a/007"), (delete, "/registry/a/008"), (put, "/registry/a/008")];
    assert_eq!(told, expected);
    assert_eq!(&*events[0].previous.as_ref().unwrap().value, b"second");
    let lease = &read.leases()[0];
    assert_eq!((lease.name, lease.ttl.as_secs()), (77, 1000));
    assert_eq!(read.lease_keys(lease.lease).unwrap(), ["/registry/leased".into()]);
    let for_ever = load(&restored::decode(file, "/registry", LeasesOf::Nobody).unwrap());
    assert!(for_ever.leases().is_empty());
    assert!(for_ever.get("/registry/leased", None).unwrap().0.is_some_and(|kv| kv.lease.is_none()));
}

#[tokio::test]
async fn keys_below_another_prefix_are_found_below_ours() {
    let server = server();
    put(&server, "/kube/pods/a/b", "1").await;
    let file = Bytes::from(snapshot(&server).await.concat());
    let refused = decode(file.clone(), "/registry").unwrap_err().to_string();
    assert_eq!(refused, "it has no key below /registry/: say with --etcd-prefix what its keys begin with");
    let read = load(&decode(file, "/kube").unwrap());
    assert!(read.get("/registry/pods/a/b", None).unwrap().0.is_some());
}

/// Nothing that a file says makes it more than a refusal; what is in the pages is then perhaps not what was.
#[tokio::test]
async fn a_file_that_is_damaged_or_cut_short_is_refused_or_read_but_never_more() {
    let (_, server) = with_a_past().await;
    let mut pieces = snapshot(&server).await;
    let whole = pieces.concat();
    let mut other = whole.clone();
    other[5000] ^= 1;
    assert!(matches!(decode(other.into(), "/registry"), Err(EtcdSnapshotError::Damaged)));
    pieces.pop();
    let pages = pieces.concat();
    for end in (0..pages.len()).step_by(pages.len() / 50) {
        assert!(decode(Bytes::copy_from_slice(&pages[..end]), "/registry").is_err(), "{end}");
    }
    let mut refused = 0;
    for at in (0..pages.len()).step_by(pages.len() / 400) {
        for flip in [0x01, 0xff] {
            let mut damaged = pages.clone();
            damaged[at] ^= flip;
            refused += usize::from(decode(damaged.into(), "/registry").is_err());
        }
    }
    assert!(refused > 0, "{refused}");
    for garbage in ["", "kubarium snapshot", "SQLite format 3"] {
        let why = decode(garbage.into(), "/registry").unwrap_err().to_string();
        assert!(why.starts_with("it is no file of bbolt: give the file that"), "{why}");
    }
}
