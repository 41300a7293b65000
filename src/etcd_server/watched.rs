//! What a watch reads: texts and others are two reads of the log, told as one, revision by revision.

use std::collections::VecDeque;
use std::sync::Arc;

use etcd::{KeyEvent, Kv, Revision, StoreError, Watch, WatchBatch};
use tokio::sync::Notify;

use crate::keys::KeySpans;

/// A watch of keys that lie side by side, whatever bytes they are.
#[derive(Debug)]
pub(crate) struct KeysWatch {
    texts: WatchedPart,
    others: Option<WatchedPart>,
}

#[derive(Debug)]
struct WatchedPart {
    watch: Watch,
    /// What is read, and waits for the other part to be as far: at most one batch.
    waiting: VecDeque<KeyEvent>,
}

impl WatchedPart {
    fn read(&mut self) -> Result<(), StoreError> {
        if self.waiting.is_empty()
            && let Some(batch) = self.watch.try_next()?
        {
            self.waiting.extend(batch.events);
        }
        Ok(())
    }

    fn take(&mut self, upto: Revision) -> impl Iterator<Item = KeyEvent> {
        let count = self.waiting.partition_point(|event| event.revision() <= upto);
        self.waiting.drain(..count)
    }
}

impl KeysWatch {
    pub(crate) fn begin(
        kv: &Kv,
        spans: KeySpans<'_>,
        after: Revision,
        notify: &Arc<Notify>,
    ) -> Result<KeysWatch, StoreError> {
        let part = |span| {
            let watch = kv.watch_notifying(span, after, notify.clone())?;
            Ok(WatchedPart { watch, waiting: VecDeque::new() })
        };
        Ok(KeysWatch { texts: part(spans.texts)?, others: spans.others.map(part).transpose()? })
    }

    fn parts(&self) -> impl Iterator<Item = &WatchedPart> {
        std::iter::once(&self.texts).chain(&self.others)
    }

    /// As [`Watch::may_have_more`].
    pub(crate) fn may_have_more(&self) -> bool {
        self.parts().any(|part| part.watch.may_have_more() || !part.waiting.is_empty())
    }

    /// As [`Watch::delivered`], when there was nothing more.
    pub(crate) fn delivered(&self) -> Revision {
        self.parts().map(|part| part.watch.delivered()).min().unwrap_or_default()
    }

    /// As [`Watch::try_next`].
    pub(crate) fn try_next(&mut self) -> Result<Option<WatchBatch>, StoreError> {
        let Some(others) = &mut self.others else { return self.texts.watch.try_next() };
        loop {
            self.texts.read()?;
            others.read()?;
            let revision = self.texts.watch.delivered().min(others.watch.delivered());
            let mut events: Vec<KeyEvent> = self.texts.take(revision).chain(others.take(revision)).collect();
            if !events.is_empty() {
                events.sort_by_key(KeyEvent::revision);
                return Ok(Some(WatchBatch { events, revision }));
            }
            // One that waits is told when the other one, which has nothing, is read once more.
            if self.texts.waiting.is_empty() && others.waiting.is_empty() {
                return Ok(None);
            }
        }
    }
}
