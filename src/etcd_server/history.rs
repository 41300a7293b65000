//! All that a store knows, as the rows of etcd's bucket `key` (`mvcc.BucketKey`): a row for each change that
//! no compaction has taken away.

use std::collections::{HashMap, HashSet};
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
    /// Which key was changed.
    of: Arc<str>,
    pub(crate) is_deletion: bool,
    /// `mvccpb.KeyValue`
    pub(crate) value: Vec<u8>,
}

impl KeyHistory {
    /// The rows up to a revision that a hash is of. Of those that were compacted, what is over by then is
    /// left out, since another member may have thrown it away; unless there is no key at all by then.
    pub(crate) fn hashed(&self, upto: Revision) -> impl Iterator<Item = &HistoryRow> {
        let rows = || self.rows.iter().filter(move |row| row.revision <= upto);
        let newest: HashMap<&str, &HistoryRow> = rows().map(|row| (&*row.of, row)).collect();
        let kept: HashSet<(Revision, u64)> =
            newest.into_values().filter(|row| !row.is_deletion).map(|row| (row.revision, row.sub)).collect();
        rows().filter(move |row| {
            let is_compacted = row.revision <= self.compact_revision;
            let is_over = is_compacted && !kept.is_empty() && !kept.contains(&(row.revision, row.sub));
            let is_last_of_its_key = row.is_deletion && row.revision == self.compact_revision;
            !(is_over || is_last_of_its_key)
        })
    }
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
        rows.push(HistoryRow { revision, sub, of: changed.key, is_deletion, value });
    }
    Ok(KeyHistory { revision: image.revision(), compact_revision: image.compact_revision(), rows })
}

fn deleted(key: &str) -> Vec<u8> {
    KeyValue { key: keys::bytes(key), ..KeyValue::default() }.encode()
}
