//! `Lease` (`v3rpc/lease.go`, `lease/lessor.go`).

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use etcd::{Kv, LeaseId, LeaseStatus};
use futures::stream;
use http::Response;

use crate::frames::{Received, framed};
use crate::keys;
use crate::messages::{
    Empty, HeaderResponse, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveResponse,
    LeaseLeasesResponse, LeaseRequest, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, Repeated,
};
use crate::metrics::LeaseStep;
use crate::quota::LEASE_COST;
use crate::server::{EtcdServer, header, header_only, signed};
use crate::status::{EtcdError, EtcdStatus};
use crate::unary::streamed;

/// `lease.MaxLeaseTTL`, in seconds: a longer one is refused.
pub(crate) const MAX_TTL: i64 = 9_000_000_000;
/// What a shorter one is made, in seconds: one and a half election timeouts, as etcd has it by default.
pub(crate) const MIN_TTL: i64 = 2;

pub(crate) async fn grant(
    server: &EtcdServer,
    request: &LeaseGrantRequest,
) -> Result<LeaseGrantResponse, EtcdStatus> {
    if request.ttl > MAX_TTL {
        return Err(EtcdError::LeaseTtlTooLarge.into());
    }
    server.admit(LEASE_COST)?;
    let kv = server.kv()?;
    let ttl = request.ttl.max(MIN_TTL);
    let time = Duration::from_secs(ttl.unsigned_abs());
    let lease = match request.id {
        0 => kv.grant_lease(time).await?,
        id => kv.grant_named_lease(id.cast_unsigned(), time).await?,
    };
    server.metrics().leased(LeaseStep::Granted);
    let id = kv.lease_name(lease).cast_signed();
    Ok(LeaseGrantResponse { header: header(kv.revision()), id, ttl, error: String::new() })
}

fn named(kv: &Kv, id: i64) -> Result<LeaseId, EtcdStatus> {
    kv.lease_named(id.cast_unsigned()).ok_or_else(|| EtcdError::LeaseNotFound.into())
}

pub(crate) async fn revoke(
    server: &EtcdServer,
    request: &LeaseRequest,
) -> Result<HeaderResponse, EtcdStatus> {
    server.admit(0)?;
    let kv = server.kv()?;
    kv.revoke_lease(named(&kv, request.id)?).await?;
    server.metrics().leased(LeaseStep::Revoked);
    Ok(header_only(kv.revision()))
}

/// Renews a lease for each message that comes, and answers each; one that is gone has no time left.
pub(crate) fn keep_alive(server: &EtcdServer, body: Body) -> Response<Body> {
    let begun = (server.clone(), Received::new(body));
    streamed(stream::unfold(begun, |(server, mut received)| async move {
        let request = received.next::<LeaseRequest>().await.transpose()?;
        let answer = request.and_then(|request| renewed(&server, &request));
        Some((answer, (server, received)))
    }))
}

fn renewed(server: &EtcdServer, request: &LeaseRequest) -> Result<Bytes, EtcdStatus> {
    let kv = server.kv()?;
    let lease = kv.lease_named(request.id.cast_unsigned());
    let lease = lease.filter(|lease| kv.keep_alive(*lease).is_ok());
    if lease.is_some() {
        server.metrics().leased(LeaseStep::Renewed);
    }
    let ttl = lease.and_then(|lease| kv.lease_status(lease)).map_or(0, |status| seconds(status.ttl));
    Ok(framed(&LeaseKeepAliveResponse { header: header(kv.revision()), id: request.id, ttl }))
}

pub(crate) fn time_to_live(
    server: &EtcdServer,
    request: &LeaseTimeToLiveRequest,
) -> Result<LeaseTimeToLiveResponse, EtcdStatus> {
    let kv = server.kv()?;
    let id = request.id;
    let header = header(kv.revision());
    let found = kv.lease_named(id.cast_unsigned()).and_then(|lease| kv.lease_status(lease));
    let Some(LeaseStatus { lease, ttl, remaining, .. }) = found else {
        return Ok(LeaseTimeToLiveResponse { header, id, ttl: -1, ..LeaseTimeToLiveResponse::default() });
    };
    let keys = if request.keys { kv.lease_keys(lease).unwrap_or_default() } else { Vec::new() };
    Ok(LeaseTimeToLiveResponse {
        header,
        id,
        ttl: seconds(remaining),
        granted_ttl: seconds(ttl),
        keys: keys.iter().map(|key| keys::bytes(key)).collect(),
    })
}

fn seconds(time: Duration) -> i64 {
    signed(time.as_secs())
}

pub(crate) fn leases(server: &EtcdServer, _request: &Empty) -> Result<LeaseLeasesResponse, EtcdStatus> {
    let kv = server.kv()?;
    let leases = kv.leases().into_iter().map(|status| LeaseRequest { id: status.name.cast_signed() });
    Ok(LeaseLeasesResponse { header: header(kv.revision()), leases: Repeated(leases.collect()) })
}
