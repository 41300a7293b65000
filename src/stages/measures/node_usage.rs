//! What a kubelet knows of what its pods use, for the functions of expressions.

/// Whose use of what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageOf<'a> {
    /// Namespace and name; none for all pods of the node.
    pub pod: Option<(&'a str, &'a str)>,
    /// One of its containers; none for all.
    pub container: Option<&'a str>,
    /// As `cpu`.
    pub resource: &'a str,
}

/// What a node's pods use.
pub trait NodeUsage: Send + Sync {
    /// Now, in whole units; of what does not run, nothing.
    fn usage(&self, of: &UsageOf<'_>) -> f64;

    /// Since the start of each container that runs, in units times seconds.
    fn cumulative_usage(&self, of: &UsageOf<'_>) -> f64;

    /// How many containers the kubelet has started.
    fn started_containers(&self) -> u64;
}
