//! Bytes as texts: the shell and its programs work on texts, and what goes through them comes out as the
//! bytes that it was.
//!
//! A byte that is part of no letter is one of 128 letters of a private use area (U+EF80 to U+EFFF). Whoever
//! writes one of these letters gets its three bytes one by one, so each text is the picture of one row of
//! bytes only.

use std::borrow::Cow;

/// The letter of the byte 0x80.
const FIRST: u32 = 0xef80;
/// The letter of the byte 0xff.
const LAST: u32 = 0xefff;
/// What these letters begin with in UTF-8.
const LEAD: u8 = 0xee;

/// The text that stands for these bytes.
pub fn text_of(bytes: &[u8]) -> String {
    if let Ok(text) = str::from_utf8(bytes)
        && is_plain(text)
    {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match byte_of(letter) {
                None => text.push(letter),
                Some(_) => text.extend(letter.encode_utf8(&mut [0; 4]).bytes().map(letter_of)),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(letter_of));
    }
    text
}

/// The bytes that a text stands for.
pub fn bytes_of(text: &str) -> Cow<'_, [u8]> {
    if is_plain(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match byte_of(letter) {
            None => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            Some(byte) => bytes.push(byte),
        }
    }
    Cow::Owned(bytes)
}

/// How many bytes a text stands for.
pub fn byte_count(text: &str) -> usize {
    bytes_of(text).len()
}

/// A text for whoever takes letters only: bytes that are none are shown as U+FFFD.
pub fn shown(text: &str) -> Cow<'_, str> {
    match bytes_of(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The letter of a byte that stands for itself.
pub(crate) fn letter_of(byte: u8) -> char {
    if byte.is_ascii() {
        return char::from(byte);
    }
    char::from_u32(FIRST - 0x80 + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that a letter stands for.
fn byte_of(letter: char) -> Option<u8> {
    let code = u32::from(letter);
    (FIRST..=LAST).contains(&code).then(|| u8::try_from(code - FIRST + 0x80).ok()).flatten()
}

/// Whether no letter stands for a byte.
fn is_plain(text: &str) -> bool {
    !text.as_bytes().contains(&LEAD) || !text.chars().any(|letter| byte_of(letter).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        let every: Vec<u8> = (0..=255).rev().chain(0..=255).collect();
        let private = "a\u{ef80}\u{efff}\u{ef7f}\u{f000}\u{e9}";
        for bytes in [&every[..], private.as_bytes(), b"plain", b"", b"\xc3", b"\xee\xbe"] {
            let text = text_of(bytes);
            assert_eq!(*bytes_of(&text), *bytes);
            assert_eq!(byte_count(&text), bytes.len());
        }
        assert_eq!(text_of("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
    }

    #[test]
    fn what_is_no_letter_is_shown_as_one() {
        assert_eq!(shown(&text_of(b"a\xffb")), "a\u{fffd}b");
        assert_eq!(shown("a\u{e9}"), "a\u{e9}");
        let halves = [letter_of(0xc3), letter_of(0xa9)];
        assert_eq!(shown(&String::from_iter(halves)), "\u{e9}");
    }
}
