//! A watch: changes after a revision, each once and in order, whatever becomes of connections and members
//! (`clientv3.Watcher`).

use std::sync::Arc;

use bytes::Bytes;
use etcd::{EventKind, KeyEvent, Revision, StoreError, WatchBatch};
use etcd_api::frames::{ReceivedMessages, framed};
use etcd_api::messages::{self, Empty, Nested, WatchCreateRequest, WatchRequest, WatchResponse};
use etcd_api::status::{EtcdStatus, INTERNAL};
use hyper::body::Incoming;
use tokio::sync::{Notify, mpsc};

use super::ask::{CallFailure, send, status_in};
use super::body::RequestBody;
use super::call::MAX_PAUSE;
use super::client::EtcdClient;
use super::connections::{MemberConnection, Purpose};
use super::convert::{error_of, range_end, signed, unsigned};

/// `mvccpb.Event_DELETE`
const DELETE: i64 = 1;

/// A watch of the keys that begin with a prefix. Where its stream breaks off it goes on with another, from
/// the revision after the last that was told.
#[derive(Debug)]
pub struct EtcdWatch {
    client: EtcdClient,
    prefix: String,
    /// All up to here has been delivered.
    upto: Revision,
    stream: Option<MemberWatch>,
    /// Whether it is known that the stream misses nothing.
    is_whole: bool,
    /// What came of a message that comes in parts. Bound: what etcd takes in one transaction.
    parts: Vec<KeyEvent>,
    /// Of which change etcd said last that it does not know what was there before.
    doubted: Revision,
    /// Told when somebody wants to know how far it is.
    asked: Arc<Notify>,
}

/// An open stream with one watch.
#[derive(Debug)]
struct MemberWatch {
    connected: MemberConnection,
    requests: mpsc::Sender<Bytes>,
    received: ReceivedMessages<Incoming>,
}

/// What a message means.
enum Heard {
    Batch(WatchBatch),
    /// There is more to come first.
    More,
    /// This stream is over; another one goes on.
    Over,
}

/// A change of what etcd does not know any more (upstream's `parseEvent`).
struct UnknownPrevious {
    key: Arc<str>,
    revision: Revision,
}

impl From<UnknownPrevious> for StoreError {
    fn from(UnknownPrevious { key, revision }: UnknownPrevious) -> StoreError {
        StoreError::Etcd(format!("etcd event received with PrevKv=nil (key={key:?}, modRevision={revision})"))
    }
}

impl EtcdClient {
    /// Watches the keys that start with `prefix` for changes after a revision, be it one to come.
    ///
    /// # Errors
    /// [`StoreError::Etcd`] when nobody answers; [`StoreError::Closed`]. That changes are gone is told by
    /// [`EtcdWatch::next`].
    pub async fn watch(&self, prefix: &str, after: Revision) -> Result<EtcdWatch, StoreError> {
        let asked = self.progress().add(prefix);
        let (client, prefix) = (self.clone(), prefix.to_owned());
        let mut watch = EtcdWatch::after(after, client, prefix, asked);
        watch.open().await.map_err(|failure| error_of(failure.status()))?;
        watch.check_whole().await?;
        watch.is_whole = true;
        Ok(watch)
    }
}

impl EtcdWatch {
    fn after(upto: Revision, client: EtcdClient, prefix: String, asked: Arc<Notify>) -> EtcdWatch {
        EtcdWatch {
            client,
            prefix,
            upto,
            stream: None,
            is_whole: false,
            parts: Vec::new(),
            doubted: 0,
            asked,
        }
    }

    /// Waits for changes, or for progress. Can be dropped and called again without losing anything.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when compaction has overtaken the watch; [`StoreError::Etcd`] when etcd
    /// cannot tell what there was before; [`StoreError::Closed`].
    pub async fn next(&mut self) -> Result<WatchBatch, StoreError> {
        let mut closing = self.client.closing();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closed| *closed) => Err(StoreError::Closed),
            batch = self.next_batch() => batch,
        }
    }

    async fn next_batch(&mut self) -> Result<WatchBatch, StoreError> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.open_again().await;
                continue;
            };
            if !self.is_whole {
                match self.check_whole().await {
                    Ok(()) => self.is_whole = true,
                    Err(gone @ (StoreError::Compacted { .. } | StoreError::Closed)) => return Err(gone),
                    Err(_) => self.give_up(),
                }
                continue;
            }
            let message = tokio::select! {
                biased;
                () = self.asked.notified() => {
                    stream.ask_for_progress();
                    continue;
                }
                message = stream.received.next::<WatchResponse>() => message,
            };
            match self.hear(message)? {
                Heard::Batch(batch) => return Ok(batch),
                Heard::More => {}
                Heard::Over => self.give_up(),
            }
        }
    }

    fn hear(&mut self, message: Result<Option<WatchResponse>, EtcdStatus>) -> Result<Heard, StoreError> {
        let response = match message {
            Ok(Some(response)) => response,
            Ok(None) => return Ok(Heard::Over),
            Err(status) => {
                tracing::debug!(%status, prefix = self.prefix, "a watch of etcd broke off");
                return Ok(Heard::Over);
            }
        };
        let current = self.client.see(&response.header);
        if response.compact_revision > 0 {
            let compact_revision = unsigned(response.compact_revision);
            self.client.has_compacted(compact_revision);
            return Err(StoreError::Compacted { compact_revision, current });
        }
        if response.canceled {
            tracing::debug!(reason = response.cancel_reason, prefix = self.prefix, "etcd ended a watch");
            return Ok(Heard::Over);
        }
        if response.created {
            return Ok(Heard::More);
        }
        self.take(response, current)
    }

    fn take(&mut self, response: WatchResponse, current: Revision) -> Result<Heard, StoreError> {
        for event in response.events.0 {
            match self.event(event) {
                Ok(event) => self.parts.extend(event),
                // What was there before is looked up by etcd apart from the change itself, and while it
                // commits it has been seen to miss what is there: it is asked once more.
                Err(unknown) if self.doubted != unknown.revision => {
                    self.doubted = unknown.revision;
                    return Ok(Heard::Over);
                }
                Err(unknown) => return Err(unknown.into()),
            }
        }
        if response.fragment {
            return Ok(Heard::More);
        }
        let events = std::mem::take(&mut self.parts);
        // A message of changes names where etcd stands, which may be further than what it tells.
        let told = events.last().map_or(current, KeyEvent::revision);
        self.upto = self.upto.max(told);
        Ok(Heard::Batch(WatchBatch { events, revision: self.upto }))
    }

    fn event(&self, event: messages::Event) -> Result<Option<KeyEvent>, UnknownPrevious> {
        let kind = if event.kind == DELETE { EventKind::Delete } else { EventKind::Put };
        let Some(kv) = event.kv.0.and_then(|kv| self.client.key_value(*kv)) else { return Ok(None) };
        let is_new = kind == EventKind::Put && kv.create_revision == kv.mod_revision;
        let previous = event.prev_kv.0.and_then(|kv| self.client.key_value(*kv));
        if previous.is_none() && !is_new {
            return Err(UnknownPrevious { revision: kv.mod_revision, key: kv.key });
        }
        Ok(Some(KeyEvent { kind, kv, previous }))
    }

    /// The stream is over: another member may have a longer one.
    fn give_up(&mut self) {
        self.parts.clear();
        if let Some(stream) = self.stream.take() {
            self.client.connections().give_up(&stream.connected);
        }
    }

    /// Whether nothing is missing from a stream that was opened. etcd before 3.5.15 forgets what was deleted
    /// at the very revision up to which it is compacted, and does not tell a watch that begins there (etcd
    /// issue 18089). Such a watch is taken for one that compaction has overtaken.
    async fn check_whole(&self) -> Result<(), StoreError> {
        if self.upto == 0 {
            return Ok(());
        }
        match self.client.get(&self.prefix, Some(self.upto)).await {
            Err(StoreError::FutureRevision { .. }) => Ok(()),
            asked => asked.map(drop),
        }
    }

    /// Goes on, as soon as somebody answers.
    async fn open_again(&mut self) {
        if let Err(failure) = self.open().await {
            let status = failure.status();
            tracing::debug!(%status, prefix = self.prefix, "a watch of etcd cannot go on yet");
            self.client.real().sleep(MAX_PAUSE).await;
        }
    }

    /// Opens a stream; when this returns, the watch is at its place in etcd.
    async fn open(&mut self) -> Result<(), CallFailure> {
        let connected = self.client.connected(Purpose::Watches).await.map_err(CallFailure::Dial)?;
        match self.client.in_time(self.create(connected.clone())).await {
            Ok(stream) => {
                self.stream = Some(stream);
                self.is_whole = false;
            }
            Err(failure) => {
                self.client.connections().give_up(&connected);
                return Err(failure);
            }
        }
        Ok(())
    }

    async fn create(&self, mut connected: MemberConnection) -> Result<MemberWatch, CallFailure> {
        let (requests, body) = RequestBody::open();
        let _ = requests.try_send(framed(&self.create_request()));
        let MemberConnection { sender, endpoint, .. } = &mut connected;
        let mut received = send(sender, endpoint, "Watch/Watch", body).await?;
        let first = received.next::<WatchResponse>().await.map_err(CallFailure::Told)?;
        match first {
            Some(response) if response.created && !response.canceled => {
                self.client.see(&response.header);
                Ok(MemberWatch { connected, requests, received })
            }
            Some(response) => Err(CallFailure::Broken(response.cancel_reason)),
            None => Err(CallFailure::Told(
                status_in(received.trailers())
                    .unwrap_or_else(|| EtcdStatus::new(INTERNAL, "the watch ended at once")),
            )),
        }
    }

    fn create_request(&self) -> WatchRequest {
        let key = self.client.outer(&self.prefix);
        let create = WatchCreateRequest {
            range_end: range_end(&key),
            key,
            start_revision: signed(self.upto + 1),
            progress_notify: true,
            prev_kv: true,
            fragment: true,
            ..WatchCreateRequest::default()
        };
        WatchRequest { create: Nested::some(create), ..WatchRequest::default() }
    }
}

impl MemberWatch {
    /// Without room there is a request under way, which is as good.
    fn ask_for_progress(&self) {
        let progress = Nested::some(Empty::default());
        let _ = self.requests.try_send(framed(&WatchRequest { progress, ..WatchRequest::default() }));
    }
}

impl Drop for EtcdWatch {
    fn drop(&mut self) {
        self.client.progress().remove(&self.prefix, &self.asked);
    }
}

#[cfg(test)]
mod tests {
    use clock::Clock;
    use etcd_api::messages::Repeated;

    use super::*;
    use crate::config::EtcdConfig;

    #[test]
    fn what_etcd_does_not_know_is_asked_once_more() {
        let config = EtcdConfig { endpoints: Vec::new(), tls: None, prefix: "/registry".into() };
        let client = EtcdClient::new(config, Clock::real());
        let mut watch = EtcdWatch::after(0, client, "/registry".to_owned(), Arc::default());
        let changed = |revision| {
            let kv = messages::KeyValue {
                key: "/registry/a".into(),
                create_revision: 1,
                mod_revision: revision,
                version: 2,
                ..messages::KeyValue::default()
            };
            let event = messages::Event { kv: Nested::some(kv), ..messages::Event::default() };
            WatchResponse { events: Repeated(vec![event]), ..WatchResponse::default() }
        };
        for revision in [5, 6] {
            assert!(matches!(watch.take(changed(revision), 6), Ok(Heard::Over)));
            let Err(why) = watch.take(changed(revision), 6) else { panic!("again") };
            let words = format!("PrevKv=nil (key=\"/registry/a\", modRevision={revision})");
            assert!(why.to_string().contains(&words), "{why}");
        }
        assert_eq!((watch.upto, watch.parts.len()), (0, 0));
    }
}
