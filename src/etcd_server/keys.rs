//! Keys on the wire are bytes, in the store texts. A key that is a text is kept as it is; any other one
//! stands behind all texts, in hexadecimal, where those have their order, too. So a range of bytes is a range
//! of texts and one of others.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

use bytes::Bytes;
use etcd::KeySpan;

/// What the others begin with: the last character there is. Texts that begin with it are kept as others.
const OTHERS: &str = "\u{10ffff}";

/// Keys that a request is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeySpans<'a> {
    pub(crate) texts: KeySpan<'a>,
    /// None for one key, which stands in `texts`, whatever it is.
    pub(crate) others: Option<KeySpan<'static>>,
}

impl KeySpans<'_> {
    /// No keys at all.
    pub(crate) const NOTHING: KeySpans<'static> = KeySpans { texts: NOTHING, others: None };
}

const NOTHING: KeySpan<'static> = KeySpan::Between(Cow::Borrowed(""), Cow::Borrowed(""));

/// A key as the store has it.
pub(crate) fn text(key: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(key) {
        Ok(text) if text < OTHERS => Cow::Borrowed(text),
        _ => Cow::Owned(other(key)),
    }
}

fn other(key: &[u8]) -> String {
    let mut other = OTHERS.to_owned();
    for byte in key {
        let _ = write!(other, "{byte:02x}");
    }
    other
}

/// A key of the store as it is sent.
pub(crate) fn bytes(key: &str) -> Bytes {
    let other = key.strip_prefix(OTHERS).and_then(from_hexadecimal);
    other.map_or_else(|| Bytes::copy_from_slice(key.as_bytes()), Bytes::from)
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// The order of keys of the store as they are sent.
pub(crate) fn order(one: &str, another: &str) -> Ordering {
    if one < OTHERS && another < OTHERS { one.cmp(another) } else { bytes(one).cmp(&bytes(another)) }
}

/// The keys from `key` on up to `range_end`; None: there can be none.
pub(crate) fn span<'a>(key: &'a [u8], range_end: &[u8]) -> Option<KeySpans<'a>> {
    match range_end {
        [] => Some(KeySpans { texts: KeySpan::Key(text(key)), others: None }),
        [0] => {
            let others = Some(KeySpan::From(other(key).into()));
            Some(KeySpans { texts: between(key, None), others })
        }
        end if end <= key => None,
        end => {
            let others = Some(KeySpan::Between(other(key).into(), other(end).into()));
            let texts = match text(key) {
                Cow::Borrowed(prefix) if is_end_of_prefix(key, end) => KeySpan::Prefix(prefix.into()),
                _ => between(key, Some(end)),
            };
            Some(KeySpans { texts, others })
        }
    }
}

/// The texts between bytes; others are behind all of them.
fn between(key: &[u8], end: Option<&[u8]>) -> KeySpan<'static> {
    let end = end.and_then(first_from).filter(|end| &**end < OTHERS);
    match first_from(key) {
        Some(start) if &*start < OTHERS => {
            KeySpan::Between(start.into(), end.map_or(OTHERS.into(), Cow::Owned))
        }
        _ => NOTHING,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_bytes_has_the_texts_between_them() {
        let texts = ["\0", "/a", "/a/", "/a/b", "/b", "z", "é", "ê", "\u{d7ff}", "\u{e000}", "\u{10ffff}"];
        let others: [&[u8]; 4] = [b"/a/\xff", b"\x80", b"\xed\xa0\x80", b"\xff\xfe"];
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
                let keys = texts.iter().map(|text| text.as_bytes()).chain(others);
                for key in keys {
                    let expected = key >= start && key < end;
                    let kept = text(key);
                    let is_in = found.as_ref().is_some_and(|KeySpans { texts, others }| {
                        let is_other = others.as_ref().is_some_and(|others| others.contains(&kept));
                        texts.contains(&kept) || is_other
                    });
                    assert_eq!(is_in, expected, "{key:x?} in {start:x?}..{end:x?}: {found:?}");
                    assert_eq!((&*bytes(&kept), order(&kept, &text(start))), (key, key.cmp(start)));
                }
            }
        }
        let prefix = span(b"/a/", b"/a0").unwrap();
        assert_eq!(prefix.texts, KeySpan::prefix("/a/"), "it is found by its slashes");
        let one = |key| KeySpans { texts: KeySpan::Key(key), others: None };
        assert_eq!(span(b"/a", b""), Some(one("/a".into())));
        assert_eq!(span(b"\xff", b""), Some(one("\u{10ffff}ff".into())));
        assert_eq!(span(b"b", b"a"), None);
        let all = span(b"\0", b"\0").unwrap();
        for key in [&b"\0"[..], b"a", b"\xff\xff", "\u{10ffff}".as_bytes()] {
            let kept = text(key);
            assert!(all.texts.contains(&kept) != all.others.as_ref().unwrap().contains(&kept), "{key:x?}");
        }
    }
}
