//! Where `kubarium trace` gets its steps from, and how they are to look.

use std::io::IsTerminal;

use super::connection::Context;
use super::state::Record;
use super::style::Style;
use super::traced::Traced;
use super::{Failure, terminal};
use flow::Trace as Story;
use flow::story::Look;

/// As standard output is: a file or a pipe gets whole lines and all stages.
pub(super) fn look(all: bool) -> Look {
    Look {
        columns: terminal::columns(),
        colour: Style::of_stdout().is_coloured(),
        whole: all || !std::io::stdout().is_terminal(),
        details: all,
    }
}

/// Whom to ask for which trace.
pub(super) struct TraceSource {
    pub(super) record: Record,
    pub(super) namespace: String,
    pub(super) context: Context,
    pub(super) path: String,
    pub(super) traced: Option<Traced>,
}

impl TraceSource {
    /// The trace as it is now.
    pub(super) async fn ask(&self) -> Result<Story, Failure> {
        let answer = self.context.get(&self.path).await?;
        serde_json::from_slice(&answer)
            .map_err(|error| Failure::new("the cluster's answer is not understood", error))
    }
}
