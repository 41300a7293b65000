//! What a story is made of.

use serde::{Deserialize, Serialize};

use crate::lane::Lane;
use crate::recorded::StepId;
use crate::uid::Uid;

/// What a stage is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageKind {
    /// A component starts.
    Start,
    /// A client asks what is served.
    Discovery,
    /// Somebody asks the apiserver.
    Request,
    /// Authentication and authorization.
    Checks,
    /// The mux finds the handler, which reads the body.
    Decoding,
    /// Admission plugins and webhooks.
    Admission,
    /// kube-aggregator passes it on to another API server.
    Aggregator,
    /// etcd has it.
    Store,
    /// Watches, informers and queues.
    Watch,
    /// What a controller does.
    Controller,
    /// What the scheduler does.
    Scheduler,
    /// What kubelets do.
    Kubelet,
}

/// How a stage went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageOutcome {
    /// As it should.
    #[default]
    Done,
    /// It did not, and is tried again.
    Warning,
    /// Somebody said no.
    Refused,
}

/// One line of a story.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoryStage {
    /// Counted from 1.
    pub number: usize,
    /// The stage that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<usize>,
    /// What it is about.
    pub kind: StageKind,
    /// Where it happened.
    pub lane: Lane,
    /// Of several, the first one's name.
    pub component: String,
    /// How it went.
    pub outcome: StageOutcome,
    /// Whether something was stored.
    #[serde(default)]
    pub is_write: bool,
    /// How often it happened.
    pub count: usize,
    /// Microseconds from the beginning of the story to the beginning of the first.
    pub at_microseconds: u64,
    /// And to the end of the last.
    pub until_microseconds: u64,
    /// What happened, in one line.
    pub words: String,
    /// More about it, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What few look for, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// The steps that it stands for.
    pub steps: Vec<StepId>,
}

/// Events that people were told, of which nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCount {
    /// As `SuccessfulCreate`.
    pub reason: String,
    /// How often.
    pub count: usize,
}

/// The story of an object, or of whatever else a trace is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceStory {
    /// As `deployments.apps default/web`.
    pub subject: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// When it began, as RFC 3339 has it.
    pub began: String,
    /// What happened, in the order of its beginnings.
    pub stages: Vec<StoryStage>,
    /// What stands in the way, and who or what can change it.
    pub standing: Vec<String>,
    /// Events of the type `Normal`.
    pub events: Vec<EventCount>,
    /// Reconciles that found nothing to do.
    pub idle_reconciles: usize,
    /// How many steps it stands for.
    pub steps: usize,
    /// How many more are known that nobody wanted.
    #[serde(skip)]
    pub left_out: usize,
    /// From the first to the last.
    pub microseconds: u64,
    /// What is to be said of the record.
    pub remarks: Vec<String>,
}

impl TraceStory {
    /// Without the stages that `keep` does not want.
    pub fn keep(&mut self, keep: impl Fn(&StoryStage) -> bool) {
        let all = self.stages.len();
        self.stages.retain(|stage| keep(stage));
        self.left_out += all - self.stages.len();
    }
}
