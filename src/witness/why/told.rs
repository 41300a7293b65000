//! `Explanation`: what is so, and why, as a tree of words.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use apis::scheme::Scheme;
use client_go::client::Client;
use flow::wrap::wrap;

/// In a terminal that is narrower than this leaves room for, lines are broken by the terminal.
const MIN_COLUMNS: usize = 24;

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
        self.render_within(None)
    }

    /// As [`Explanation::render`] for so many columns: what is too long goes on in the next line, and what
    /// is far in stays in the left half.
    pub fn render_within(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        self.write(0, columns.unwrap_or(usize::MAX), &mut text);
        text
    }

    fn write(&self, depth: usize, columns: usize, text: &mut String) {
        let indent = (2 * depth.saturating_sub(1)).min(columns / 2);
        let said = if depth == 0 { self.is.clone() } else { format!("- {}", self.is) };
        let blanks = " ".repeat(indent);
        for (at, line) in wrap(&said, columns.saturating_sub(indent).max(MIN_COLUMNS)).iter().enumerate() {
            let further = if at == 0 { "" } else { "  " };
            text.push_str(&format!("{blanks}{further}{line}\n"));
        }
        self.because.iter().for_each(|cause| cause.write(depth + 1, columns, text));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_goes_on_further_in_and_what_is_deep_stays_left() {
        let mut told = Explanation::new("the leaf");
        for _ in 0..40 {
            told = Explanation { is: "one that is because of the next one".into(), because: vec![told] };
        }
        let text = told.render_within(Some(40));
        assert!(text.lines().all(|line| line.chars().count() <= 20 + MIN_COLUMNS), "{text}");
        assert!(
            text.starts_with("one that is because of the next one\n- one that is because of the next one\n")
        );
        assert!(text.ends_with(&format!("{}- the leaf\n", " ".repeat(20))), "{text}");
        // In a pipe lines are whole, and as far in as they are deep.
        assert!(told.render().ends_with(&format!("\n{}- the leaf\n", " ".repeat(2 * 39))));
        let wide = Explanation::new("a word and another");
        assert_eq!(wide.render_within(Some(24)), "a word and another\n");
    }
}
