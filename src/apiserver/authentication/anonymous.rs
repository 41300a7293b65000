//! Requests without credentials (`--anonymous-auth`, `request/anonymous`): whether they are somebody, and
//! where.

/// Whether a request without credentials is `system:anonymous` (`apiserver.AnonymousAuthConfig`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anonymous {
    /// Whether anybody is.
    pub enabled: bool,
    /// Where; everywhere when there are none.
    pub paths: Vec<String>,
}

impl Anonymous {
    /// Everywhere, or nowhere.
    pub fn everywhere(enabled: bool) -> Anonymous {
        Anonymous { enabled, paths: vec![] }
    }

    /// Whether a request for this path is anybody's.
    pub fn is_allowed(&self, path: &str) -> bool {
        self.enabled && (self.paths.is_empty() || self.paths.iter().any(|allowed| allowed == path))
    }
}
