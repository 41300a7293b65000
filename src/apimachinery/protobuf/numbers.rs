//! The numbers of the fields, embedded at build time and read when the first message is read or written.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/protobuf.gz"));

/// A constant that is worked out when it is needed.
static MESSAGES: LazyLock<BTreeMap<String, ProtobufMessage>> = LazyLock::new(|| read(&text()));

/// The fields of one message by number.
#[derive(Debug, Default)]
pub(super) struct ProtobufMessage(BTreeMap<u32, ProtobufField>);

/// What a number stands for.
#[derive(Debug)]
pub(super) enum ProtobufField {
    /// A field.
    Named {
        /// Its JSON name.
        name: Box<str>,
        /// It hangs on a pointer: what is not there is not written.
        is_optional: bool,
    },
    /// A message whose fields JSON writes among those of its holder (Go's embedded structs).
    Inline(ProtobufMessage),
}

impl ProtobufMessage {
    pub(super) fn field(&self, number: u32) -> Option<&ProtobufField> {
        self.0.get(&number)
    }

    /// All fields, by number.
    pub(super) fn fields(&self) -> impl Iterator<Item = (u32, &ProtobufField)> {
        self.0.iter().map(|(number, field)| (*number, field))
    }

    /// Enters a field under the numbers that lead to it.
    fn enter(&mut self, line: &NumberLine) -> Option<()> {
        let (number, rest) = line.path.split_first()?;
        if rest.is_empty() {
            let field = ProtobufField::Named { name: line.field.into(), is_optional: line.is_optional };
            return self.0.insert(*number, field).is_none().then_some(());
        }
        match self.0.entry(*number).or_insert_with(|| ProtobufField::Inline(ProtobufMessage::default())) {
            ProtobufField::Inline(message) => message.enter(&NumberLine { path: rest.to_vec(), ..*line }),
            ProtobufField::Named { .. } => None,
        }
    }
}

/// The message of a definition (`io.k8s.api.core.v1.Pod`); None where it has no fields.
pub(super) fn message(definition: &str) -> Option<&'static ProtobufMessage> {
    MESSAGES.get(definition)
}

/// The embedded table.
pub(super) fn text() -> String {
    let mut text = String::new();
    GzDecoder::new(TABLE).read_to_string(&mut text).expect("build.rs wrote a gzip of text");
    text
}

fn read(text: &str) -> BTreeMap<String, ProtobufMessage> {
    let mut messages = BTreeMap::<String, ProtobufMessage>::new();
    for line in lines(text) {
        let NumberLine { definition, field, .. } = line;
        let message = messages.entry(definition.to_owned()).or_default();
        message.enter(&line).unwrap_or_else(|| panic!("{definition} {field} has a number of its own"));
    }
    messages
}

/// A field of the table.
pub(super) struct NumberLine<'t> {
    /// The published name of its message.
    pub definition: &'t str,
    /// Its JSON name.
    pub field: &'t str,
    /// The numbers that lead to it.
    pub path: Vec<u32>,
    /// It hangs on a pointer.
    pub is_optional: bool,
}

/// The lines of the table.
pub(super) fn lines(text: &str) -> impl Iterator<Item = NumberLine<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [definition, field, path] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("the table has three columns");
        let numbers = path.strip_suffix('?');
        let is_optional = numbers.is_some();
        let path = numbers.unwrap_or(path).split('.');
        let path = path.map(|number| number.parse().expect("the table's numbers are numbers")).collect();
        NumberLine { definition, field, path, is_optional }
    })
}
