//! `kubarium diff SNAPSHOT SNAPSHOT`: what is different, field by field.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{Failure, outcome, snapshot};
use crate::cluster::{Snapshot, SnapshotDiff};

/// What stands for a running cluster.
const LIVE: &str = "live";
/// As diff(1) and kubectl diff say that they failed: 1 means that there are differences.
const TROUBLE: u8 = 2;

/// Show what is different between two snapshots: objects that came and went, and fields that changed.
///
/// The exit code is 0 when nothing is different, 1 when something is, and more when that could not be found
/// out. Leases, Events, what every cluster has, times of heartbeats and what only says how something was
/// written are compared with --all alone.
#[derive(Args)]
pub struct Diff {
    /// A file that `snapshot save` wrote, - for the standard input, the folder that a failed `kubarium run`
    /// has left, or `live`: a running cluster.
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// What it is compared with, of either sort.
    #[arg(value_name = "AFTER", default_value = LIVE)]
    pub after: String,
    /// The name of the cluster that is `live`; else the only one, or that of kubectl's current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Compare everything.
    #[arg(long)]
    pub all: bool,
    /// How: a line for each field, or everything as JSON or YAML.
    #[arg(short, long, default_value = "text", value_name = "FORMAT")]
    pub output: DiffFormat,
}

/// How differences are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// For people.
    Text,
    /// One object of all.
    Json,
    /// As JSON.
    Yaml,
}

impl Diff {
    /// Prints it.
    pub fn run(self) -> ExitCode {
        match self.compare() {
            Ok(diff) => ExitCode::from(u8::from(!diff.is_empty())),
            Err(failure) => {
                outcome::complain(&failure);
                ExitCode::from(TROUBLE)
            }
        }
    }

    fn compare(&self) -> Result<SnapshotDiff, Failure> {
        let (before, after) = (self.take(&self.before)?, self.take(&self.after)?);
        let compared = async {
            let diff = before.diff(&after, self.all).await;
            diff.map_err(|error| Failure(error.to_string()))
        };
        let diff = super::block_on(compared)?;
        let text = match self.output {
            DiffFormat::Text => diff.to_string(),
            DiffFormat::Json => serde_json::to_string_pretty(&diff).unwrap_or_default(),
            DiffFormat::Yaml => serde_yaml::to_string(&diff).unwrap_or_default(),
        };
        if !text.is_empty() {
            super::say(text.trim_end());
        }
        Ok(diff)
    }

    fn take(&self, what: &str) -> Result<Snapshot, Failure> {
        match what {
            LIVE => snapshot::live(self.name.as_deref(), false),
            file => snapshot::read(Path::new(file)),
        }
    }
}
