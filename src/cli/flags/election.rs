//! Flags of leader election (`config/options.BindLeaderElectionFlags`).

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::cli::outcome::Failure;
use apimachinery::duration::parse_period;
use client_go::leader_election_times::LeaderElectionTimes;

/// Of several, who works.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Leader election")]
pub struct ElectionFlags {
    /// Whether controllers and scheduler work only while they hold their Lease, so that there may be several.
    ///
    /// Where a cluster has its store to itself (no --etcd-servers) nobody else asks, and nothing waits for a
    /// Lease: those of kube-system say who works, unless this is off.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,
    /// After so long without a word of the leader another takes its place.
    #[arg(long, default_value = "15s", value_parser = parse_period)]
    pub leader_elect_lease_duration: Duration,
    /// A leader that cannot renew the Lease for so long ends.
    #[arg(long, default_value = "10s", value_parser = parse_period)]
    pub leader_elect_renew_deadline: Duration,
    /// The pause between two attempts.
    #[arg(long, default_value = "2s", value_parser = parse_period)]
    pub leader_elect_retry_period: Duration,
}

impl ElectionFlags {
    /// How long everything takes; none when there is no election.
    ///
    /// # Errors
    /// Times by which two could lead at once.
    pub fn times(&self) -> Result<Option<LeaderElectionTimes>, Failure> {
        let times = LeaderElectionTimes {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        times.check().map_err(|why| Failure(format!("--leader-elect-...: {why}")))?;
        Ok(Some(times).filter(|_| self.leader_elect))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        flags: ElectionFlags,
    }

    #[test]
    fn the_defaults_are_upstreams_and_times_that_let_two_lead_are_refused() {
        let parsed = |words: &[&str]| Only::try_parse_from(["x"].iter().chain(words)).unwrap().flags;
        assert_eq!(parsed(&[]).times().unwrap(), Some(LeaderElectionTimes::default()));
        assert!(parsed(&["--leader-elect=false"]).times().unwrap().is_none());
        let Failure(why) = parsed(&["--leader-elect-lease-duration=5s"]).times().unwrap_err();
        assert!(why.ends_with("leaseDuration must be greater than renewDeadline"), "{why}");
    }
}
