//! Which keys a range, a watch or a deletion is about (`key` and `range_end` of etcd's requests).

use std::borrow::Cow;

/// Keys that lie side by side. Keys are compared by their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySpan<'a> {
    /// One key.
    Key(Cow<'a, str>),
    /// All that start with this.
    Prefix(Cow<'a, str>),
    /// From the first on (inclusive) to the second (exclusive).
    Between(Cow<'a, str>, Cow<'a, str>),
    /// From this one on.
    From(Cow<'a, str>),
}

impl KeySpan<'_> {
    /// All keys.
    pub const ALL: KeySpan<'static> = KeySpan::Prefix(Cow::Borrowed(""));

    /// Where they begin.
    pub fn start(&self) -> &str {
        match self {
            KeySpan::Key(start)
            | KeySpan::Prefix(start)
            | KeySpan::Between(start, _)
            | KeySpan::From(start) => start,
        }
    }

    /// Whether a key is one of them.
    pub fn contains(&self, key: &str) -> bool {
        key >= self.start() && self.reaches(key)
    }

    /// Whether a key that is not before their beginning is one of them.
    pub(super) fn reaches(&self, key: &str) -> bool {
        match self {
            KeySpan::Key(only) => key == only,
            KeySpan::Prefix(prefix) => key.starts_with(&**prefix),
            KeySpan::Between(_, end) => key < &**end,
            KeySpan::From(_) => true,
        }
    }

    /// With texts of its own.
    pub fn into_owned(self) -> KeySpan<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            KeySpan::Key(key) => KeySpan::Key(owned(key)),
            KeySpan::Prefix(prefix) => KeySpan::Prefix(owned(prefix)),
            KeySpan::Between(start, end) => KeySpan::Between(owned(start), owned(end)),
            KeySpan::From(start) => KeySpan::From(owned(start)),
        }
    }
}

impl<'a> KeySpan<'a> {
    /// Those that start with `prefix`.
    pub fn prefix(prefix: &'a str) -> KeySpan<'a> {
        KeySpan::Prefix(Cow::Borrowed(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_keys_and_no_others() {
        let keys = ["", "/a", "/a/", "/a/b", "/a0", "/b", "é"];
        let found = |span: KeySpan<'_>| keys.into_iter().filter(|key| span.contains(key)).collect::<Vec<_>>();
        assert_eq!(found(KeySpan::Key("/a".into())), ["/a"]);
        assert_eq!(found(KeySpan::prefix("/a/")), ["/a/", "/a/b"]);
        assert_eq!(found(KeySpan::Between("/a".into(), "/a0".into())), ["/a", "/a/", "/a/b"]);
        assert_eq!(found(KeySpan::Between("/b".into(), "/a".into())), [""; 0]);
        assert_eq!(found(KeySpan::From("/a0".into()).into_owned()), ["/a0", "/b", "é"]);
        assert_eq!(found(KeySpan::ALL), keys);
    }
}
