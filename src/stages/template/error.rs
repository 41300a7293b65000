//! What is wrong with a template.

use std::fmt;

/// What is wrong with a template, or with what it is rendered from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError(String);

impl TemplateError {
    pub(super) fn new(why: impl Into<String>) -> TemplateError {
        TemplateError(why.into())
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
