//! `Maintenance`, and what little there is of `Auth` (`v3rpc/maintenance.go`).

use axum::body::Body;
use etcd::Kv;
use http::Response;

use crate::alarms;
use crate::hash::Hasher;
use crate::history;
use crate::messages::{
    AlarmRequest, AlarmResponse, AuthStatusResponse, Empty, HashKvRequest, HashKvResponse, HashResponse,
    HeaderResponse, LeaseRequest, StatusResponse,
};
use crate::server::{
    CLUSTER_VERSION, EtcdServer, MEMBER_ID, RAFT_TERM, VERSION, header, header_only, signed,
};
use crate::status::{EtcdError, EtcdStatus};
use crate::unary::unary;

pub(crate) fn status(server: &EtcdServer, _request: &Empty) -> Result<StatusResponse, EtcdStatus> {
    let kv = server.kv()?;
    let revision = kv.revision();
    let size = signed(kv.bytes_on_disk());
    Ok(StatusResponse {
        header: header(revision),
        version: VERSION.to_owned(),
        db_size: size,
        leader: MEMBER_ID,
        raft_index: revision,
        raft_term: RAFT_TERM,
        raft_applied_index: revision,
        errors: errors(server, &kv),
        db_size_in_use: size,
        is_learner: false,
        storage_version: CLUSTER_VERSION.to_owned(),
        db_size_quota: server.quota().bytes(),
    })
}

/// The alarms, as etcd's message is written by its own library, and why nothing can be written.
fn errors(server: &EtcdServer, kv: &Kv) -> Vec<String> {
    let alarms = server.alarms().list(0).into_iter();
    let told =
        alarms.map(|raised| format!("memberID:{} alarm:{} ", raised.member_id, alarms::name(raised.alarm)));
    told.chain(kv.writable().err().map(|error| error.to_string())).collect()
}

pub(crate) fn alarm(server: &EtcdServer, request: &AlarmRequest) -> Result<AlarmResponse, EtcdStatus> {
    let header = header(server.kv()?.revision());
    Ok(AlarmResponse { header, alarms: server.alarms().answer(request) })
}

/// Gives back what compaction has freed, as far as that pays.
pub(crate) async fn defragment(server: &EtcdServer, _request: &Empty) -> Result<HeaderResponse, EtcdStatus> {
    let kv = server.kv()?;
    kv.compact(kv.compact_revision()).await?;
    Ok(header_only(kv.revision()))
}

pub(crate) fn hash(server: &EtcdServer, _request: &Empty) -> Result<HashResponse, EtcdStatus> {
    let found = hash_kv(server, &HashKvRequest::default())?;
    Ok(HashResponse { header: found.header, hash: found.hash })
}

/// As etcd would hash the same history (`mvcc.kvHasher`).
pub(crate) fn hash_kv(server: &EtcdServer, request: &HashKvRequest) -> Result<HashKvResponse, EtcdStatus> {
    let kv = server.kv()?;
    let history = history::read(&kv, server.values())?;
    let upto = u64::try_from(request.revision).ok().filter(|upto| *upto > 0).unwrap_or(history.revision);
    if upto > history.revision {
        return Err(EtcdError::FutureRev.into());
    }
    if upto < history.compact_revision {
        return Err(EtcdError::Compacted.into());
    }
    let mut hasher = Hasher::default();
    hasher.write(b"key");
    for row in history.hashed(upto) {
        hasher.write(&row.key());
        hasher.write(&row.value);
    }
    Ok(HashKvResponse {
        header: header(history.revision),
        hash: u64::from(hasher.finish()),
        compact_revision: server.compact_revision(&kv),
        hash_revision: signed(upto),
    })
}

pub(crate) fn auth_status(server: &EtcdServer, _request: &Empty) -> Result<AuthStatusResponse, EtcdStatus> {
    Ok(AuthStatusResponse { header: header(server.kv()?.revision()), enabled: false, auth_revision: 1 })
}

/// `Auth.AuthDisable`: there is nothing to disable.
pub(crate) fn auth_disable(server: &EtcdServer, _request: &Empty) -> Result<HeaderResponse, EtcdStatus> {
    Ok(HeaderResponse { header: header(server.kv()?.revision()) })
}

/// `grpc.health.v1.Health`: 1 is serving, 2 is not.
pub(crate) async fn health(server: &EtcdServer, body: Body) -> Response<Body> {
    unary(body, async |_: Empty, _| {
        let is_well = server.kv().is_ok_and(|kv| kv.writable().is_ok());
        Ok(LeaseRequest { id: if is_well { 1 } else { 2 } })
    })
    .await
}
