//! `Uid`: which of several objects of one name a step is about.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An object's `metadata.uid`. Sixteen bytes and no text, because each write is recorded with one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uid([u8; 16]);

impl Uid {
    /// Of its text, as `0b39a5c1-6a7f-4d8e-9a61-3c2f1d0e4b5a`; nothing for a text that is no UUID, which the
    /// apiserver never gives to an object.
    pub fn parse(text: &str) -> Option<Uid> {
        let mut bytes = [0; 16];
        let mut digits = 0;
        for (at, letter) in text.bytes().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if letter != b'-' {
                    return None;
                }
                continue;
            }
            let digit = char::from(letter).to_digit(16)? as u8;
            *bytes.get_mut(digits / 2)? |= if digits % 2 == 0 { digit << 4 } else { digit };
            digits += 1;
        }
        (digits == 32).then_some(Uid(bytes))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Uid, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uid::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no UUID")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_read_and_written_as_it_was() {
        let text = "0b39a5c1-6a7f-4d8e-9a61-3c2f1d0e4b5a";
        let uid = Uid::parse(text).unwrap();
        assert_eq!(uid.to_string(), text);
        assert_eq!(serde_json::from_str::<Uid>(&format!("{text:?}")).unwrap(), uid);
        for wrong in ["", "uid-1", &text[1..], &format!("{text}0"), &text.replace('-', "0")] {
            assert_eq!(Uid::parse(wrong), None, "{wrong}");
        }
    }
}
