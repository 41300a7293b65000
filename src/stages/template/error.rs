//! What is wrong with a template.

golang::text_error! {
    /// What is wrong with a template, or with what it is rendered from.
    pub struct TemplateError;
}

impl TemplateError {
    pub(super) fn new(why: impl Into<String>) -> TemplateError {
        TemplateError(why.into())
    }
}
