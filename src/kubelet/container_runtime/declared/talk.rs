//! Text protocols over TCP, as what is expected and what is sent then.

use std::time::Duration;

use golang::first_bytes::first_bytes;
use serde::Deserialize;

golang::text_error! {
    /// What is no list of exchanges; for people.
    pub(crate) struct BadTalk;
}

/// So many exchanges may be declared for a port; an annotation with more is refused.
const MAX_EXCHANGES: usize = 256;

/// `kubarium.dev/tcp.N`: `echo`, or a greeting and exchanges.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Talk {
    /// Sends back whatever comes.
    #[serde(skip)]
    pub(crate) is_echo: bool,
    /// Sent at once when a connection is there.
    pub(crate) greeting: String,
    pub(crate) exchanges: Vec<TalkExchange>,
}

/// What is said to what.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TalkExchange {
    /// It is met when this was received since the last one; nothing is met by any line.
    expect: String,
    pub(crate) send: String,
    #[serde(deserialize_with = "super::read::duration")]
    pub(crate) delay: Duration,
    /// The connection ends with it.
    pub(crate) close: bool,
}

/// A list of exchanges, or all of it.
#[derive(Deserialize)]
#[serde(untagged)]
enum TalkForm {
    List(Vec<TalkExchange>),
    Whole(Talk),
}

impl Talk {
    pub(crate) fn parse(text: &str) -> Result<Talk, BadTalk> {
        if text.trim() == "echo" {
            return Ok(Talk { is_echo: true, ..Talk::default() });
        }
        let talk = match apimachinery::yaml::from_str(text) {
            Ok(TalkForm::List(exchanges)) => Talk { exchanges, ..Talk::default() },
            Ok(TalkForm::Whole(talk)) => talk,
            Err(_) => return Err(HELP.into()),
        };
        if talk.exchanges.len() > MAX_EXCHANGES {
            return Err(
                format!("has {} exchanges, at most {MAX_EXCHANGES} are taken", talk.exchanges.len()).into()
            );
        }
        Ok(talk)
    }

    /// The exchange that is met first in what was received, and how much of that it takes. In as much as
    /// `searched` of it none was met before.
    pub(crate) fn met(&self, received: &str, searched: usize) -> Option<(&TalkExchange, usize)> {
        let from = searched.saturating_sub(self.longest());
        let begin = first_bytes(received, from).len();
        let (exchange, end) = self.first_met(&received[begin..])?;
        Some((exchange, begin + end))
    }

    fn longest(&self) -> usize {
        self.exchanges.iter().map(|exchange| exchange.expect.len()).max().unwrap_or(0)
    }

    fn first_met(&self, received: &str) -> Option<(&TalkExchange, usize)> {
        let place = |exchange: &TalkExchange| match exchange.expect.as_str() {
            "" => received.find('\n').map(|at| at + 1),
            wanted => received.find(wanted).map(|at| at + wanted.len()),
        };
        // Of those that are met at the same place the first one in the list counts.
        let met = self.exchanges.iter().filter_map(|exchange| Some((exchange, place(exchange)?)));
        met.min_by_key(|(_, end)| *end)
    }
}

const HELP: &str = "is neither \"echo\" nor exchanges like [{expect: \"PING\", send: \"+PONG\\r\\n\"}] (each may \
                    have delay and close) nor {greeting: TEXT, exchanges: [...]}";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(talk: &Talk, received: &str) -> Option<(String, usize)> {
        talk.met(received, 0).map(|(exchange, taken)| (exchange.send.clone(), taken))
    }

    #[test]
    fn the_first_exchange_that_is_met_is_answered() {
        let talk = Talk::parse("[{expect: PING, send: PONG}, {expect: IN, send: no}, {send: what}]").unwrap();
        assert_eq!(said(&talk, "x PING\r\n"), Some(("no".into(), 5)));
        assert_eq!(said(&talk, "PI"), None);
        let met = talk.met("\u{e9}\u{e9}\u{e9} PING", 9).unwrap();
        assert_eq!((met.0.send.as_str(), met.1), ("no", 10));
        assert_eq!(said(&talk, "hello\nPING\n"), Some(("what".into(), 6)));
        let whole =
            Talk::parse("greeting: \"220 mail\\n\"\nexchanges: [{expect: QUIT, send: bye, close: true}]");
        let whole = whole.unwrap();
        assert_eq!((whole.greeting.as_str(), whole.exchanges[0].close), ("220 mail\n", true));
        assert!(Talk::parse(" echo\n").unwrap().is_echo);
    }

    #[test]
    fn what_is_no_talk_is_told() {
        for text in ["hello", "[{expects: a}]", "{greet: a}", "7"] {
            assert!(Talk::parse(text).unwrap_err().starts_with("is neither \"echo\" nor"), "{text}");
        }
        let many = format!("[{}]", "{send: a},".repeat(MAX_EXCHANGES + 1));
        assert_eq!(Talk::parse(&many).unwrap_err(), "has 257 exchanges, at most 256 are taken");
    }
}
