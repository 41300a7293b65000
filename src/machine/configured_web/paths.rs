//! Which paths a rule is for, and addresses of servers behind it.

use percent_encoding::percent_encode;

use crate::passing_on::NOT_IN_PATHS;
use crate::requests::WebRequest;

/// For which requests a rule is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PathPattern {
    /// One of these; all where there is none. A star at the end stands for anything, one at the beginning,
    /// too.
    pub(super) paths: Vec<String>,
    /// Of these methods; any where there is none.
    pub(super) methods: Vec<String>,
    /// With such headers.
    pub(super) headers: Vec<(String, String)>,
    /// None of these.
    pub(super) except: Vec<PathPattern>,
    /// A path is meant with all that is below it, as Apache's prefixes have it.
    pub(super) is_prefix: bool,
}

impl PathPattern {
    pub(super) fn of(paths: &[&str]) -> PathPattern {
        PathPattern { paths: paths.iter().map(|path| (*path).to_owned()).collect(), ..PathPattern::default() }
    }

    /// With all that is below it.
    pub(super) fn below(path: &str) -> PathPattern {
        PathPattern { is_prefix: true, ..PathPattern::of(&[path]) }
    }

    pub(super) fn fits(&self, path: &str, asked: &WebRequest<'_>) -> bool {
        let is_path = self.paths.is_empty() || self.paths.iter().any(|own| self.is_it(own, path));
        let is_method = self.methods.is_empty() || self.methods.iter().any(|own| own == asked.method);
        let has_header = |(name, value): &(String, String)| {
            asked.header(&name.to_ascii_lowercase()).is_some_and(|own| value == "*" || own == value)
        };
        is_path
            && is_method
            && self.headers.iter().all(has_header)
            && !self.except.iter().any(|no| no.fits(path, asked))
    }

    fn is_it(&self, own: &str, path: &str) -> bool {
        if self.is_prefix {
            let rest = path.strip_prefix(own);
            return rest.is_some_and(|rest| own.ends_with('/') || rest.is_empty() || rest.starts_with('/'));
        }
        match (own.strip_prefix('*'), own.strip_suffix('*')) {
            (Some(_), Some(_)) => own == "*" || path.contains(own.trim_matches('*')),
            (Some(end), None) => path.ends_with(end),
            (None, Some(start)) => path.starts_with(start),
            (None, None) => own == path,
        }
    }

    /// What is taken away by whoever takes away what it is for.
    pub(super) fn prefix(&self) -> &str {
        self.paths.first().map_or("", |own| own.trim_end_matches('*').trim_end_matches('/'))
    }

    /// What is behind it in a path.
    pub(super) fn rest<'p>(&self, path: &'p str) -> &'p str {
        let own = self.paths.first().map_or("", String::as_str);
        path.strip_prefix(own).unwrap_or_default()
    }

    /// How closely it says which: whoever says more goes first.
    pub(super) fn length(&self) -> usize {
        self.paths.iter().map(|path| path.trim_end_matches('*').len()).max().unwrap_or(0)
    }
}

/// `http://host:port`, and the path behind it.
pub(super) fn place(server: &str) -> (String, &str) {
    let (scheme, rest) = server.split_once("://").unwrap_or(("http", server));
    let at = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let scheme = match scheme {
        "https" | "wss" => "https",
        _ => "http",
    };
    // A port alone is one of this machine.
    let host = if host.starts_with(':') { format!("localhost{host}") } else { host.to_owned() };
    (format!("{scheme}://{host}"), path)
}

/// A decoded path as it stands in a request.
pub(super) fn encoded(path: &str) -> String {
    percent_encode(path.as_bytes(), NOT_IN_PATHS).to_string()
}
