//! What servers of text protocols keep for all their connections: texts, lists, hashes and sets, each for as
//! long as it is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// So much a server keeps; whoever would store more is told that its memory is full.
pub const MAX_STORED_BYTES: usize = 16 << 20;

/// What it takes to keep a value or a part of one, beside itself.
const ENTRY_BYTES: usize = 64;

/// What a server keeps for all its connections.
#[derive(Debug, Default)]
pub struct TextStore {
    values: BTreeMap<Vec<u8>, KeptValue>,
    bytes: usize,
    now: Duration,
    /// Nothing ends before that.
    next_end: Option<Duration>,
}

/// What is kept under a key.
#[derive(Debug)]
struct KeptValue {
    value: StoredValue,
    bytes: usize,
    until: Option<Duration>,
}

/// A value, and its kind.
#[derive(Debug)]
pub(crate) enum StoredValue {
    Text(Vec<u8>),
    List(VecDeque<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Members(BTreeSet<Vec<u8>>),
}

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreRefusal {
    OtherKind,
    Full,
    NoNumber,
}

impl StoredValue {
    /// As `TYPE` names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            StoredValue::Text(_) => "string",
            StoredValue::List(_) => "list",
            StoredValue::Hash(_) => "hash",
            StoredValue::Members(_) => "set",
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            StoredValue::Text(_) => false,
            StoredValue::List(list) => list.is_empty(),
            StoredValue::Hash(hash) => hash.is_empty(),
            StoredValue::Members(members) => members.is_empty(),
        }
    }
}

impl TextStore {
    /// The time is that; what was to end until then is gone.
    pub fn advance(&mut self, now: Duration) {
        self.now = now;
        if self.next_end.is_none_or(|end| end > now) {
            return;
        }
        let is_over = |kept: &KeptValue| kept.until.is_some_and(|until| until <= now);
        self.values.retain(|_, kept| !is_over(kept));
        self.bytes = self.values.values().map(|kept| kept.bytes).sum();
        self.next_end = self.values.values().filter_map(|kept| kept.until).min();
    }

    pub(crate) fn count(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = TextStore { now: self.now, ..TextStore::default() };
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.values.keys()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&StoredValue> {
        self.values.get(key).map(|kept| &kept.value)
    }

    /// The text of a key; nothing where there is none, or another value.
    pub(crate) fn text(&self, key: &[u8]) -> Option<&Vec<u8>> {
        match self.get(key)? {
            StoredValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether there was room. It is kept for good.
    pub(crate) fn set(&mut self, key: &[u8], text: Vec<u8>) -> bool {
        let size = entry_bytes(key, &text);
        let old = self.values.get(key).map_or(0, |kept| kept.bytes);
        let bytes = self.bytes - old + size;
        if bytes > MAX_STORED_BYTES {
            return false;
        }
        self.bytes = bytes;
        let kept = KeptValue { value: StoredValue::Text(text), bytes: size, until: None };
        self.values.insert(key.to_vec(), kept);
        true
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let removed = self.values.remove(key);
        self.bytes -= removed.as_ref().map_or(0, |kept| kept.bytes);
        removed.is_some()
    }

    /// Another key for a value; whether there was one.
    pub(crate) fn rename(&mut self, key: &[u8], to: &[u8]) -> bool {
        let Some(mut kept) = self.values.remove(key) else { return false };
        self.bytes -= kept.bytes;
        self.remove(to);
        kept.bytes = kept.bytes - key.len() + to.len();
        self.bytes += kept.bytes;
        self.values.insert(to.to_vec(), kept);
        true
    }

    /// The sum, which is kept as long as what was there.
    pub(crate) fn add(&mut self, key: &[u8], count: i64) -> Result<i64, StoreRefusal> {
        let old = match self.get(key) {
            None => 0,
            Some(StoredValue::Text(text)) => signed(text).ok_or(StoreRefusal::NoNumber)?,
            Some(_) => return Err(StoreRefusal::OtherKind),
        };
        let sum = old.checked_add(count).ok_or(StoreRefusal::NoNumber)?;
        let until = self.until(key);
        if !self.set(key, sum.to_string().into_bytes()) {
            return Err(StoreRefusal::Full);
        }
        self.keep_until(key, until);
        Ok(sum)
    }

    /// How long a key is kept yet; nothing where that is for good.
    pub(crate) fn left(&self, key: &[u8]) -> Option<Duration> {
        self.until(key).map(|until| until.saturating_sub(self.now))
    }

    /// From now on a key is kept for so long, or for good.
    pub(crate) fn keep_for(&mut self, key: &[u8], time: Option<Duration>) {
        self.keep_until(key, time.map(|time| self.now.saturating_add(time)));
    }

    pub(crate) fn until(&self, key: &[u8]) -> Option<Duration> {
        self.values.get(key).and_then(|kept| kept.until)
    }

    pub(crate) fn keep_until(&mut self, key: &[u8], until: Option<Duration>) {
        if let Some(kept) = self.values.get_mut(key) {
            kept.until = until;
            let ends = self.next_end.into_iter().chain(until);
            self.next_end = ends.min();
        }
    }

    /// The list of a key, with room for these.
    pub(crate) fn list(
        &mut self,
        key: &[u8],
        more: &[Vec<u8>],
    ) -> Result<&mut VecDeque<Vec<u8>>, StoreRefusal> {
        let bytes = more.iter().map(|text| part_bytes(text)).sum();
        match self.grown(key, bytes, || StoredValue::List(VecDeque::new()))? {
            StoredValue::List(list) => Ok(list),
            _ => Err(StoreRefusal::OtherKind),
        }
    }

    /// Whether the field is a new one.
    pub(crate) fn set_field(&mut self, key: &[u8], field: &[u8], text: &[u8]) -> Result<bool, StoreRefusal> {
        let bytes = part_bytes(field) + text.len();
        let value = self.grown(key, bytes, || StoredValue::Hash(BTreeMap::new()))?;
        let StoredValue::Hash(hash) = value else { return Err(StoreRefusal::OtherKind) };
        let old = hash.insert(field.to_vec(), text.to_vec());
        let Some(old) = old else { return Ok(true) };
        self.shrunk(key, part_bytes(field) + old.len());
        Ok(false)
    }

    /// Whether it was none of them.
    pub(crate) fn add_member(&mut self, key: &[u8], member: &[u8]) -> Result<bool, StoreRefusal> {
        let bytes = part_bytes(member);
        let value = self.grown(key, bytes, || StoredValue::Members(BTreeSet::new()))?;
        let StoredValue::Members(members) = value else { return Err(StoreRefusal::OtherKind) };
        let is_new = members.insert(member.to_vec());
        if !is_new {
            self.shrunk(key, bytes);
        }
        Ok(is_new)
    }

    /// One from an end of a list.
    pub(crate) fn pop(&mut self, key: &[u8], is_first: bool) -> Option<Vec<u8>> {
        let StoredValue::List(list) = &mut self.values.get_mut(key)?.value else { return None };
        let popped = if is_first { list.pop_front() } else { list.pop_back() }?;
        self.shrunk(key, part_bytes(&popped));
        Some(popped)
    }

    /// Without a field of a hash or a member of a set; whether it was there.
    pub(crate) fn remove_part(&mut self, key: &[u8], part: &[u8]) -> bool {
        let removed = match self.values.get_mut(key).map(|kept| &mut kept.value) {
            Some(StoredValue::Hash(hash)) => hash.remove(part).map(|text| text.len()),
            Some(StoredValue::Members(members)) => members.remove(part).then_some(0),
            _ => None,
        };
        if let Some(bytes) = removed {
            self.shrunk(key, part_bytes(part) + bytes);
        }
        removed.is_some()
    }

    /// What is kept under a key, or is made for it, with room for more.
    fn grown(
        &mut self,
        key: &[u8],
        bytes: usize,
        make: impl FnOnce() -> StoredValue,
    ) -> Result<&mut StoredValue, StoreRefusal> {
        let own = make();
        let (is_new, is_other) = match self.get(key) {
            Some(value) => (false, value.kind() != own.kind()),
            None => (true, false),
        };
        if is_other {
            return Err(StoreRefusal::OtherKind);
        }
        let bytes = bytes + if is_new { entry_bytes(key, b"") } else { 0 };
        if self.bytes + bytes > MAX_STORED_BYTES {
            return Err(StoreRefusal::Full);
        }
        self.bytes += bytes;
        let made = || KeptValue { value: own, bytes: 0, until: None };
        let kept = self.values.entry(key.to_vec()).or_insert_with(made);
        kept.bytes += bytes;
        Ok(&mut kept.value)
    }

    /// What has no part any more is gone.
    fn shrunk(&mut self, key: &[u8], bytes: usize) {
        let Some(kept) = self.values.get_mut(key) else { return };
        kept.bytes -= bytes;
        self.bytes -= bytes;
        if kept.value.is_empty() {
            self.remove(key);
        }
    }
}

fn entry_bytes(key: &[u8], text: &[u8]) -> usize {
    ENTRY_BYTES + key.len() + text.len()
}

fn part_bytes(part: &[u8]) -> usize {
    ENTRY_BYTES + part.len()
}

/// A number as texts have it.
pub(crate) fn signed(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused() {
        let (mut store, large) = (TextStore::default(), vec![b'x'; MAX_STORED_BYTES / 2]);
        assert!(store.set(b"a", large.clone()) && !store.set(b"b", large.clone()));
        // What takes the place of what is there needs no more.
        assert!(store.set(b"a", large.clone()) && store.remove(b"a") && store.set(b"b", large.clone()));
        assert_eq!(store.set_field(b"h", b"f", &large), Err(StoreRefusal::Full));
        assert_eq!(store.count(), 1);
    }

    #[test]
    fn each_value_counts_whatever_its_size() {
        let mut store = TextStore::default();
        let stored = (0..MAX_STORED_BYTES).take_while(|key| store.set(&key.to_le_bytes(), vec![])).count();
        assert_eq!(stored, MAX_STORED_BYTES / (ENTRY_BYTES + 8));
    }

    #[test]
    fn what_is_gone_takes_no_room() {
        let mut store = TextStore::default();
        store.list(b"l", &[b"a".to_vec()]).unwrap().push_back(b"a".to_vec());
        assert_eq!(
            (store.set_field(b"h", b"f", b"1"), store.set_field(b"h", b"f", b"22")),
            (Ok(true), Ok(false))
        );
        assert_eq!((store.add_member(b"s", b"m"), store.add_member(b"s", b"m")), (Ok(true), Ok(false)));
        assert!(store.set(b"t", b"text".to_vec()) && store.rename(b"t", b"longer"));
        store.keep_for(b"longer", Some(Duration::from_secs(5)));
        assert_eq!(store.add_member(b"h", b"m"), Err(StoreRefusal::OtherKind));
        assert_eq!(store.pop(b"l", true), Some(b"a".to_vec()));
        assert!(store.remove_part(b"h", b"f") && store.remove_part(b"s", b"m"));
        assert_eq!(store.left(b"longer"), Some(Duration::from_secs(5)));
        store.advance(Duration::from_secs(4));
        assert_eq!((store.count(), store.left(b"longer")), (1, Some(Duration::from_secs(1))));
        store.advance(Duration::from_secs(5));
        assert_eq!((store.count(), store.bytes), (0, 0));
    }
}
