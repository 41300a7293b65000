//! All that a store knows, as the rows of etcd's bucket `key` (`mvcc.BucketKey`): a row for each change that
//! no compaction has taken away.

use std::sync::Arc;

use bytes::BufMut;
use etcd::{EventKind, Kv, LoggedChange, Revision};

use crate::keys;
use crate::messages::KeyValue;
use crate::range::shown;
use crate::status::EtcdStatus;
use crate::values::Values;
use crate::wire::ProtoMessage;

/// What a store knows at one revision.
pub(crate) struct KeyHistory {
    pub(crate) revision: Revision,
    pub(crate) compact_revision: Revision,
    /// In the order of their keys.
    pub(crate) rows: Vec<HistoryRow>,
}

/// One change.
pub(crate) struct HistoryRow {
    pub(crate) revision: Revision,
    /// Its place among those of its revision.
    sub: u64,
    pub(crate) is_deletion: bool,
    /// `mvccpb.KeyValue`
    pub(crate) value: Vec<u8>,
}

impl HistoryRow {
    /// As etcd writes it: `main_sub`, and a `t` behind a deletion.
    pub(crate) fn key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(18);
        key.put_u64(self.revision);
        key.push(b'_');
        key.put_u64(self.sub);
        if self.is_deletion {
            key.push(b't');
        }
        key
    }
}

/// Reads everything.
pub(crate) fn read(kv: &Kv, values: &Arc<dyn Values>) -> Result<KeyHistory, EtcdStatus> {
    let image = kv.image()?;
    let mut rows: Vec<HistoryRow> = Vec::new();
    for change in image.changes() {
        let LoggedChange { kind, kv: changed } = change?;
        let revision = changed.mod_revision;
        let sub = rows.last().filter(|last| last.revision == revision).map_or(0, |last| last.sub + 1);
        let is_deletion = kind == EventKind::Delete;
        let value = if is_deletion { deleted(&changed.key) } else { shown(kv, &**values, &changed).encode() };
        rows.push(HistoryRow { revision, sub, is_deletion, value });
    }
    Ok(KeyHistory { revision: image.revision(), compact_revision: image.compact_revision(), rows })
}

fn deleted(key: &str) -> Vec<u8> {
    KeyValue { key: keys::bytes(key), ..KeyValue::default() }.encode()
}
