//! How the changes of one revision are written in the log: one change as a record, several as the records
//! of a group, each behind its length.

use std::sync::Arc;

use bytes::Bytes;

use super::{EventKind, KeyEvent, KeyValue, LeaseId, Revision, StoreError};

/// kind, create_revision, version, revision of the previous change, lease, length of the key.
const HEADER_LEN: usize = 1 + 4 * 8 + 4;
const PUT: u8 = 1;
const DELETE: u8 = 2;
/// Several changes at one revision, of a key each.
const GROUP: u8 = 3;
/// Of the length before each record of a group.
const LENGTH_LEN: usize = 4;

/// A change as it stands in the log. Key and value are slices of one piece of memory.
#[derive(Debug)]
pub(super) struct LogRecord {
    pub kind: EventKind,
    pub create_revision: Revision,
    pub version: u64,
    /// The revision of what the change replaced or deleted; 0 if there was nothing.
    pub previous: Revision,
    pub lease: Option<LeaseId>,
    bytes: Bytes,
    key_len: usize,
}

/// The bytes of an event. Of what was there before, only the revision is written.
pub(super) fn encode(event: &KeyEvent) -> Vec<u8> {
    let kv = &event.kv;
    let mut bytes = Vec::with_capacity(HEADER_LEN + kv.key.len() + kv.value.len());
    bytes.push(match event.kind {
        EventKind::Put => PUT,
        EventKind::Delete => DELETE,
    });
    let previous = event.previous.as_ref().map_or(0, |previous| previous.mod_revision);
    for number in [kv.create_revision, kv.version, previous, kv.lease.map_or(0, |lease| lease.0)] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let key_len = u32::try_from(kv.key.len()).expect("the writer refuses longer keys");
    bytes.extend_from_slice(&key_len.to_be_bytes());
    bytes.extend_from_slice(kv.key.as_bytes());
    bytes.extend_from_slice(&kv.value);
    bytes
}

/// The bytes of all changes of a revision.
pub(super) fn encode_all<'a>(events: impl ExactSizeIterator<Item = &'a KeyEvent>) -> Vec<u8> {
    let mut events = events.peekable();
    if events.len() == 1
        && let Some(only) = events.peek()
    {
        return encode(only);
    }
    group(events.map(encode))
}

fn group(records: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = vec![GROUP];
    for record in records {
        let length = u32::try_from(record.len()).expect("the writer refuses longer records");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&record);
    }
    bytes
}

/// The records of a revision, one for each of its changes.
pub(super) fn members(revision: Revision, bytes: &Bytes) -> Result<Vec<Bytes>, StoreError> {
    if bytes.first() != Some(&GROUP) {
        return Ok(vec![bytes.clone()]);
    }
    let damaged = || StoreError::Corrupt(format!("the group of revision {revision} cannot be read"));
    let mut rest = bytes.slice(1..);
    let mut members = Vec::new();
    while !rest.is_empty() {
        let length: [u8; LENGTH_LEN] =
            rest.get(..LENGTH_LEN).and_then(|length| length.try_into().ok()).ok_or_else(damaged)?;
        let length = usize::try_from(u32::from_be_bytes(length)).map_err(|_| damaged())?;
        rest = rest.slice(LENGTH_LEN..);
        if rest.len() < length {
            return Err(damaged());
        }
        members.push(rest.split_to(length));
    }
    Ok(members)
}

/// The bytes with only those changes of a group whose keys are kept; None if none is.
pub(super) fn retain(
    revision: Revision,
    bytes: &Bytes,
    is_kept: impl Fn(&str) -> bool,
) -> Result<Option<Bytes>, StoreError> {
    let mut kept = Vec::new();
    let members = members(revision, bytes)?;
    for member in &members {
        let record = LogRecord::decode(revision, member.clone())?;
        if record.key().is_some_and(&is_kept) {
            kept.push(member.to_vec());
        }
    }
    Ok(match kept.len() {
        0 => None,
        all if all == members.len() => Some(bytes.clone()),
        _ => Some(group(kept.into_iter()).into()),
    })
}

/// The value within the bytes of a record whose key has this length.
pub(super) fn value_of(record: &Bytes, key_len: usize) -> Bytes {
    record.slice(HEADER_LEN + key_len..)
}

/// Of the bytes of a record: what a promise is made of.
pub(super) fn checksum(record: &[u8]) -> u32 {
    crc32fast::hash(record)
}

impl LogRecord {
    /// The change of one key, out of all those of a revision.
    pub(super) fn of_key(
        revision: Revision,
        bytes: Bytes,
        key: &str,
    ) -> Result<Option<LogRecord>, StoreError> {
        if bytes.first() != Some(&GROUP) {
            return LogRecord::decode(revision, bytes).map(Some);
        }
        for member in members(revision, &bytes)? {
            let record = LogRecord::decode(revision, member)?;
            if record.key() == Some(key) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Reads what [`encode`] wrote.
    pub(super) fn decode(revision: Revision, bytes: Bytes) -> Result<LogRecord, StoreError> {
        let damaged = || StoreError::Corrupt(format!("the record of revision {revision} cannot be read"));
        if bytes.len() < HEADER_LEN {
            return Err(damaged());
        }
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let kind = match bytes[0] {
            PUT => EventKind::Put,
            DELETE => EventKind::Delete,
            _ => return Err(damaged()),
        };
        let key_len: [u8; 4] = bytes[HEADER_LEN - 4..HEADER_LEN].try_into().expect("four bytes");
        let key_len = usize::try_from(u32::from_be_bytes(key_len)).map_err(|_| damaged())?;
        if bytes.len() - HEADER_LEN < key_len {
            return Err(damaged());
        }
        let lease = Some(LeaseId(number(25))).filter(|lease| lease.0 != 0);
        let (create_revision, version, previous) = (number(1), number(9), number(17));
        Ok(LogRecord { kind, create_revision, version, previous, lease, bytes, key_len })
    }

    /// The key; None if it is not UTF-8, which the writer never writes.
    pub(super) fn key(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes[HEADER_LEN..HEADER_LEN + self.key_len]).ok()
    }

    /// The key and value after the change.
    pub(super) fn into_kv(self, key: Arc<str>, mod_revision: Revision) -> KeyValue {
        let LogRecord { create_revision, version, lease, .. } = self;
        let value = value_of(&self.bytes, self.key_len);
        KeyValue { key, value, create_revision, mod_revision, version, lease }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_garbage_is_refused() {
        let key: Arc<str> = "/registry/pods/default/web".into();
        let lease = Some(LeaseId(9));
        let value = Bytes::from_static(b"value");
        let kv = KeyValue { key: key.clone(), value, create_revision: 3, mod_revision: 7, version: 2, lease };
        let previous = Some(KeyValue { mod_revision: 5, ..kv.clone() });
        let bytes = Bytes::from(encode(&KeyEvent { kind: EventKind::Put, kv: kv.clone(), previous }));

        let record = LogRecord::decode(7, bytes.clone()).unwrap();
        assert_eq!((record.kind, record.previous, record.key()), (EventKind::Put, 5, Some(&*key)));
        assert_eq!(record.into_kv(key, 7), kv);
        for cut in 0..bytes.len() - kv.value.len() {
            assert!(LogRecord::decode(7, bytes.slice(..cut)).is_err(), "cut at {cut}");
        }
        assert!(LogRecord::decode(7, Bytes::from_static(&[9; 64])).is_err());
    }

    #[test]
    fn a_group_has_a_record_of_each_key_and_loses_those_that_nobody_keeps() {
        let event = |key: &str| {
            let value = Bytes::copy_from_slice(key.as_bytes());
            let key = key.into();
            let kv = KeyValue { key, value, create_revision: 7, mod_revision: 7, version: 1, lease: None };
            KeyEvent { kind: EventKind::Put, kv, previous: None }
        };
        let events = [event("/a"), event("/b"), event("/c")];
        let bytes = Bytes::from(encode_all(events.iter()));
        let members = members(7, &bytes).unwrap();
        assert_eq!(members.len(), 3);
        for (event, member) in events.iter().zip(members) {
            let record = LogRecord::of_key(7, bytes.clone(), &event.kv.key).unwrap().unwrap();
            assert_eq!(record.into_kv(event.kv.key.clone(), 7), event.kv);
            assert_eq!(member, encode(event));
        }
        assert!(LogRecord::of_key(7, bytes.clone(), "/d").unwrap().is_none());
        let kept = retain(7, &bytes, |key| key != "/b").unwrap().unwrap();
        assert!(LogRecord::of_key(7, kept.clone(), "/b").unwrap().is_none());
        assert!(LogRecord::of_key(7, kept, "/c").unwrap().is_some());
        assert_eq!(retain(7, &bytes, |_| false).unwrap(), None);
        assert_eq!(retain(7, &bytes, |_| true).unwrap(), Some(bytes.clone()));
        for cut in 2..bytes.len() {
            let is_between = [1 + 45, 1 + 90].contains(&cut);
            assert_eq!(super::members(7, &bytes.slice(..cut)).is_ok(), is_between, "cut at {cut}");
        }
        assert_eq!(encode_all(events[..1].iter()), encode(&events[0]));
    }
}
