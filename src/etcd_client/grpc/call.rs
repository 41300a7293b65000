//! Calls of whoever answers, and what is done when nobody does (`clientv3/retry_interceptor.go`).

use std::time::Duration;

use bytes::Bytes;
use etcd::StoreError;
use etcd_api::ProtoMessage;
use etcd_api::frames::framed;

use super::ask::{CallFailure, Repeat, ask};
use super::client::EtcdClient;
use super::connections::{MemberConnection, Purpose};
use super::convert::error_of;

/// How long an answer is waited for. etcd itself gives up sooner where it has no quorum.
pub const MAX_CALL_TIME: Duration = Duration::from_secs(10);
/// How long a call is made again that was not sent, or changes nothing; then whoever asked is told.
pub const MAX_RETRY_TIME: Duration = Duration::from_secs(10);
/// A member that has said nothing for so long when whoever asked goes away may be cut off from the others: it
/// takes writes and reads, and answers none until it gives up itself, after seven seconds.
const STALLED: Duration = Duration::from_millis(1500);
/// Between the first two tries; then twice as long each time, ...
const FIRST_PAUSE: Duration = Duration::from_millis(25);
/// ... up to this.
pub(crate) const MAX_PAUSE: Duration = Duration::from_millis(500);

impl EtcdClient {
    /// Calls a method of a service, as `KV/Range`.
    pub(crate) async fn call<A: ProtoMessage>(
        &self,
        method: &str,
        request: &impl ProtoMessage,
        repeat: Repeat,
    ) -> Result<A, StoreError> {
        let message = framed(request);
        let until = self.real().elapsed() + MAX_RETRY_TIME;
        let mut pause = FIRST_PAUSE;
        loop {
            if self.is_closed() {
                return Err(StoreError::Closed);
            }
            let failure = match Box::pin(self.try_call(method, message.clone())).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if !failure.may_pass(repeat) || self.real().elapsed() + pause >= until {
                return Err(error_of(failure.status()));
            }
            tracing::debug!(method, ?failure, "etcd is asked again");
            self.clock().pause_outside(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn try_call<A: ProtoMessage>(&self, method: &str, message: Bytes) -> Result<A, CallFailure> {
        let mut connected = self.connected(Purpose::Calls).await.map_err(CallFailure::Dial)?;
        let mut pending = PendingCall {
            client: self,
            connected: connected.clone(),
            since: self.real().elapsed(),
            is_over: false,
        };
        let MemberConnection { sender, endpoint, .. } = &mut connected;
        let answer = self.in_time(ask(sender, endpoint, method, message)).await;
        pending.is_over = true;
        if answer.as_ref().is_err_and(CallFailure::is_of_member) {
            self.connections().give_up(&connected);
        }
        answer
    }

    /// What is answered within [`MAX_CALL_TIME`].
    pub(crate) async fn in_time<A>(
        &self,
        asking: impl Future<Output = Result<A, CallFailure>>,
    ) -> Result<A, CallFailure> {
        let asked = self.clock().timeout_outside(MAX_CALL_TIME, asking).await;
        asked.unwrap_or_else(|_| Err(CallFailure::Broken("context deadline exceeded".to_owned())))
    }
}

/// A call that has no answer yet. Whoever asked may go away before there is one, as a client whose patience
/// ends: then nobody would ever learn that this member is silent, and so everybody would go on asking it.
struct PendingCall<'a> {
    client: &'a EtcdClient,
    connected: MemberConnection,
    since: Duration,
    is_over: bool,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.client.real().elapsed() - self.since >= STALLED {
            self.client.connections().give_up(&self.connected);
        }
    }
}
