//! etcd's messages (`etcdserverpb`, `mvccpb`): names, types and numbers as in `rpc.proto` and `kv.proto`.
//! Enums are numbers.

use bytes::Bytes;

use crate::wire::messages;
pub use crate::wire::{Nested, Repeated};

messages! {
    /// `mvccpb.KeyValue`
    KeyValue {
        key: Bytes = 1,
        create_revision: i64 = 2,
        mod_revision: i64 = 3,
        version: i64 = 4,
        value: Bytes = 5,
        lease: i64 = 6,
    }
    /// `mvccpb.Event`
    Event {
        /// 0 is a put, 1 a deletion.
        kind: i64 = 1,
        kv: Nested<KeyValue> = 2,
        prev_kv: Nested<KeyValue> = 3,
    }
    /// `ResponseHeader`
    ResponseHeader {
        cluster_id: u64 = 1,
        member_id: u64 = 2,
        revision: i64 = 3,
        raft_term: u64 = 4,
    }
    /// `RangeRequest`
    RangeRequest {
        key: Bytes = 1,
        range_end: Bytes = 2,
        limit: i64 = 3,
        revision: i64 = 4,
        sort_order: i64 = 5,
        sort_target: i64 = 6,
        serializable: bool = 7,
        keys_only: bool = 8,
        count_only: bool = 9,
        min_mod_revision: i64 = 10,
        max_mod_revision: i64 = 11,
        min_create_revision: i64 = 12,
        max_create_revision: i64 = 13,
    }
    /// `RangeResponse`
    RangeResponse {
        header: Nested<ResponseHeader> = 1,
        kvs: Repeated<KeyValue> = 2,
        more: bool = 3,
        count: i64 = 4,
    }
    /// `PutRequest`
    PutRequest {
        key: Bytes = 1,
        value: Bytes = 2,
        lease: i64 = 3,
        prev_kv: bool = 4,
        ignore_value: bool = 5,
        ignore_lease: bool = 6,
    }
    /// `PutResponse`
    PutResponse {
        header: Nested<ResponseHeader> = 1,
        prev_kv: Nested<KeyValue> = 2,
    }
    /// `DeleteRangeRequest`
    DeleteRangeRequest {
        key: Bytes = 1,
        range_end: Bytes = 2,
        prev_kv: bool = 3,
    }
    /// `DeleteRangeResponse`
    DeleteRangeResponse {
        header: Nested<ResponseHeader> = 1,
        deleted: i64 = 2,
        prev_kvs: Repeated<KeyValue> = 3,
    }
    /// `RequestOp`: one of these.
    RequestOp {
        range: Nested<RangeRequest> = 1,
        put: Nested<PutRequest> = 2,
        delete_range: Nested<DeleteRangeRequest> = 3,
        txn: Nested<TxnRequest> = 4,
    }
    /// `ResponseOp`: one of these.
    ResponseOp {
        range: Nested<RangeResponse> = 1,
        put: Nested<PutResponse> = 2,
        delete_range: Nested<DeleteRangeResponse> = 3,
        txn: Nested<TxnResponse> = 4,
    }
    /// `Compare`
    Compare {
        /// 0 is equal, 1 greater, 2 less, 3 not equal.
        result: i64 = 1,
        /// 0 is the version, 1 the create revision, 2 the mod revision, 3 the value, 4 the lease.
        target: i64 = 2,
        key: Bytes = 3,
        version: Option<i64> = 4,
        create_revision: Option<i64> = 5,
        mod_revision: Option<i64> = 6,
        value: Option<Bytes> = 7,
        lease: Option<i64> = 8,
        range_end: Bytes = 64,
    }
    /// `TxnRequest`
    TxnRequest {
        compare: Repeated<Compare> = 1,
        success: Repeated<RequestOp> = 2,
        failure: Repeated<RequestOp> = 3,
    }
    /// `TxnResponse`
    TxnResponse {
        header: Nested<ResponseHeader> = 1,
        succeeded: bool = 2,
        responses: Repeated<ResponseOp> = 3,
    }
    /// `CompactionRequest`
    CompactionRequest {
        revision: i64 = 1,
        physical: bool = 2,
    }
    /// An answer that is nothing but its header: `CompactionResponse`, `LeaseRevokeResponse`,
    /// `DefragmentResponse`.
    HeaderResponse {
        header: Nested<ResponseHeader> = 1,
    }
    /// `WatchCreateRequest`
    WatchCreateRequest {
        key: Bytes = 1,
        range_end: Bytes = 2,
        start_revision: i64 = 3,
        progress_notify: bool = 4,
        /// 0 leaves out puts, 1 deletions.
        filters: Vec<i64> = 5,
        prev_kv: bool = 6,
        watch_id: i64 = 7,
        fragment: bool = 8,
    }
    /// `WatchCancelRequest`
    WatchCancelRequest {
        watch_id: i64 = 1,
    }
    /// A request without anything in it.
    Empty {}
    /// `WatchRequest`: one of these.
    WatchRequest {
        create: Nested<WatchCreateRequest> = 1,
        cancel: Nested<WatchCancelRequest> = 2,
        progress: Nested<Empty> = 3,
    }
    /// `WatchResponse`
    WatchResponse {
        header: Nested<ResponseHeader> = 1,
        watch_id: i64 = 2,
        created: bool = 3,
        canceled: bool = 4,
        compact_revision: i64 = 5,
        cancel_reason: String = 6,
        fragment: bool = 7,
        events: Repeated<Event> = 11,
    }
    /// `LeaseGrantRequest`
    LeaseGrantRequest {
        ttl: i64 = 1,
        id: i64 = 2,
    }
    /// `LeaseGrantResponse`
    LeaseGrantResponse {
        header: Nested<ResponseHeader> = 1,
        id: i64 = 2,
        ttl: i64 = 3,
        error: String = 4,
    }
    /// A request about one lease: `LeaseRevokeRequest`, `LeaseKeepAliveRequest`; and `LeaseStatus`.
    LeaseRequest {
        id: i64 = 1,
    }
    /// `LeaseKeepAliveResponse`
    LeaseKeepAliveResponse {
        header: Nested<ResponseHeader> = 1,
        id: i64 = 2,
        ttl: i64 = 3,
    }
    /// `LeaseTimeToLiveRequest`
    LeaseTimeToLiveRequest {
        id: i64 = 1,
        keys: bool = 2,
    }
    /// `LeaseTimeToLiveResponse`
    LeaseTimeToLiveResponse {
        header: Nested<ResponseHeader> = 1,
        id: i64 = 2,
        ttl: i64 = 3,
        granted_ttl: i64 = 4,
        keys: Vec<Bytes> = 5,
    }
    /// `LeaseLeasesResponse`
    LeaseLeasesResponse {
        header: Nested<ResponseHeader> = 1,
        leases: Repeated<LeaseRequest> = 2,
    }
    /// `Member`
    Member {
        id: u64 = 1,
        name: String = 2,
        peer_urls: Vec<String> = 3,
        client_urls: Vec<String> = 4,
        is_learner: bool = 5,
    }
    /// `MemberListResponse`
    MemberListResponse {
        header: Nested<ResponseHeader> = 1,
        members: Repeated<Member> = 2,
    }
    /// `AlarmRequest`
    AlarmRequest {
        /// 0 asks, 1 activates, 2 deactivates.
        action: i64 = 1,
        member_id: u64 = 2,
        alarm: i64 = 3,
    }
    /// `AlarmMember`
    AlarmMember {
        member_id: u64 = 1,
        alarm: i64 = 2,
    }
    /// `AlarmResponse`
    AlarmResponse {
        header: Nested<ResponseHeader> = 1,
        alarms: Repeated<AlarmMember> = 2,
    }
    /// `StatusResponse`
    StatusResponse {
        header: Nested<ResponseHeader> = 1,
        version: String = 2,
        db_size: i64 = 3,
        leader: u64 = 4,
        raft_index: u64 = 5,
        raft_term: u64 = 6,
        raft_applied_index: u64 = 7,
        errors: Vec<String> = 8,
        db_size_in_use: i64 = 9,
        is_learner: bool = 10,
        storage_version: String = 11,
        db_size_quota: i64 = 12,
    }
    /// `HashResponse`
    HashResponse {
        header: Nested<ResponseHeader> = 1,
        hash: u64 = 2,
    }
    /// `HashKVRequest`
    HashKvRequest {
        revision: i64 = 1,
    }
    /// `HashKVResponse`
    HashKvResponse {
        header: Nested<ResponseHeader> = 1,
        hash: u64 = 2,
        compact_revision: i64 = 3,
        hash_revision: i64 = 4,
    }
    /// `SnapshotResponse`
    SnapshotResponse {
        header: Nested<ResponseHeader> = 1,
        remaining_bytes: u64 = 2,
        blob: Bytes = 3,
        version: String = 4,
    }
    /// `leasepb.Lease`
    KeptLease {
        id: i64 = 1,
        ttl: i64 = 2,
        remaining_ttl: i64 = 3,
    }
    /// `AuthStatusResponse`
    AuthStatusResponse {
        header: Nested<ResponseHeader> = 1,
        enabled: bool = 2,
        auth_revision: u64 = 3,
    }
}
