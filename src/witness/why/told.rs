//! `Explanation`: what is so, and why, as a tree of words.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use apis::scheme::Scheme;
use client_go::client::Client;

/// Something that is so, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// In words.
    pub is: String,
    /// What led to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Explanation>,
}

/// Whom to ask.
pub struct Witnesses<'a> {
    /// Sees all objects.
    pub client: &'a Client,
    /// Knows their kinds.
    pub scheme: &'a Scheme,
}

impl Explanation {
    pub(super) fn new(is: impl Into<String>) -> Explanation {
        Explanation { is: is.into(), because: vec![] }
    }

    pub(super) fn add(&mut self, is: impl Into<String>) {
        self.because.push(Explanation::new(is));
    }

    /// As lines, each further in than what it led to.
    pub fn render(&self) -> String {
        let mut text = String::new();
        self.write(0, &mut text);
        text
    }

    fn write(&self, depth: usize, text: &mut String) {
        let lead = if depth == 0 { String::new() } else { format!("{}- ", "  ".repeat(depth - 1)) };
        text.push_str(&format!("{lead}{}\n", self.is));
        self.because.iter().for_each(|cause| cause.write(depth + 1, text));
    }
}

pub(super) fn condition_words(condition: &Value) -> Explanation {
    let (name, status) = (text(&condition["type"]), text(&condition["status"]));
    let mut told = Explanation::new(format!("condition {name} is {status}"));
    match (text(&condition["reason"]), text(&condition["message"])) {
        ("", "") => {}
        (reason, "") => told.add(reason),
        ("", message) => told.add(message),
        (reason, message) => told.add(format!("{reason}: {message}")),
    }
    told
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
