//! What Apache's expressions (`ap_expr`) say, as `expr=` and `<If>` have them: comparisons of what is known
//! of a request and of its answer.

use std::collections::BTreeMap;

use super::apache_patterns::ApachePattern;
use crate::requests::{WebAnswer, WebRequest};

/// What holds or does not.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ApacheCondition {
    Constant(bool),
    Not(Box<ApacheCondition>),
    And(Box<ApacheCondition>, Box<ApacheCondition>),
    Or(Box<ApacheCondition>, Box<ApacheCondition>),
    /// `-z`, `-n`, `-T`
    Unary(char, ExpressionWord),
    /// `==`, `-lt` and their kin.
    Compared(&'static str, ExpressionWord, ExpressionWord),
    /// `=~`, and whether it is to fit.
    Matched(ExpressionWord, ApachePattern, bool),
}

/// A text that is put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExpressionWord(pub(super) Vec<WordPart>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum WordPart {
    Text(String),
    Variable(&'static str),
    Called(&'static str, ExpressionWord),
}

/// What expressions are asked of.
pub(super) struct RequestFacts<'a> {
    pub(super) asked: &'a WebRequest<'a>,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) environment: &'a BTreeMap<String, String>,
    /// What is answered, where that is known.
    pub(super) answered: Option<&'a WebAnswer>,
}

impl ApacheCondition {
    pub(super) fn holds(&self, facts: &RequestFacts<'_>) -> bool {
        match self {
            ApacheCondition::Constant(holds) => *holds,
            ApacheCondition::Not(inner) => !inner.holds(facts),
            ApacheCondition::And(one, other) => one.holds(facts) && other.holds(facts),
            ApacheCondition::Or(one, other) => one.holds(facts) || other.holds(facts),
            ApacheCondition::Unary(letter, word) => {
                let text = word.text(facts);
                match letter {
                    'z' => text.is_empty(),
                    'n' => !text.is_empty(),
                    _ => {
                        let off = ["", "0", "off", "false", "no"];
                        !off.iter().any(|off| text.eq_ignore_ascii_case(off))
                    }
                }
            }
            ApacheCondition::Compared(operator, one, other) => {
                compares(operator, &one.text(facts), &other.text(facts))
            }
            ApacheCondition::Matched(word, pattern, fits) => pattern.is_match(&word.text(facts)) == *fits,
        }
    }
}

/// Texts by their letters, or numbers: what is none is 0.
fn compares(operator: &str, one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim().parse::<i64>().unwrap_or_default();
    match operator {
        "==" => one == other,
        "!=" => one != other,
        "<=" => one <= other,
        ">=" => one >= other,
        "<" => one < other,
        ">" => one > other,
        "-eq" => number(one) == number(other),
        "-ne" => number(one) != number(other),
        "-le" => number(one) <= number(other),
        "-ge" => number(one) >= number(other),
        "-lt" => number(one) < number(other),
        _ => number(one) > number(other),
    }
}

impl ExpressionWord {
    fn text(&self, facts: &RequestFacts<'_>) -> String {
        let part = |part: &WordPart| match part {
            WordPart::Text(text) => text.clone(),
            WordPart::Variable(name) => facts.variable(name),
            WordPart::Called(name, of) => facts.call(name, &of.text(facts)),
        };
        self.0.iter().map(part).collect()
    }
}

impl RequestFacts<'_> {
    fn header(&self, name: &str) -> String {
        self.asked.header(&name.to_ascii_lowercase()).unwrap_or_default().to_owned()
    }

    /// What one of Apache's variables is.
    pub(super) fn variable(&self, name: &str) -> String {
        let (address, port) = self.asked.client();
        match name {
            "CONTENT_TYPE" => self.call("resp", "content-type"),
            "HTTPS" => "off".to_owned(),
            "QUERY_STRING" => self.query.to_owned(),
            "REMOTE_ADDR" => address.trim_matches(['[', ']']).to_owned(),
            "REMOTE_PORT" => port.to_owned(),
            "REQUEST_METHOD" => self.asked.method.to_owned(),
            "REQUEST_SCHEME" => "http".to_owned(),
            "REQUEST_STATUS" => self.answered.map(|answered| answered.code.to_string()).unwrap_or_default(),
            "DOCUMENT_URI" | "REQUEST_URI" => self.path.to_owned(),
            "SERVER_NAME" => {
                let host = self.header("host");
                host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name).to_owned()
            }
            "SERVER_PROTOCOL" => "HTTP/1.1".to_owned(),
            "THE_REQUEST" => format!("{} {} HTTP/1.1", self.asked.method, self.asked.target),
            header => self.header(&header.trim_start_matches("HTTP_").replace('_', "-")),
        }
    }

    fn call(&self, name: &str, of: &str) -> String {
        match name {
            "tolower" => of.to_lowercase(),
            "toupper" => of.to_uppercase(),
            "env" | "reqenv" => self.environment.get(of).cloned().unwrap_or_default(),
            "resp" => self.answered.and_then(|answered| said(answered, of)).unwrap_or_default(),
            _ => self.header(of),
        }
    }
}

/// A header of an answer.
fn said(answered: &WebAnswer, name: &str) -> Option<String> {
    let own = answered.own_headers.iter().map(|(own, value)| (own.as_str(), value));
    let all = answered.headers.iter().map(|(own, value)| (*own, value)).chain(own);
    let found = all.clone().find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.clone())
}
