//! DER (ITU-T X.690), as far as keys and certificates need it: one element read, one element written.

/// `INTEGER`
pub const INTEGER: u8 = 0x02;
/// `BIT STRING`
pub const BIT_STRING: u8 = 0x03;
/// `OCTET STRING`
pub const OCTET_STRING: u8 = 0x04;
/// `OBJECT IDENTIFIER`
pub const OBJECT_IDENTIFIER: u8 = 0x06;
/// `SEQUENCE`
pub const SEQUENCE: u8 = 0x30;

/// One element, read: its tag, its content, and itself whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// As [`SEQUENCE`].
    pub tag: u8,
    /// What is in it.
    pub content: &'a [u8],
    /// With tag and length.
    pub whole: &'a [u8],
}

/// The first element and what follows it; nothing when the bytes are no DER.
pub fn read(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (tag, first) = (*bytes.first()?, *bytes.get(1)?);
    let (start, length) = match first {
        0..=0x7f => (2, usize::from(first)),
        // More than four bytes of length are more than anybody may send.
        0x81..=0x84 => {
            let start = 2 + usize::from(first - 0x80);
            let digits = bytes.get(2..start)?;
            (start, digits.iter().fold(0, |length, digit| (length << 8) | usize::from(*digit)))
        }
        _ => return None,
    };
    let end = start.checked_add(length)?;
    let (whole, rest) = bytes.split_at_checked(end)?;
    Some((Element { tag, content: &whole[start..], whole }, rest))
}

/// The elements of a content; nothing when any of them is broken.
pub fn read_all(content: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut rest = content;
    let mut elements = Vec::new();
    while !rest.is_empty() {
        let (element, after) = read(rest)?;
        elements.push(element);
        rest = after;
    }
    Some(elements)
}

/// The elements of the one sequence that `bytes` are.
pub fn read_sequence(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    match read(bytes)? {
        (Element { tag: SEQUENCE, content, .. }, []) => read_all(content),
        _ => None,
    }
}

/// An element with a content.
pub fn write(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length @ 0..=0x7f) => out.push(length),
        _ => {
            let digits = content.len().to_be_bytes();
            let digits = &digits[digits.iter().take_while(|digit| **digit == 0).count()..];
            out.push(0x80 | u8::try_from(digits.len()).unwrap_or(8));
            out.extend_from_slice(digits);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of elements that are written already.
pub fn write_sequence(elements: &[&[u8]]) -> Vec<u8> {
    write(SEQUENCE, &elements.concat())
}

/// A bit string of whole bytes.
pub fn write_bits(bytes: &[u8]) -> Vec<u8> {
    write(BIT_STRING, &[&[0], bytes].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x1_0000] {
            let content = vec![7; length];
            let written = write(OCTET_STRING, &content);
            let (element, rest) = read(&written).unwrap();
            assert_eq!((element.tag, element.content, rest), (OCTET_STRING, &*content, &[][..]));
            assert_eq!(element.whole, written);
            assert!(written.len() < 2 || read(&written[..written.len() - 1]).is_none() || length == 0);
        }
        let sequence = write_sequence(&[&write(INTEGER, &[1]), &write_bits(&[2])]);
        let elements = read_sequence(&sequence).unwrap();
        assert_eq!((elements[0].content, elements[1].content), (&[1][..], &[0, 2][..]));
        for broken in [&[][..], &[0x30], &[0x30, 0x80], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 2, 1]] {
            assert_eq!(read(broken), None);
        }
    }
}
