//! `Managed`: who owns what of an object (`fieldpath.ManagedFields`, `metav1.ManagedFieldsEntry`).
//!
//! In the trees that the server works on, `fieldsV1` is the text of its JSON, not a tree of it: nearly every
//! write leaves nearly every entry as it is, and a text costs nothing to keep, compare and write. The stored
//! bytes have it as JSON (`object::encode_for_storage`), so nobody outside sees the text.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::fields_v1;
use super::set::Set;

golang::text_error! {
    /// What is wrong with `metadata.managedFields`; in upstream's words.
    pub struct BadManagedFields;
}

/// How somebody came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManagedFieldsOperation {
    /// By applying a configuration.
    Apply,
    /// By any other write.
    Update,
}

/// Who wrote: the manager's name, how, and through what. Of an applier there is one per name, whatever the
/// version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerId {
    /// As `kubectl`.
    pub manager: String,
    /// How the fields were written.
    pub operation: ManagedFieldsOperation,
    /// As `apps/v1`.
    pub api_version: String,
    /// As `status`; empty for the object itself.
    pub subresource: String,
}

/// One owner and its fields.
#[derive(Clone, Debug)]
pub struct ManagerEntry {
    /// Who manages the fields.
    pub id: ManagerId,
    /// When its set last changed: RFC 3339, whole seconds.
    pub time: Option<String>,
    fields: OwnedFields,
}

/// Decoded only when it is needed.
#[derive(Clone, Debug)]
enum OwnedFields {
    Text(String),
    Set(Set),
}

/// All owners of an object; each at most once.
#[derive(Clone, Debug, Default)]
pub struct Managed(pub Vec<ManagerEntry>);

impl ManagerId {
    /// Whether both are the same manager.
    pub fn is_same(&self, other: &ManagerId) -> bool {
        let same_version =
            self.operation == ManagedFieldsOperation::Apply || self.api_version == other.api_version;
        same_version
            && (self.operation, &self.manager, &self.subresource)
                == (other.operation, &other.manager, &other.subresource)
    }

    /// Upstream's identifier, by which conflicts are sorted.
    pub fn sort_key(&self) -> impl Ord + '_ {
        (&self.manager, self.operation, &self.api_version, &self.subresource)
    }

    /// As conflicts name it: `"kubectl" with subresource "scale" using apps/v1`.
    pub fn print(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == ManagedFieldsOperation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

impl ManagerEntry {
    /// An owner of these fields.
    pub fn new(id: ManagerId, time: Option<String>, set: Set) -> ManagerEntry {
        ManagerEntry { id, time, fields: OwnedFields::Set(set) }
    }

    /// Its fields. Empty for what is not a set: [`Managed::decode`] checked that it is one.
    pub fn set(&self) -> Cow<'_, Set> {
        match &self.fields {
            OwnedFields::Text(text) => Cow::Owned(fields_v1::decode(text).unwrap_or_default()),
            OwnedFields::Set(set) => Cow::Borrowed(set),
        }
    }

    /// Other fields.
    pub fn set_fields(&mut self, set: Set) {
        self.fields = OwnedFields::Set(set);
    }

    /// Whether it owns one of these fields, or something below one.
    pub(super) fn is_touched_by(&self, changed: &Set) -> bool {
        match &self.fields {
            OwnedFields::Text(text) => fields_v1::touches(text, changed),
            OwnedFields::Set(_) => true,
        }
    }

    /// After its manager wrote: what is gone is gone, and it owns what it wrote. The text stays where that is
    /// nothing new.
    pub(super) fn write(&mut self, removed: &Set, written: Set) {
        match &self.fields {
            OwnedFields::Text(text) if removed.is_empty() && fields_v1::covers(text, &written) => {}
            _ => {
                let set = self.set().into_owned();
                self.fields = OwnedFields::Set(set.without(removed).with(written));
            }
        }
    }

    fn encode(self) -> Value {
        let text = match self.fields {
            OwnedFields::Text(text) => text,
            OwnedFields::Set(set) => fields_v1::encode(&set),
        };
        let ManagerId { manager, operation, api_version, subresource } = self.id;
        let operation = match operation {
            ManagedFieldsOperation::Apply => "Apply",
            ManagedFieldsOperation::Update => "Update",
        };
        let members = [
            ("apiVersion", api_version),
            ("fieldsType", "FieldsV1".into()),
            ("fieldsV1", text),
            ("manager", manager),
            ("operation", operation.into()),
            ("subresource", subresource),
            ("time", self.time.unwrap_or_default()),
        ];
        let mut entry = Map::new();
        // One by one: to collect a map sorts first.
        for (name, text) in members.into_iter().filter(|(_, text)| !text.is_empty()) {
            entry.insert(name.to_owned(), Value::String(text));
        }
        Value::Object(entry)
    }

    /// Appliers first, then by time, name, version and subresource.
    fn order(&self, other: &ManagerEntry) -> Ordering {
        let of = |entry: &'_ ManagerEntry| (entry.id.operation, entry.time.clone());
        of(self).cmp(&of(other)).then_with(|| {
            let of = |id: &ManagerId| [&id.manager, &id.api_version, &id.subresource].map(String::clone);
            of(&self.id).cmp(&of(&other.id))
        })
    }
}

impl Managed {
    /// Reads `metadata.managedFields`. Sets that are texts are not decoded, but for those of strangers, which
    /// are trees, they were written by this server.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn decode(entries: Option<Value>) -> Result<Managed, BadManagedFields> {
        let mut managed = Managed::default();
        let Some(Value::Array(entries)) = entries else { return Ok(managed) };
        for (at, entry) in entries.into_iter().enumerate() {
            let entry = decode_entry(at, entry)?;
            match managed.position(&entry.id) {
                Some(known) => managed.0[known] = entry,
                None => managed.0.push(entry),
            }
        }
        Ok(managed)
    }

    /// As `metadata.managedFields`; None when nobody owns anything.
    pub fn encode(mut self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by(ManagerEntry::order);
        Some(Value::Array(self.0.into_iter().map(ManagerEntry::encode).collect()))
    }

    /// Where a manager's entry is.
    pub fn position(&self, id: &ManagerId) -> Option<usize> {
        self.0.iter().position(|entry| entry.id.is_same(id))
    }

    /// A manager's fields; empty when it owns none.
    pub fn set_of(&self, id: &ManagerId) -> Set {
        self.position(id).map(|at| self.0[at].set().into_owned()).unwrap_or_default()
    }

    /// Puts an entry in the place of the manager's, if it has one; one that owns nothing goes.
    pub fn put(&mut self, entry: ManagerEntry) {
        let known = self.position(&entry.id);
        let is_empty = matches!(&entry.fields, OwnedFields::Set(set) if set.is_empty());
        match (known, is_empty) {
            (Some(at), true) => {
                self.0.remove(at);
            }
            (Some(at), false) => self.0[at] = entry,
            (None, true) => {}
            (None, false) => self.0.push(entry),
        }
    }
}

fn decode_entry(at: usize, mut entry: Value) -> Result<ManagerEntry, String> {
    let mut take = |field: &str| entry.get_mut(field).map_or(Value::Null, Value::take);
    let fields = take("fieldsV1");
    let time = match take("time") {
        Value::String(time) => Some(time),
        _ => None,
    };
    let mut text = |field: &str| match take(field) {
        Value::String(text) => text,
        _ => String::new(),
    };
    let operation = match &*text("operation") {
        "Apply" => ManagedFieldsOperation::Apply,
        "Update" => ManagedFieldsOperation::Update,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    match &*text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
    }
    let fields = match fields {
        Value::String(text) => OwnedFields::Text(text),
        Value::Null => OwnedFields::Set(Set::default()),
        tree => {
            let set = fields_v1::decode(&tree.to_string());
            OwnedFields::Set(
                set.map_err(|error| format!("error decoding versioned set: error decoding set: {error}"))?,
            )
        }
    };
    let id = ManagerId { manager: text("manager"), operation, api_version, subresource: text("subresource") };
    Ok(ManagerEntry { id, time, fields })
}
