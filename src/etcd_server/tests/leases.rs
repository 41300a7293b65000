//! Leases.

use super::*;

async fn grant(server: &EtcdServer, ttl: i64, id: i64) -> LeaseGrantResponse {
    call(server, "Lease/LeaseGrant", &LeaseGrantRequest { ttl, id }).await.unwrap()
}

async fn left(server: &EtcdServer, id: i64) -> LeaseTimeToLiveResponse {
    call(server, "Lease/LeaseTimeToLive", &LeaseTimeToLiveRequest { id, keys: true }).await.unwrap()
}

#[tokio::test]
async fn keys_go_with_the_lease_that_they_hang_on() {
    let server = server();
    let lease = grant(&server, 100, 0).await;
    assert!(lease.id > 1 << 52 && lease.ttl == 100, "not a count: {}", lease.id);
    let next = grant(&server, 100, 0).await.id;
    assert!(next > 1 << 52 && next.abs_diff(lease.id) > 1 << 52, "{next}");
    let hanging = PutRequest { key: bytes("a"), lease: lease.id, ..Default::default() };
    let _: PutResponse = call(&server, "KV/Put", &hanging).await.unwrap();
    assert_eq!(range(&server, &one("a")).await.kvs.0[0].lease, lease.id);
    let status = left(&server, lease.id).await;
    assert!(status.granted_ttl == 100 && (90..=100).contains(&status.ttl) && status.keys == [bytes("a")]);
    let request = LeaseRequest { id: lease.id };
    let _: HeaderResponse = call(&server, "Lease/LeaseRevoke", &request).await.unwrap();
    assert_eq!(range(&server, &one("a")).await.count, 0);
    assert_eq!(left(&server, lease.id).await.ttl, -1);
    let gone = (5, "etcdserver: requested lease not found".to_owned());
    assert_eq!(failure(&server, "Lease/LeaseRevoke", &request).await, gone);
}

#[tokio::test]
async fn a_lease_has_the_number_that_was_asked_for() {
    let server = server();
    for id in [7, i64::MAX, -3] {
        assert_eq!(grant(&server, 100, id).await.id, id);
        let exists = (9, "etcdserver: lease already exists".to_owned());
        let again = LeaseGrantRequest { ttl: 5, id };
        assert_eq!(failure(&server, "Lease/LeaseGrant", &again).await, exists);
    }
    assert_eq!(grant(&server, 0, 0).await.ttl, 2, "as short as etcd has them");
    let too_long = LeaseGrantRequest { ttl: 9_000_000_001, id: 0 };
    let refused = (11, "etcdserver: too large lease TTL".to_owned());
    assert_eq!(failure(&server, "Lease/LeaseGrant", &too_long).await, refused);
    let all: LeaseLeasesResponse = call(&server, "Lease/LeaseLeases", &Empty {}).await.unwrap();
    assert_eq!(all.leases.0.len(), 4);
}

#[tokio::test]
async fn a_lease_lives_as_long_as_it_is_kept_alive() {
    let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH);
    let kv = Kv::open(Options::default(), clock.clone()).unwrap();
    let server = server_on(kv.clone());
    let lease = grant(&server, 10, 7).await;
    let hanging = PutRequest { key: bytes("a"), lease: lease.id, ..Default::default() };
    let _: PutResponse = call(&server, "KV/Put", &hanging).await.unwrap();
    let mut talk = Talk::begin(&server, "Lease/LeaseKeepAlive").await;
    for _ in 0..3 {
        clock.advance(Duration::from_secs(6));
        talk.say(&LeaseRequest { id: 7 });
        let kept: LeaseKeepAliveResponse = talk.hear().await;
        assert_eq!((kept.id, kept.ttl), (7, 10));
    }
    talk.say(&LeaseRequest { id: 8 });
    let unknown: LeaseKeepAliveResponse = talk.hear().await;
    assert_eq!((unknown.id, unknown.ttl), (8, 0));
    while clock.next_wake().is_none() {
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_secs(11));
    while kv.get("a", None).unwrap().0.is_some() {
        tokio::task::yield_now().await;
    }
}
