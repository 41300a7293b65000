//! `Span`: a duration as Go writes it, in rules.

use std::time::Duration;

use golang::duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration; in a text `1m30s`, `250ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl From<Duration> for Span {
    fn from(duration: Duration) -> Span {
        Span(duration)
    }
}

impl std::str::FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        duration::parse(text).map(Span).ok_or_else(|| format!("{text:?} is no duration; try 250ms or 1m30s"))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration::format(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
