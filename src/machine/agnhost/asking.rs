//! Servers of agnhost that ask others before they answer: they run a client as a script would.

use std::sync::Arc;
use std::time::Duration;

use crate::exec::{self, Executed};
use crate::questions::{Answered, Question};
use crate::surroundings::Surroundings;

/// What a server finds, and what it was answered so far.
#[derive(Clone, Copy)]
pub struct Backing<'a> {
    /// Nothing where that is not known.
    pub around: Option<&'a Surroundings>,
    /// To its questions for this request, in their order.
    pub answers: &'a Arc<Vec<Answered>>,
    /// Who asks over TLS, where that was asked; nothing on other connections.
    pub client: Option<&'a TlsClient<'a>>,
}

/// A client of a server that asks for certificates.
pub struct TlsClient<'a> {
    /// Those that it has shown, as DER, its own first; none where it has none.
    pub chain: &'a [Vec<u8>],
    /// Whether authorities, as PEM, vouch for it now.
    pub is_vouched_for: &'a (dyn Fn(&str) -> bool + Sync),
}

/// What stands between what one client said and how it ended.
pub(super) const MARK: &str = "\u{1}";

/// A question that is to be answered first, and how long after the beginning it is asked.
pub(crate) type AskFirst = (Duration, Question);

impl Backing<'_> {
    /// Runs a script with such variables, as far as the answers lead.
    ///
    /// # Errors
    /// What it asks next.
    pub(crate) fn run(&self, script: &str, variables: &[(&str, &str)]) -> Result<Executed, Box<AskFirst>> {
        let mut around = self.answered();
        let named = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        around.variables.extend(named);
        let words = ["/bin/sh", "-c", script].map(str::to_owned);
        executed(exec::exec(&words, &around, vec![], Some(vec![])))
    }

    /// Runs a program of the image, as far as the answers lead.
    ///
    /// # Errors
    /// What it asks next.
    pub(crate) fn execute(&self, words: &[&str]) -> Result<Executed, Box<AskFirst>> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        executed(exec::exec_told(&words, &self.answered(), vec![], Some(vec![])))
    }

    fn answered(&self) -> Surroundings {
        let mut around = self.around.cloned().unwrap_or_default();
        around.answers = self.answers.clone();
        around
    }
}

fn executed(executed: Option<Executed>) -> Result<Executed, Box<AskFirst>> {
    let executed = executed.unwrap_or_default();
    match executed.question {
        Some(question) => Err(Box::new(question)),
        None => Ok(executed),
    }
}
