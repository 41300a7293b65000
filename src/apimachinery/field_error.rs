//! Validation errors of fields (`k8s.io/apimachinery/pkg/util/validation/field`): a path, what is wrong, the
//! value.

use std::fmt;

use serde_json::Value;

use super::repeats::repeats;
use super::status_cause::StatusCause;

/// What is wrong with a field (`field.ErrorType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// `Required value`
    Required,
    /// `Invalid value`
    Invalid,
    /// `Unsupported value`
    NotSupported,
    /// `Forbidden`
    Forbidden,
    /// `Duplicate value`
    Duplicate,
    /// `Not found`
    NotFound,
    /// `Too long`
    TooLong,
    /// `Too many`
    TooMany,
    /// `Internal error`
    InternalError,
    /// `Invalid value` of a type that does not fit
    TypeInvalid,
}

impl ErrorType {
    /// The words in the message, and the reason in the status cause.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            ErrorType::Required => ("Required value", "FieldValueRequired"),
            ErrorType::Invalid => ("Invalid value", "FieldValueInvalid"),
            ErrorType::NotSupported => ("Unsupported value", "FieldValueNotSupported"),
            ErrorType::Forbidden => ("Forbidden", "FieldValueForbidden"),
            ErrorType::Duplicate => ("Duplicate value", "FieldValueDuplicate"),
            ErrorType::NotFound => ("Not found", "FieldValueNotFound"),
            ErrorType::TooLong => ("Too long", "FieldValueTooLong"),
            ErrorType::TooMany => ("Too many", "FieldValueTooMany"),
            ErrorType::InternalError => ("Internal error", "InternalError"),
            ErrorType::TypeInvalid => ("Invalid value", "FieldValueTypeInvalid"),
        }
    }
}

/// One error of one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// As `spec.containers[0].image`.
    pub path: String,
    /// What is wrong.
    pub error_type: ErrorType,
    /// The value at fault, already in the form in which it is shown; empty when the type of error shows none.
    pub shown: String,
    /// The rest of the message.
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl FieldError {
    fn body(&self) -> String {
        let words = self.error_type.words().0;
        let head = if self.shown.is_empty() { words.to_owned() } else { format!("{words}: {}", self.shown) };
        if self.detail.is_empty() { head } else { format!("{head}: {}", self.detail) }
    }
}

/// All errors of an object, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldErrors(pub Vec<FieldError>);

impl FieldErrors {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A missing value. `detail` may be empty.
    pub fn required(&mut self, path: impl Into<String>, detail: &str) {
        self.push(path, ErrorType::Required, String::new(), detail);
    }

    /// A value that may not be so.
    pub fn invalid(&mut self, path: impl Into<String>, value: &Value, detail: impl AsRef<str>) {
        self.push(path, ErrorType::Invalid, show(value), detail.as_ref());
    }

    /// A value that is none of `supported`.
    pub fn not_supported(&mut self, path: impl Into<String>, value: &Value, supported: &[&str]) {
        let list: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
        let detail =
            if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        self.push(path, ErrorType::NotSupported, show(value), &detail);
    }

    /// A field that may not be set here, or not changed.
    pub fn forbidden(&mut self, path: impl Into<String>, detail: impl AsRef<str>) {
        self.push(path, ErrorType::Forbidden, String::new(), detail.as_ref());
    }

    /// A value that stands twice.
    pub fn duplicate(&mut self, path: impl Into<String>, value: &Value) {
        self.push(path, ErrorType::Duplicate, show(value), "");
    }

    /// A reference to nothing.
    pub fn not_found(&mut self, path: impl Into<String>, value: &Value) {
        self.push(path, ErrorType::NotFound, show(value), "");
    }

    /// More than `max` bytes.
    pub fn too_long(&mut self, path: impl Into<String>, max: usize) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max} {unit}");
        self.push(path, ErrorType::TooLong, String::new(), &detail);
    }

    /// More than `max` items.
    pub fn too_many(&mut self, path: impl Into<String>, actual: usize, max: usize) {
        let unit = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {unit}");
        self.push(path, ErrorType::TooMany, actual.to_string(), &detail);
    }

    /// Adds any error.
    pub fn push(&mut self, path: impl Into<String>, error_type: ErrorType, shown: String, detail: &str) {
        self.0.push(FieldError { path: path.into(), error_type, shown, detail: detail.into() });
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: FieldErrors) {
        self.0.extend(other.0);
    }

    /// As `details.causes` of a status.
    pub fn causes(&self) -> Vec<StatusCause> {
        let cause = |error: &FieldError| StatusCause {
            reason: error.error_type.words().1.into(),
            message: error.body(),
            field: error.path.clone(),
        };
        self.0.iter().map(cause).collect()
    }
}

/// `utilerrors.Aggregate`: one error as it is, several in brackets; a text that stands twice is shown once.
impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Looked up, because there may be as many errors as a body has fields.
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        let is_again = repeats(&texts);
        let texts = texts.iter().zip(is_again).filter(|(_, is_again)| !is_again);
        let texts: Vec<&str> = texts.map(|(text, _)| text.as_str()).collect();
        match texts.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "[{}]", many.join(", ")),
        }
    }
}

/// A value as upstream shows it: strings quoted, scalars plain, everything else as JSON.
fn show(value: &Value) -> String {
    match value {
        Value::String(text) => golang::go_text::quote(text),
        Value::Null => "null".into(),
        Value::Number(number) => golang::go_print::print_number(number),
        other => golang::go_text::escape_html(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_read_as_upstreams() {
        let mut errors = FieldErrors::default();
        errors.required("spec.template.spec.containers[0].image", "");
        assert_eq!(errors.to_string(), "spec.template.spec.containers[0].image: Required value");
        errors.not_supported("spec.restartPolicy", &json!("Sometimes"), &["Always", "Never"]);
        assert_eq!(
            errors.to_string(),
            "[spec.template.spec.containers[0].image: Required value, spec.restartPolicy: Unsupported value: \
             \"Sometimes\": supported values: \"Always\", \"Never\"]"
        );
        assert_eq!(errors.causes()[1].reason, "FieldValueNotSupported");
    }
}
