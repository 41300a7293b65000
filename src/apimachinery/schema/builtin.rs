//! The definitions of the built-in types, embedded at build time and read one at a time.

use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::lower::lower;
use super::types::Schema;

/// One definition: where it lies in the two embedded blobs.
struct Definition {
    name: &'static str,
    facts: Range<u32>,
    published: Range<u32>,
}

/// Sorted by name.
static DEFINITIONS: &[Definition] = include!(concat!(env!("OUT_DIR"), "/definitions.rs"));
static FACTS: &str = include_str!(concat!(env!("OUT_DIR"), "/definitions.facts"));
static PUBLISHED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/definitions.published"));

/// A constant that is worked out as it is needed: every cluster reads the same, none can change it.
static BUILTIN: LazyLock<Arc<Schemas>> =
    LazyLock::new(|| Arc::new(Schemas { read: DEFINITIONS.iter().map(|_| OnceLock::new()).collect() }));

/// The schemas of the built-in types by the names under which OpenAPI publishes them, such as
/// `io.k8s.api.core.v1.Pod`. Bounded by the number of built-in definitions.
#[derive(Debug)]
pub struct Schemas {
    read: Box<[OnceLock<Arc<Schema>>]>,
}

/// Names one built-in definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionId(u16);

impl DefinitionId {
    /// The definition of that name, if there is one.
    pub(super) fn of(name: &str) -> Option<Self> {
        let at = DEFINITIONS.binary_search_by(|definition| definition.name.cmp(name)).ok()?;
        u16::try_from(at).ok().map(Self)
    }

    /// The published name.
    pub fn name(self) -> &'static str {
        DEFINITIONS[usize::from(self.0)].name
    }
}

impl Schemas {
    /// The built-in types of Kubernetes 1.36.
    pub fn builtin() -> Arc<Schemas> {
        BUILTIN.clone()
    }

    /// The schema of one definition; None where Kubernetes publishes none of that name.
    pub fn get(&self, name: &str) -> Option<Arc<Schema>> {
        Some(self.slot(DefinitionId::of(name)?).clone())
    }

    /// Every definition's name, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        DEFINITIONS.iter().map(|definition| definition.name)
    }

    /// The definition as OpenAPI v2 publishes it, descriptions included.
    pub fn published(&self, name: &str) -> Option<Value> {
        let range = &DEFINITIONS[usize::from(DefinitionId::of(name)?.0)].published;
        let gzipped = &PUBLISHED[range.start as usize..range.end as usize];
        let mut text = Vec::new();
        GzDecoder::new(gzipped).read_to_end(&mut text).expect("build.rs wrote a gzip");
        Some(serde_json::from_slice(&text).expect("build.rs wrote JSON"))
    }

    /// The schema of a definition, for as long as the program runs.
    pub fn lookup(name: &str) -> Option<&'static Schema> {
        DefinitionId::of(name).map(Self::definition)
    }

    /// The schema of a definition that must exist, for code that names it.
    pub fn reference(name: &str) -> &'static Schema {
        Self::definition(DefinitionId::of(name).unwrap_or_else(|| panic!("{name} is no definition")))
    }

    /// What a reference leads to.
    pub(super) fn definition(id: DefinitionId) -> &'static Schema {
        BUILTIN.slot(id)
    }

    fn slot(&self, id: DefinitionId) -> &Arc<Schema> {
        self.read[usize::from(id.0)].get_or_init(|| {
            let definition = &DEFINITIONS[usize::from(id.0)];
            let text = &FACTS[definition.facts.start as usize..definition.facts.end as usize];
            let schema: Value = serde_json::from_str(text).expect("build.rs wrote JSON");
            let mut schema = lower(&schema, &[]);
            schema.facts.get_or_insert_default().name = Some(definition.name.into());
            Arc::new(schema)
        })
    }
}
