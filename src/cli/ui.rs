//! `kubarium ui`: a link to the page that shows a running cluster at work.

use clap::Args;
use http::Method;
use serde_json::Value;

use super::asked::WhichCluster;
use super::{Failure, say};

/// Print a link to the page that shows a cluster at work, in a browser of this machine.
///
/// The link works once, for ten minutes, and whoever opens it does what you may do.
#[derive(Args)]
pub struct UiCommand {
    /// Which cluster.
    #[command(flatten)]
    pub which: WhichCluster,
}

impl UiCommand {
    /// Asks for the link and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let told: Value = self.which.ask(Method::POST, "/ui", &Value::Null)?;
        let link = told["url"].as_str();
        say(link.ok_or_else(|| Failure("the cluster's answer has no link".into()))?);
        Ok(())
    }
}
