//! `kubarium settle`: waits until nothing moves in a cluster.

use clap::Args;
use http::Method;
use serde_json::{Value, json};

use super::Failure;
use super::asked::WhichCluster;

/// Wait until nothing moves in a cluster; else say what does.
#[derive(Args)]
pub struct SettleCommand {
    /// And that for so long no client outside has asked for anything, as 500ms.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub quiet: String,
    /// Users whose requests do not count, as of a dashboard that polls; may be given several times.
    #[arg(long, value_delimiter = ',', value_name = "USER")]
    pub ignore: Vec<String>,
    /// How long to wait at most.
    #[arg(long, visible_alias = "within", default_value = "30s", value_name = "DURATION")]
    pub timeout: String,
    /// Which cluster.
    #[command(flatten)]
    pub which: WhichCluster,
}

impl SettleCommand {
    /// Waits; a cluster that does not come to rest is a failure.
    pub fn run(self) -> Result<(), Failure> {
        let body = json!({"quiet": self.quiet, "ignore": self.ignore, "within": self.timeout});
        self.which.ask(Method::POST, "/settle", &body).map(|_: Value| ())
    }
}
