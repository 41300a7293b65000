//! What tests start.

use crate::invocation::Invocation;

/// An invocation with its words.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) image: String,
    pub(crate) command: Vec<String>,
    pub(crate) args: Vec<String>,
    pub(crate) stop_signal: Option<String>,
}

/// A command line in an image.
pub(crate) fn given(image: &str, command: &[&str], args: &[&str]) -> Given {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    Given { image: image.into(), command: words(command), args: words(args), stop_signal: None }
}

impl Given {
    pub(crate) fn invocation(&self) -> Invocation<'_> {
        let stop_signal = self.stop_signal.as_deref();
        Invocation { stop_signal, ..Invocation::new(&self.image, &self.command, &self.args) }
    }
}
