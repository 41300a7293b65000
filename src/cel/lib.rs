//! CEL, the Common Expression Language, as the apiserver speaks it (`k8s.io/apiserver/pkg/cel`): one language
//! for CRD rules, admission policies, match conditions, authorization conditions and device selectors.
//!
//! In comes an expression and what is declared ([`Environment`]); out comes a checked [`Program`], or the
//! errors in cel-go's words. A program is evaluated over an [`Activation`] of values within a [`Budget`].
//! Values come from JSON, with or without a schema. Nothing here knows what an expression is for.
//!
//! The road: `lexer`, `parser` (macros become nodes of their own), `checker` against `declarations`, then
//! `evaluate`, which calls `functions`: `strings`, `lists` and, for Kubernetes' own, `library`.

#![warn(missing_docs, unreachable_pub)]

mod stack;

mod ast;
mod lexer;
mod macros;
mod syntax;
mod syntax_recovery;
mod syntax_tokens;

mod parser;

mod types;

mod declarations;

mod checker;
mod checker_calls;
mod validators;

mod named_format;
mod net;
mod opaque;
mod semver;
mod times;
mod url;
mod value;

mod bounds;
mod operators;

mod convert;
mod format_text;
mod functions;
pub mod go_patterns;
mod library;
mod lists;
mod patterns;
mod strings;
mod time_functions;

mod comprehend;
mod constants;
mod evaluate;

mod call_cost;
mod cost;
mod estimate;
mod estimate_calls;
mod sizes;

mod activation;
mod environment;
mod error;
mod program;

pub mod authorizer;
pub mod conditions;
pub mod schema;

#[cfg(test)]
mod bounds_test;
#[cfg(test)]
mod library_test;
#[cfg(test)]
mod syntax_test;
#[cfg(test)]
mod tests;

pub use activation::{Activation, HostFunctions};
pub use cost::Budget;
pub use environment::Environment;
pub use error::{CompileError, EvaluationError, Issue};
pub use named_format::NamedFormat;
pub use net::Cidr;
pub use opaque::Opaque;
pub use program::Program;
pub use semver::Semver;
pub use sizes::Size;
use stack::on_enough_stack;
pub use types::{ObjectType, Type};
pub use url::Url;
pub use value::{CelList, HostValue, ListKind, Map, MapKey, Value};

/// Whether something declared may have the name (`[_a-zA-Z][_a-zA-Z0-9]*`, and no word of the language).
pub fn is_identifier(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit()) && !parser::is_keyword(name)
}
