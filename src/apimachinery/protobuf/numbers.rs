//! The numbers of the fields, embedded at build time and read when the first such body arrives.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/protobuf.gz"));

/// A constant that is worked out when it is needed.
static MESSAGES: LazyLock<BTreeMap<String, Message>> = LazyLock::new(|| read(&text()));

/// The fields of one message by number.
#[derive(Debug, Default)]
pub(super) struct Message(BTreeMap<u32, Field>);

/// What a number stands for.
#[derive(Debug)]
pub(super) enum Field {
    /// A field, by its JSON name.
    Named(Box<str>),
    /// A message whose fields JSON writes among those of its holder (Go's embedded structs).
    Inline(Message),
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.0.get(&number)
    }

    /// Enters a field under the numbers that lead to it.
    fn enter(&mut self, path: &[u32], name: &str) -> Option<()> {
        let (number, rest) = path.split_first()?;
        if rest.is_empty() {
            return self.0.insert(*number, Field::Named(name.into())).is_none().then_some(());
        }
        match self.0.entry(*number).or_insert_with(|| Field::Inline(Message::default())) {
            Field::Inline(message) => message.enter(rest, name),
            Field::Named(_) => None,
        }
    }
}

/// The message of a definition (`io.k8s.api.core.v1.Pod`); None where it has no fields.
pub(super) fn message(definition: &str) -> Option<&'static Message> {
    MESSAGES.get(definition)
}

/// The embedded table.
pub(super) fn text() -> String {
    let mut text = String::new();
    GzDecoder::new(TABLE).read_to_string(&mut text).expect("build.rs wrote a gzip of text");
    text
}

fn read(text: &str) -> BTreeMap<String, Message> {
    let mut messages = BTreeMap::<String, Message>::new();
    for (definition, name, path) in lines(text) {
        let message = messages.entry(definition.to_owned()).or_default();
        message.enter(&path, name).unwrap_or_else(|| panic!("{definition} {name} has a number of its own"));
    }
    messages
}

/// Definition, field, and the numbers that lead to it.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, &str, Vec<u32>)> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [definition, name, path] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("the table has three columns");
        let path = path.split('.').map(|number| number.parse().expect("the table's numbers are numbers"));
        (definition, name, path.collect())
    })
}
