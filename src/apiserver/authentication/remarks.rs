//! What an authenticator remarks about a token beside whose it is: annotations of the request's audit event
//! and warnings for whoever sent it (`audit.AddAuditAnnotation` and `warning.AddWarning` in authenticators).

use sync::Mutex;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// For the audit event: key and value.
    Annotation(&'static str, String),
    /// For the client, in a `Warning` header.
    Warning(&'static str),
}

/// Gathers what is remarked while a token is looked at. One that is refused may have been remarked upon, too.
#[derive(Debug, Default)]
pub struct Remarks(Mutex<Vec<Remark>>);

impl Remarks {
    /// Notes an annotation of the audit event.
    pub(super) fn annotate(&self, key: &'static str, value: impl Into<String>) {
        self.0.lock().push(Remark::Annotation(key, value.into()));
    }

    /// Notes a warning.
    pub(super) fn warn(&self, text: &'static str) {
        self.0.lock().push(Remark::Warning(text));
    }

    /// What has been noted.
    pub(super) fn into_vec(self) -> Vec<Remark> {
        self.0.into_inner()
    }
}

/// Those that are for the audit event: keys and values.
pub(crate) fn annotations(remarks: &[Remark]) -> impl Iterator<Item = (&'static str, &str)> {
    remarks.iter().filter_map(|remark| match remark {
        Remark::Annotation(key, value) => Some((*key, value.as_str())),
        Remark::Warning(_) => None,
    })
}

/// Those that are for the client.
pub(crate) fn warnings(remarks: &[Remark]) -> impl Iterator<Item = &'static str> {
    remarks.iter().filter_map(|remark| match remark {
        Remark::Warning(text) => Some(*text),
        Remark::Annotation(..) => None,
    })
}
