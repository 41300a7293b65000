//! Which keys a range, a watch or a deletion is about (`key` and `range_end` of etcd's requests).

use std::borrow::Cow;

/// Keys that lie side by side. Keys are compared by their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span<'a> {
    /// One key.
    Key(Cow<'a, str>),
    /// All that start with this.
    Prefix(Cow<'a, str>),
    /// From the first on (inclusive) to the second (exclusive).
    Between(Cow<'a, str>, Cow<'a, str>),
    /// From this one on.
    From(Cow<'a, str>),
}

impl Span<'_> {
    /// All keys.
    pub const ALL: Span<'static> = Span::Prefix(Cow::Borrowed(""));

    /// Where they begin.
    pub fn start(&self) -> &str {
        match self {
            Span::Key(start) | Span::Prefix(start) | Span::Between(start, _) | Span::From(start) => start,
        }
    }

    /// Whether a key is one of them.
    pub fn contains(&self, key: &str) -> bool {
        key >= self.start() && self.reaches(key)
    }

    /// Whether a key that is not before their beginning is one of them.
    pub(super) fn reaches(&self, key: &str) -> bool {
        match self {
            Span::Key(only) => key == only,
            Span::Prefix(prefix) => key.starts_with(&**prefix),
            Span::Between(_, end) => key < &**end,
            Span::From(_) => true,
        }
    }

    /// With texts of its own.
    pub fn into_owned(self) -> Span<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Span::Key(key) => Span::Key(owned(key)),
            Span::Prefix(prefix) => Span::Prefix(owned(prefix)),
            Span::Between(start, end) => Span::Between(owned(start), owned(end)),
            Span::From(start) => Span::From(owned(start)),
        }
    }
}

impl<'a> Span<'a> {
    /// Those that start with `prefix`.
    pub fn prefix(prefix: &'a str) -> Span<'a> {
        Span::Prefix(Cow::Borrowed(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_keys_and_no_others() {
        let keys = ["", "/a", "/a/", "/a/b", "/a0", "/b", "é"];
        let found = |span: Span<'_>| keys.into_iter().filter(|key| span.contains(key)).collect::<Vec<_>>();
        assert_eq!(found(Span::Key("/a".into())), ["/a"]);
        assert_eq!(found(Span::prefix("/a/")), ["/a/", "/a/b"]);
        assert_eq!(found(Span::Between("/a".into(), "/a0".into())), ["/a", "/a/", "/a/b"]);
        assert_eq!(found(Span::Between("/b".into(), "/a".into())), [""; 0]);
        assert_eq!(found(Span::From("/a0".into()).into_owned()), ["/a0", "/b", "é"]);
        assert_eq!(found(Span::ALL), keys);
    }
}
