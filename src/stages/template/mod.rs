//! Go templates, as far as stages are written in them (`text/template`, with the functions of kwok and the
//! plain ones of sprig).
//!
//! In come a text and a tree; out comes the text with its actions carried out. There are pipelines, `if`,
//! `with`, `range`, variables and comments; no `define` and no `template`. Work is bounded: a template
//! that goes on for ever, or whose text grows without end, ends with an error.

mod error;

mod lexer;
mod parser;

mod functions;
mod shown;
mod sprig;

mod render;

pub use functions::TemplateHost;
pub(crate) use parser::Template;

#[cfg(test)]
mod tests;
