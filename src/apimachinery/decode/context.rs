//! Where decoding is, and what it has found wrong: upstream's `decodeState` in `sigs.k8s.io/json`.

use std::fmt::Write;

use golang::go_text::quote;

/// Upstream's bound on strict errors; further ones are not told.
const MAX_STRICT_ERRORS: usize = 100;

/// One step of the path from the root.
pub(super) enum DecodeStep<'s> {
    /// A field of a struct.
    Field(&'s str),
    /// A key of a map.
    Key(String),
    /// An element of a list.
    Index(usize),
}

/// Carried through one decoding. `'s` is the schema's life.
pub(super) struct DecodeContext<'s> {
    /// A built-in kind: duplicates inside free-form parts are upstream's raw bytes and not looked at.
    pub(super) typed: bool,
    /// The object was never JSON: a strategic merge patch made it.
    pub(super) converted: bool,
    pub(super) path: Vec<DecodeStep<'s>>,
    /// The Go struct whose field is being decoded.
    pub(super) in_struct: &'s str,
    pub(super) strict_errors: Vec<String>,
    /// What the whole body is instead of an object.
    pub(super) not_an_object: Option<String>,
    /// The first mistyped value; Go reads on after it.
    mistyped: Option<String>,
    /// The first value whose own decoder failed; Go stops there, so it outweighs the other.
    fatal: Option<String>,
}

impl<'s> DecodeContext<'s> {
    pub(super) fn new(typed: bool) -> Self {
        Self {
            typed,
            converted: false,
            path: Vec::new(),
            in_struct: "",
            strict_errors: Vec::new(),
            not_an_object: None,
            mistyped: None,
            fatal: None,
        }
    }

    /// What makes the body useless, if anything does.
    pub(super) fn error(&self) -> Option<String> {
        self.fatal.clone().or_else(|| self.mistyped.clone())
    }

    /// A field that the kind does not have.
    pub(super) fn unknown(&mut self, name: &str) {
        self.strict("unknown field", name);
    }

    /// A field that came twice.
    pub(super) fn duplicate(&mut self, name: &str) {
        self.strict("duplicate field", name);
    }

    /// A value of the wrong JSON type; `given` is `string`, `number 1.5`, `object`.
    pub(super) fn mistyped(&mut self, given: &str, go_type: &str) {
        if self.path.is_empty() {
            self.not_an_object = Some(given.to_owned());
        }
        if self.mistyped.is_some() {
            return;
        }
        let fields: Vec<&str> = self
            .path
            .iter()
            .filter_map(|step| if let DecodeStep::Field(name) = step { Some(*name) } else { None })
            .collect();
        self.mistyped = Some(match fields.as_slice() {
            [] => format!("json: cannot unmarshal {given} into Go value of type {go_type}"),
            fields => format!(
                "json: cannot unmarshal {given} into Go struct field {}.{} of type {go_type}",
                self.in_struct,
                fields.join(".")
            ),
        });
    }

    /// A value whose text is wrong and that Go reads past, or that cannot be converted to its Go type.
    pub(super) fn malformed(&mut self, error: String) {
        self.mistyped.get_or_insert(error);
    }

    /// A value that its own decoder refused.
    pub(super) fn fatal(&mut self, error: String) {
        self.fatal.get_or_insert(error);
    }

    fn strict(&mut self, what: &str, name: &str) {
        if self.strict_errors.len() >= MAX_STRICT_ERRORS {
            return;
        }
        let error = format!("{what} {}", quote(&self.path_to(name)));
        if !self.strict_errors.contains(&error) {
            self.strict_errors.push(error);
        }
    }

    fn path_to(&self, name: &str) -> String {
        let mut path = String::new();
        let key = |path: &mut String, key: &str| {
            let dot = if path.is_empty() { "" } else { "." };
            let _ = write!(path, "{dot}{key}");
        };
        for step in &self.path {
            match step {
                DecodeStep::Field(name) => key(&mut path, name),
                DecodeStep::Key(name) => key(&mut path, name),
                DecodeStep::Index(at) => {
                    let _ = write!(path, "[{at}]");
                }
            }
        }
        key(&mut path, name);
        path
    }
}
