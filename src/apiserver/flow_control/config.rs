//! How many requests are worked on at once (`GenericServerRunOptions`).

use clap::{ArgAction, Args};

use component_base::flags::defaults;

/// What the flags say.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = "APIs")]
pub struct FlowControlOptions {
    /// Reads that are worked on at once; 0 is no limit. Without priority and fairness; with it, this and the
    /// next add up to what all priority levels share.
    #[arg(id = "max-requests-inflight", long, value_name = "N", default_value_t = 400,
        value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    pub max_requests: u64,
    /// Writes that are worked on at once; 0 is no limit.
    #[arg(id = "max-mutating-requests-inflight", long, value_name = "N", default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(..=u64::from(u32::MAX)))]
    pub max_mutating_requests: u64,
    /// Whether requests take turns by FlowSchemas and priority levels.
    #[arg(id = "enable-priority-and-fairness", long, action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub priority_and_fairness: bool,
}

impl Default for FlowControlOptions {
    fn default() -> FlowControlOptions {
        defaults()
    }
}
