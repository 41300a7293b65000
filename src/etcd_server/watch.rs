//! `Watch`: any number of watches on one stream (`v3rpc/watch.go`).
//!
//! A stream is read and written in turns: an answer is made when the client has taken those before it. So a
//! client that reads nothing is told nothing, and costs no more than positions in the log; when compaction
//! overtakes one, its watch is cancelled and says so.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use etcd::{EventKind, Kv, StoreError, WatchBatch};
use futures::{FutureExt, stream};
use http::Response;
use tokio::sync::Notify;

use crate::frames::{MAX_RECEIVED_BYTES, Received, framed};
use crate::keys;
use crate::messages::{Event, KeyValue, Nested, Repeated, WatchCreateRequest, WatchRequest, WatchResponse};
use crate::metrics::OneOf;
use crate::range::shown;
use crate::server::{EtcdServer, header, signed};
use crate::status::{EtcdError, EtcdStatus};
use crate::unary::{failed, streamed};
use crate::watched::KeysWatch;
use crate::wire::ProtoMessage;

/// So many watches are on one stream at most; a further one is answered with a cancellation that says so.
pub const MAX_WATCHES: usize = 10_000;
/// What is answered instead of a watch's number when there is none (`clientv3.InvalidWatchID`).
const NO_WATCH: i64 = -1;
const PUT: i64 = 0;
const DELETE: i64 = 1;

/// One watch.
struct StreamedWatch {
    watch: KeysWatch,
    /// Nothing older is told.
    start: u64,
    filters: Vec<i64>,
    prev_kv: bool,
    fragment: bool,
    progress_notify: bool,
    /// Nothing was told since progress was last thought of.
    is_quiet: bool,
    _counted: OneOf,
}

/// A stream of watches.
struct StreamedWatches {
    server: EtcdServer,
    kv: Kv,
    received: Received,
    watches: BTreeMap<i64, StreamedWatch>,
    /// The one that was told last: the others come first.
    last_told: i64,
    next_id: i64,
    /// Answers that are made and not sent: those of one request, or of one batch of one watch.
    answers: VecDeque<Bytes>,
    notify: Arc<Notify>,
    /// The client has asked how far all watches are.
    progress_wanted: bool,
    /// When quiet watches are told how far they are.
    next_progress: Duration,
    is_over: bool,
    _counted: OneOf,
}

pub(crate) fn serve(server: &EtcdServer, body: Body) -> Response<Body> {
    let kv = match server.kv() {
        Ok(kv) => kv,
        Err(status) => return failed(&status),
    };
    let watches = StreamedWatches {
        kv,
        received: Received::new(body),
        watches: BTreeMap::new(),
        last_told: NO_WATCH,
        next_id: 0,
        answers: VecDeque::new(),
        notify: Arc::default(),
        progress_wanted: false,
        next_progress: server.clock().elapsed() + server.progress_interval(),
        is_over: false,
        _counted: server.metrics().stream(),
        server: server.clone(),
    };
    streamed(stream::unfold(watches, |mut watches| async move {
        let answer = watches.next().await?;
        Some((answer, watches))
    }))
}

impl StreamedWatches {
    async fn next(&mut self) -> Option<Result<Bytes, EtcdStatus>> {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return Some(Ok(answer));
            }
            if self.is_over {
                return None;
            }
            if let Err(status) = self.turn().await {
                self.is_over = true;
                return Some(Err(status));
            }
        }
    }

    /// Does one thing: takes a request, tells something, or waits.
    async fn turn(&mut self) -> Result<(), EtcdStatus> {
        // What the client wants comes first: else it could not stop a watch that never ends.
        if let Some(request) = self.received.next::<WatchRequest>().now_or_never() {
            return self.take(request?);
        }
        if self.tell_next()? || self.tell_progress()? {
            return Ok(());
        }
        let clock = self.server.clock().clone();
        tokio::select! {
            request = self.received.next::<WatchRequest>() => self.take(request?),
            () = self.notify.notified() => self.check_open(),
            () = clock.sleep_until(self.next_progress) => self.tick(),
        }
    }

    fn take(&mut self, request: Option<WatchRequest>) -> Result<(), EtcdStatus> {
        let Some(WatchRequest { create, cancel, progress }) = request else {
            self.is_over = true;
            return Ok(());
        };
        if let Some(request) = create.0 {
            self.create(*request);
        } else if let Some(request) = cancel.0 {
            let id = request.watch_id;
            if self.watches.remove(&id).is_some() {
                let revision = self.kv.revision();
                self.answer(revision, WatchResponse { watch_id: id, canceled: true, ..Default::default() });
            }
        } else if progress.0.is_some() {
            self.progress_wanted = true;
        }
        Ok(())
    }

    fn create(&mut self, request: WatchCreateRequest) {
        let revision = self.kv.revision();
        match self.begin(request, revision) {
            Ok(watch_id) => {
                self.answer(revision, WatchResponse { watch_id, created: true, ..Default::default() });
            }
            Err(RefusedWatch { id, created, compact_revision, reason }) => {
                let refused = |created, canceled| WatchResponse {
                    watch_id: id,
                    created,
                    canceled,
                    ..WatchResponse::default()
                };
                if created {
                    self.answer(revision, refused(true, false));
                }
                let cancel_reason = reason.to_owned();
                let refused = WatchResponse { compact_revision, cancel_reason, ..refused(!created, true) };
                self.answer(revision, refused);
            }
        }
    }

    fn begin(&mut self, request: WatchCreateRequest, revision: u64) -> Result<i64, RefusedWatch> {
        let refuse = |reason| RefusedWatch { id: NO_WATCH, created: false, compact_revision: 0, reason };
        if request.start_revision < 0 {
            return Err(refuse(EtcdError::Compacted.words()));
        }
        if self.watches.len() >= MAX_WATCHES {
            return Err(refuse("kubarium: too many watches on one stream"));
        }
        let first: &[u8] = if request.key.is_empty() { b"\0" } else { &request.key };
        let spans = keys::span(first, &request.range_end).ok_or(refuse("mvcc: watcher range is empty"))?;
        let id = self
            .free_id(request.watch_id)
            .ok_or(refuse("mvcc: duplicate watch ID provided on the WatchStream"))?;
        let start = u64::try_from(request.start_revision).unwrap_or(0);
        // What is to come later is left out when it is read.
        let after = if start == 0 { revision } else { (start - 1).min(revision) };
        let watch = match KeysWatch::begin(&self.kv, spans, after, &self.notify) {
            Ok(watch) => watch,
            Err(StoreError::Compacted { compact_revision, .. }) => {
                let compact_revision = signed(compact_revision);
                return Err(RefusedWatch { id, created: true, compact_revision, reason: "" });
            }
            Err(_) => return Err(refuse(EtcdError::Stopped.words())),
        };
        let WatchCreateRequest { filters, prev_kv, fragment, progress_notify, .. } = request;
        let (is_quiet, _counted) = (true, self.server.metrics().watcher());
        let watching =
            StreamedWatch { watch, start, filters, prev_kv, fragment, progress_notify, is_quiet, _counted };
        self.watches.insert(id, watching);
        Ok(id)
    }

    /// The number that the client wants; 0 is any.
    fn free_id(&mut self, wanted: i64) -> Option<i64> {
        if wanted != 0 {
            return (!self.watches.contains_key(&wanted)).then_some(wanted);
        }
        while self.watches.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        let id = self.next_id;
        self.next_id += 1;
        Some(id)
    }

    /// Reads one batch of the next watch that has something; whether there was one.
    fn tell_next(&mut self) -> Result<bool, EtcdStatus> {
        let has_more = |(_, watching): &(&i64, &StreamedWatch)| watching.watch.may_have_more();
        let later = self.watches.range(self.last_told + 1..).find(has_more);
        let found = later.or_else(|| self.watches.iter().find(has_more)).map(|(id, _)| *id);
        match found {
            Some(id) => self.tell(id).map(|_| true),
            None => Ok(false),
        }
    }

    /// Tells what a watch has; whether that was anything.
    fn tell(&mut self, id: i64) -> Result<bool, EtcdStatus> {
        let Some(watching) = self.watches.get_mut(&id) else { return Ok(false) };
        self.last_told = id;
        match watching.watch.try_next() {
            Ok(None) => Ok(false),
            Ok(Some(batch)) => {
                watching.is_quiet &= batch.events.is_empty();
                self.tell_batch(id, &batch);
                Ok(true)
            }
            Err(StoreError::Compacted { compact_revision, .. }) => {
                self.watches.remove(&id);
                let compact_revision = signed(compact_revision);
                let gone =
                    WatchResponse { watch_id: id, canceled: true, compact_revision, ..Default::default() };
                self.answer(self.kv.revision(), gone);
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn tell_batch(&mut self, id: i64, batch: &WatchBatch) {
        let Some(watching) = self.watches.get(&id) else { return };
        let events = batch.events.iter().filter(|event| watching.wants(event));
        let events: Vec<Event> = events.map(|event| self.event(watching, event)).collect();
        if events.is_empty() {
            return;
        }
        let limit = if watching.fragment { MAX_RECEIVED_BYTES } else { usize::MAX };
        let mut pieces = split(events, limit).into_iter().peekable();
        while let Some(events) = pieces.next() {
            let fragment = pieces.peek().is_some();
            let events = Repeated(events);
            self.answer(
                batch.revision,
                WatchResponse { watch_id: id, fragment, events, ..Default::default() },
            );
        }
    }

    fn event(&self, watching: &StreamedWatch, event: &etcd::KeyEvent) -> Event {
        let values = &**self.server.values();
        let kv = match event.kind {
            EventKind::Put => shown(&self.kv, values, &event.kv),
            EventKind::Delete => KeyValue {
                key: keys::bytes(&event.kv.key),
                mod_revision: signed(event.kv.mod_revision),
                ..KeyValue::default()
            },
        };
        let previous = event.previous.as_ref().filter(|_| watching.prev_kv);
        let prev_kv = previous.map(|previous| Box::new(shown(&self.kv, values, previous)));
        Event { kind: kind_of(event), kv: Nested::some(kv), prev_kv: Nested(prev_kv) }
    }

    /// Says how far all watches are, if that is wanted and all have told what they had.
    fn tell_progress(&mut self) -> Result<bool, EtcdStatus> {
        if !std::mem::take(&mut self.progress_wanted) || self.watches.is_empty() {
            return Ok(false);
        }
        let ids: Vec<i64> = self.watches.keys().copied().collect();
        for id in ids {
            if self.tell(id)? {
                self.progress_wanted = true;
                return Ok(true);
            }
        }
        let delivered = self.watches.values().map(|watching| watching.watch.delivered()).min();
        let progress = WatchResponse { watch_id: NO_WATCH, ..Default::default() };
        self.answer(delivered.unwrap_or_default(), progress);
        Ok(true)
    }

    /// Tells those that want it, and were told nothing for an interval, how far they are.
    fn tick(&mut self) -> Result<(), EtcdStatus> {
        self.next_progress = self.server.clock().elapsed() + self.server.progress_interval();
        let wanted = self.watches.iter_mut().filter(|(_, watching)| watching.progress_notify);
        let quiet: Vec<i64> = wanted
            .filter_map(|(id, watching)| std::mem::replace(&mut watching.is_quiet, true).then_some(*id))
            .collect();
        for id in quiet {
            if !self.tell(id)?
                && let Some(watching) = self.watches.get(&id)
            {
                let revision = watching.watch.delivered();
                self.answer(revision, WatchResponse { watch_id: id, ..Default::default() });
            }
        }
        Ok(())
    }

    /// Somebody was woken: if no watch has anything, the store may have been closed.
    fn check_open(&mut self) -> Result<(), EtcdStatus> {
        if self.watches.values().any(|watching| watching.watch.may_have_more()) {
            return Ok(());
        }
        let first = self.watches.keys().next().copied();
        first.map_or(Ok(()), |id| self.tell(id).map(drop))
    }

    fn answer(&mut self, revision: u64, response: WatchResponse) {
        self.answers.push_back(framed(&WatchResponse { header: header(revision), ..response }));
    }
}

/// Why there is no watch.
struct RefusedWatch {
    id: i64,
    /// It is told that it was made before it is told that it is cancelled.
    created: bool,
    compact_revision: i64,
    reason: &'static str,
}

impl StreamedWatch {
    fn wants(&self, event: &etcd::KeyEvent) -> bool {
        event.revision() >= self.start && !self.filters.contains(&kind_of(event))
    }
}

/// Filters have the same numbers.
fn kind_of(event: &etcd::KeyEvent) -> i64 {
    match event.kind {
        EventKind::Put => PUT,
        EventKind::Delete => DELETE,
    }
}

/// Pieces of at most so many bytes, of one event at least.
fn split(events: Vec<Event>, limit: usize) -> Vec<Vec<Event>> {
    let mut pieces = vec![Vec::new()];
    let mut bytes = 0;
    for event in events {
        let length = if limit == usize::MAX { 0 } else { event.encode().len() };
        bytes += length;
        if bytes > limit && pieces.last().is_some_and(|piece| !piece.is_empty()) {
            pieces.push(Vec::new());
            bytes = length;
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(event);
        }
    }
    pieces
}
