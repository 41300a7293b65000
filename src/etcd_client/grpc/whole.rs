//! A whole etcd: read as the file that its members keep, and written revision by revision.
//!
//! etcd gives each write the next revision, whoever asks. So an etcd that is behind is led to a revision by
//! writes of a key that nobody else has, and the next write has exactly the one that is wanted.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use etcd::{LeaseId, Revision, StoreError};
use etcd_api::frames::framed;
use etcd_api::messages::{
    DeleteRangeRequest, Empty, HeaderResponse, Nested, PutRequest, Repeated, RequestOp, SnapshotResponse,
    TxnRequest, TxnResponse,
};
use tokio::task::JoinSet;

use super::ask::{CallFailure, Repeat, send, status_in};
use super::body::RequestBody;
use super::client::EtcdClient;
use super::connections::{MemberConnection, Purpose};
use super::convert::error_of;

/// The key whose writes lead an etcd to a revision; beside `--etcd-prefix`, and gone at the end.
const FILLER: &[u8] = b"kubarium_store_copy";
/// So many of these writes are under way at once.
const FILLERS: u64 = 64;

/// A key that is put at a revision, or deleted.
#[derive(Clone, Debug)]
pub struct CopiedChange {
    /// As it is known here.
    pub key: Arc<str>,
    /// What is put, and the lease that it goes with; none for a deletion.
    pub put: Option<(Bytes, Option<LeaseId>)>,
}

impl EtcdClient {
    /// The file of a member, with all that there is at one revision, and its checksum behind it, as
    /// `etcdctl snapshot save` writes it. What is longer than `most` bytes is given up.
    ///
    /// # Errors
    /// [`StoreError::Etcd`].
    pub async fn snapshot(&self, most: u64) -> Result<Bytes, StoreError> {
        Box::pin(self.read_snapshot(most)).await.map_err(|failure| error_of(failure.status()))
    }

    async fn read_snapshot(&self, most: u64) -> Result<Bytes, CallFailure> {
        let mut connected = self.connected(Purpose::Calls).await.map_err(CallFailure::Dial)?;
        let MemberConnection { sender, endpoint, .. } = &mut connected;
        let body = RequestBody::Once(Some(framed(&Empty {})));
        let mut received = send(sender, endpoint, "Maintenance/Snapshot", body).await?;
        let mut file = BytesMut::new();
        while let Some(piece) = received.next::<SnapshotResponse>().await.map_err(CallFailure::Told)? {
            file.extend_from_slice(&piece.blob);
            if file.len() as u64 > most {
                return Err(CallFailure::Broken(format!("its snapshot has more than {most} bytes")));
            }
        }
        match status_in(received.trailers()) {
            Some(status) => Err(CallFailure::Told(status)),
            None => Ok(file.freeze()),
        }
    }

    /// Leads an etcd to a revision that is to come.
    ///
    /// # Errors
    /// [`StoreError::Etcd`]; that somebody else writes there, too.
    pub async fn fill_to(&self, revision: Revision) -> Result<(), StoreError> {
        let now = self.revision().await?;
        let (mut missing, mut under_way) = (revision.saturating_sub(now), JoinSet::new());
        while missing > 0 || !under_way.is_empty() {
            if missing > 0 && (under_way.len() as u64) < FILLERS {
                missing -= 1;
                let client = self.clone();
                under_way.spawn(async move { client.fill_one().await });
                continue;
            }
            let Some(filled) = under_way.join_next().await else { break };
            filled.map_err(|error| StoreError::Etcd(error.to_string()))??;
        }
        self.must_be_at(revision).await
    }

    async fn fill_one(&self) -> Result<(), StoreError> {
        let answer: Result<HeaderResponse, StoreError> =
            self.call("KV/Put", &filler(), Repeat::Uncertain).await;
        answer.map(drop)
    }

    async fn must_be_at(&self, revision: Revision) -> Result<(), StoreError> {
        match self.revision().await? {
            now if now == revision => Ok(()),
            now => Err(StoreError::Etcd(format!(
                "it is at revision {now} and not {revision}: somebody else writes to it"
            ))),
        }
    }

    /// Writes changes, which all have the next revision.
    ///
    /// # Errors
    /// [`StoreError::Etcd`]; that this is not `revision`, since somebody else writes there, too.
    pub async fn write_at(&self, revision: Revision, changes: &[CopiedChange]) -> Result<(), StoreError> {
        let mut success: Vec<RequestOp> = changes.iter().map(|change| self.operation(change)).collect();
        // To delete what is not there is no revision.
        if changes.iter().all(|change| change.put.is_none()) {
            success.push(RequestOp { put: Nested::some(filler()), ..RequestOp::default() });
        }
        let request = TxnRequest { success: Repeated(success), ..TxnRequest::default() };
        let answer: TxnResponse = self.call("KV/Txn", &request, Repeat::Uncertain).await?;
        if self.see(&answer.header) == revision { Ok(()) } else { self.must_be_at(revision).await }
    }

    /// Writes a change at whatever revision is the next.
    ///
    /// # Errors
    /// [`StoreError::Etcd`].
    pub async fn write_anywhere(&self, change: CopiedChange) -> Result<(), StoreError> {
        let success = Repeated(vec![self.operation(&change)]);
        let request = TxnRequest { success, ..TxnRequest::default() };
        let answer: TxnResponse = self.call("KV/Txn", &request, Repeat::Harmless).await?;
        self.see(&answer.header);
        Ok(())
    }

    fn operation(&self, change: &CopiedChange) -> RequestOp {
        let key = self.outer(&change.key);
        let Some((value, lease)) = change.put.clone() else {
            let delete = DeleteRangeRequest { key, ..DeleteRangeRequest::default() };
            return RequestOp { delete_range: Nested::some(delete), ..RequestOp::default() };
        };
        let lease = lease.map_or(0, |lease| lease.0.cast_signed());
        let put = PutRequest { key, value, lease, ..PutRequest::default() };
        RequestOp { put: Nested::some(put), ..RequestOp::default() }
    }

    /// Takes out the key that has led there.
    ///
    /// # Errors
    /// [`StoreError::Etcd`].
    pub async fn end_filling(&self) -> Result<(), StoreError> {
        let key = Bytes::from_static(FILLER);
        let request = DeleteRangeRequest { key, ..DeleteRangeRequest::default() };
        let answer: Result<HeaderResponse, StoreError> =
            self.call("KV/DeleteRange", &request, Repeat::Harmless).await;
        answer.map(drop)
    }
}

fn filler() -> PutRequest {
    PutRequest { key: Bytes::from_static(FILLER), ..PutRequest::default() }
}
