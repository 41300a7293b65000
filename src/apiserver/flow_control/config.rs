//! How many requests are worked on at once (`GenericServerRunOptions`).

/// What the flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControlConfig {
    /// `--enable-priority-and-fairness`: whether levels share what the next two add up to; else reads and
    /// writes are bounded each for itself.
    pub priority_and_fairness: bool,
    /// `--max-requests-inflight`: reads at once; 0 is as many as there are.
    pub max_requests: u64,
    /// `--max-mutating-requests-inflight`: the same of writes.
    pub max_mutating_requests: u64,
}

impl Default for FlowControlConfig {
    fn default() -> Self {
        FlowControlConfig { priority_and_fairness: true, max_requests: 400, max_mutating_requests: 200 }
    }
}
