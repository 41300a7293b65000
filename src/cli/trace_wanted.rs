//! Which part of a trace somebody asks for.

use clap::Args;

use super::Failure;
use flow::{Lane, WantedSteps};

/// The flags that leave something out of a trace.
#[derive(Args)]
pub(crate) struct WantedPart {
    /// Only what happened there: apiserver, controllers, scheduler or kubelets.
    #[arg(long, value_parser = Lane::ALL.map(Lane::name))]
    lane: Option<String>,
    /// Only what led to this pod and what came of it: NAME or NAMESPACE/NAME.
    #[arg(long, value_name = "POD")]
    pod: Option<String>,
    /// Only what happened in the last of this time, as 30s, 5m or 1h.
    #[arg(long, value_name = "DURATION")]
    since: Option<String>,
    /// Only what this user asked for and what came of it, as jane or replicaset-controller.
    #[arg(long)]
    user: Option<String>,
    /// Only writes: what was stored, or refused.
    #[arg(long, value_parser = ["writes"])]
    only: Option<String>,
}

impl WantedPart {
    /// Whether it says which part of the whole cluster's record is meant.
    pub(super) fn is_any(&self) -> bool {
        self.pod.is_some() || self.since.is_some() || self.user.is_some()
    }

    /// What it says.
    pub(super) fn read(&self) -> Result<WantedSteps, Failure> {
        let since = self.since.as_deref().map(|text| {
            let since = golang::duration::parse_flag(text);
            since.map_err(|error| Failure(format!("--since {text:?}: {error}; say it as 30s, 5m or 1h")))
        });
        let since = since.transpose()?;
        Ok(WantedSteps {
            lane: Lane::ALL.into_iter().find(|lane| self.lane.as_deref() == Some(lane.name())),
            pod: self.pod.clone(),
            since_microseconds: since.map(|since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX)),
            user: self.user.clone(),
            only_writes: self.only.is_some(),
        })
    }
}
