//! What is told of a request that another API server answered.

use std::time::Duration;

use flow::PassingBytes;

/// On an answer of kube-aggregator: who was asked, and how. For those who tell the story of a request.
#[derive(Clone, Debug, Default)]
pub struct PassedOn {
    /// As `v1.agg.example.com`.
    pub api_service: String,
    /// As `default/agg:443`.
    pub service: String,
    /// Which endpoint of it.
    pub address: Option<String>,
    /// Whose word was taken for it.
    pub trust: String,
    /// Until the answer began.
    pub took: Duration,
    /// Why there is no answer of the other server.
    pub why: Option<String>,
    /// What it asked here meanwhile about who asked it.
    pub reviews: Vec<String>,
    /// What was sent, of a create: it says the name.
    pub body: Option<PassingBytes>,
}
