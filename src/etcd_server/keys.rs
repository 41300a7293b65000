//! Keys on the wire are bytes, in the store texts. The keys of a range lie between the same texts as between
//! the same bytes; a key that is no text is refused where it would be written, and found nowhere.

use bytes::Bytes;
use etcd::KeySpan;

use crate::status::{EtcdStatus, INVALID_ARGUMENT};

/// The key that a put names.
pub(crate) fn text(key: &[u8]) -> Result<&str, EtcdStatus> {
    std::str::from_utf8(key).map_err(|_| {
        let words = "kubarium: a key must be UTF-8; this store keeps no others";
        EtcdStatus::new(INVALID_ARGUMENT, words)
    })
}

/// The keys from `key` on up to `range_end`; None: there can be none.
pub(crate) fn span<'a>(key: &'a [u8], range_end: &'a [u8]) -> Option<KeySpan<'a>> {
    match range_end {
        [] => std::str::from_utf8(key).ok().map(|key| KeySpan::Key(key.into())),
        [0] => first_from(key).map(|start| KeySpan::From(start.into())),
        end if end <= key => None,
        end => {
            if let Ok(prefix) = std::str::from_utf8(key)
                && is_end_of_prefix(key, end)
            {
                return Some(KeySpan::Prefix(prefix.into()));
            }
            let start = first_from(key)?;
            Some(match first_from(end) {
                Some(end) => KeySpan::Between(start.into(), end.into()),
                None => KeySpan::From(start.into()),
            })
        }
    }
}

/// What clients send as the end of all keys with a prefix: the prefix with its last byte one higher.
fn is_end_of_prefix(prefix: &[u8], end: &[u8]) -> bool {
    match (prefix.split_last(), end.split_last()) {
        (Some((last, before)), Some((end, before_end))) => {
            before == before_end && last.checked_add(1) == Some(*end)
        }
        _ => false,
    }
}

/// The first text that is not before some bytes.
fn first_from(bytes: &[u8]) -> Option<String> {
    let (valid, rest) = match std::str::from_utf8(bytes) {
        Ok(text) => return Some(text.to_owned()),
        Err(error) => bytes.split_at(error.valid_up_to()),
    };
    let valid = std::str::from_utf8(valid).expect("it is valid up to there");
    match first_char_from(rest) {
        Some(next) => Some(format!("{valid}{next}")),
        None => successor(valid),
    }
}

/// The first character whose bytes are not before these.
fn first_char_from(bytes: &[u8]) -> Option<char> {
    let is_before = |code: u32| {
        let mut buffer = [0; 4];
        // In the gap of the surrogates is nothing: what comes behind it decides.
        let char = char::from_u32(code).unwrap_or('\u{e000}');
        char.encode_utf8(&mut buffer).as_bytes() < bytes
    };
    let (mut low, mut high) = (0, u32::from(char::MAX) + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low <= u32::from(char::MAX)).then(|| char::from_u32(low).unwrap_or('\u{e000}'))
}

/// The first text behind all that begin with this one.
fn successor(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    while let Some(last) = text.pop() {
        let next = ((u32::from(last) + 1)..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}

/// A key of the store as it is sent.
pub(crate) fn bytes(key: &str) -> Bytes {
    Bytes::copy_from_slice(key.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_bytes_has_the_texts_between_them() {
        let texts = ["\0", "/a", "/a/", "/a/b", "/b", "z", "é", "ê", "\u{d7ff}", "\u{e000}", "\u{10ffff}"];
        let ends: [&[u8]; 12] = [
            b"\0",
            b"/a",
            b"/a0",
            b"\xc3",
            b"\xc3\xa9",
            b"\xc3\xff",
            b"\xed\x9f\xc0",
            b"\xed\xa0\x80",
            b"\xee",
            b"\xf4\x8f\xbf\xbf",
            b"\xf5",
            b"\xff\xff",
        ];
        for start in ends {
            for end in ends.into_iter().skip(1) {
                let found = span(start, end);
                for text in texts {
                    let expected = text.as_bytes() >= start && text.as_bytes() < end;
                    let is_in = found.as_ref().is_some_and(|span| span.contains(text));
                    assert_eq!(is_in, expected, "{text:?} in {start:x?}..{end:x?}: {found:?}");
                }
            }
        }
        assert_eq!(span(b"/a/", b"/a0"), Some(KeySpan::prefix("/a/")));
        assert_eq!(span(b"\0", b"\0"), Some(KeySpan::From("\0".into())));
        assert_eq!(span(b"/a", b""), Some(KeySpan::Key("/a".into())));
        assert_eq!((span(b"\xff", b""), span(b"b", b"a")), (None, None));
        assert!(text(b"\xff").unwrap_err().message.contains("UTF-8"));
    }
}
