//! `Plugin`: all extension points as one trait. Each has a default that has no opinion.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::asked_count::AskedCount;
use super::cluster_event::{ClusterEvent, Occurrence, QueueingHint};
use super::fit_error::{Diagnosis, NodeStatuses};
use super::node_info::NodeInfo;
use super::pod_info::{PodInfo, QueuedPodInfo};
use super::points::{Point, points_of};
use super::preemption_candidate::PreemptionCandidate;
use super::status::Status;
use super::waiting_pods::{MAX_PERMIT_TIMEOUT, WaitingPods};
use apimachinery::time::Time;
use client_go::client::Client;
use client_go::event_recorder::EventRecorder;

/// The best that a node can score at one plugin (`framework.MaxNodeScore`).
pub const MAX_NODE_SCORE: i64 = 100;

/// The nodes as they were when the attempt began.
pub type NodeSnapshot = Arc<[Arc<NodeInfo>]>;

/// What decides who is tried first: the smaller key.
pub type ActiveQueueKey = (std::cmp::Reverse<i64>, Time);

/// What plugins remember between the points of one attempt, each under its own name (`framework.CycleState`).
#[derive(Default)]
pub struct CycleState {
    data: HashMap<&'static str, Box<dyn Any + Send + Sync>>,
    /// The plugins whose Filter has nothing to do.
    pub skip_filter: BTreeSet<&'static str>,
    /// Those that have something to do, by their place among all; known once PreFilter has run.
    pub(super) filters: Option<Vec<usize>>,
    /// Whether a filter depends on the pods of other nodes than the one that it is asked about.
    pub looks_at_other_nodes: bool,
    /// The plugins whose Score has nothing to do.
    pub skip_score: BTreeSet<&'static str>,
    /// All nodes, for who counts the pods of more than it is asked about.
    pub nodes: NodeSnapshot,
    /// Whether the plugins of this cycle are timed.
    pub is_timed: bool,
    /// The nodes for which Filter was timed.
    pub(super) timed_nodes: AskedCount,
}

/// The only nodes that a pod can go to, as far as a PreFilter plugin knows; none means any.
pub type PreFilterResult = Option<BTreeSet<String>>;

/// What a PostFilter plugin has made of it.
#[derive(Clone, Debug, Default)]
pub struct PostFilterResult {
    /// Where room is being made.
    pub nominated_node: Option<Arc<str>>,
    /// Who has to go for it.
    pub victims: Vec<Arc<PodInfo>>,
    /// All nodes where it can be made, that one among them: extenders may want another one of these.
    pub candidates: Vec<PreemptionCandidate>,
}

impl PostFilterResult {
    /// Room is made there.
    pub fn at(candidate: PreemptionCandidate) -> PostFilterResult {
        let PreemptionCandidate { node, victims, .. } = candidate;
        PostFilterResult { nominated_node: Some(node), victims, candidates: Vec::new() }
    }
}

/// What a PostFilter plugin may ask of the framework that runs it (`framework.Handle`).
pub trait Handle: Sync {
    /// The nodes that are left, or the no of the first plugin that says one. `diagnosis` learns why.
    fn run_pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        snapshot: &NodeSnapshot,
        diagnosis: &mut Diagnosis,
    ) -> Result<PreFilterResult, Status>;

    /// Whether a pod fits on a node, as far as all filters know.
    fn run_filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status;
}

/// What a PostFilter plugin may look at.
pub struct PostFilterCycle<'a> {
    /// The framework, to ask the filters again.
    pub framework: &'a dyn Handle,
    /// The state of the cycle.
    pub state: &'a CycleState,
    /// The nodes.
    pub snapshot: &'a NodeSnapshot,
    /// What each node said.
    pub statuses: &'a NodeStatuses,
}

/// A plugin. Whatever it does not implement it has no opinion on.
pub trait Plugin: Send + Sync {
    /// As in the scheduler's configuration.
    fn name(&self) -> &'static str;

    /// Whether the pod may be tried at all. A pod that may not waits, and no Event is told of it.
    fn pre_enqueue(&self, _pod: &PodInfo) -> Status {
        Status::success()
    }

    /// QueueSort: exactly one plugin gives a key.
    fn queue_key(&self, _pod: &QueuedPodInfo) -> Option<ActiveQueueKey> {
        None
    }

    /// `EventsToRegister`: what may turn this plugin's no into a yes.
    fn events_to_register(&self) -> &'static [ClusterEvent] {
        &[]
    }

    /// `QueueingHintFn`: whether such an event is worth another try of a pod that this plugin rejected.
    fn queueing_hint(&self, _pod: &PodInfo, _occurrence: &Occurrence) -> QueueingHint {
        QueueingHint::Queue
    }

    /// Looks at the pod alone, once per attempt. `Skip`: no node need be asked.
    fn pre_filter(
        &self,
        _state: &mut CycleState,
        _pod: &PodInfo,
        _snapshot: &NodeSnapshot,
    ) -> (PreFilterResult, Status) {
        (None, Status::success())
    }

    /// Whether the pod can run on the node.
    fn filter(&self, _state: &CycleState, _pod: &PodInfo, _node: &NodeInfo) -> Status {
        Status::success()
    }

    /// When it fits nowhere: whether room can be made. Success with a nominated node ends the search; any
    /// other answer adds its reasons to what the user is told.
    fn post_filter(
        &self,
        _pod: &PodInfo,
        _cycle: &PostFilterCycle<'_>,
    ) -> (Option<PostFilterResult>, Status) {
        (None, Status::skip())
    }

    /// What [`Plugin::post_filter`] has decided to write, so that the pod may fit the next time.
    fn write_after_post_filter<'a>(
        &'a self,
        _client: &'a Client,
        _state: &'a CycleState,
    ) -> Option<BoxFuture<'a, Status>> {
        None
    }

    /// Before the nodes that fit are scored. `Skip`: this plugin scores nothing.
    fn pre_score(&self, _state: &mut CycleState, _pod: &PodInfo, _nodes: &[Arc<NodeInfo>]) -> Status {
        Status::skip()
    }

    /// How well the node suits the pod; [`MAX_NODE_SCORE`] is best once the scores are normalized.
    fn score(&self, _state: &CycleState, _pod: &PodInfo, _node: &NodeInfo) -> i64 {
        0
    }

    /// Brings the scores of all nodes into the range from 0 to [`MAX_NODE_SCORE`].
    fn normalize_scores(&self, _scores: &mut [i64]) {}

    /// The pod is taken to be on the node from now on.
    fn reserve(&self, _state: &CycleState, _pod: &PodInfo, _node: &str) -> Status {
        Status::success()
    }

    /// It is not after all. Must undo what `reserve` did, even if that failed or never ran.
    fn unreserve(&self, _state: &CycleState, _pod: &PodInfo, _node: &str) {}

    /// The last word before binding. `Wait`: the pod waits until this plugin allows it through the
    /// [`WaitingPods`] that it was handed, and at most for [`Plugin::permit_timeout`].
    fn permit(&self, _state: &CycleState, _pod: &PodInfo, _node: &str) -> Status {
        Status::success()
    }

    /// How long a pod waits that [`Plugin::permit`] lets wait; fifteen minutes at most.
    fn permit_timeout(&self) -> Duration {
        MAX_PERMIT_TIMEOUT
    }

    /// Once, before anything else: the pods that wait to be permitted, to allow or reject them at any time.
    fn begin(&self, _waiting: &WaitingPods) {}

    /// The points at which it has something to do; at others it is not asked.
    fn points(&self) -> &'static [Point] {
        points_of(self.name()).unwrap_or(Point::ALL)
    }

    /// Whether [`Plugin::pre_bind`] waits for somebody else: whoever waits keeps no other pod from binding.
    fn waits_before_binding(&self, _state: &CycleState, _pod: &PodInfo) -> bool {
        false
    }

    /// Whether [`Plugin::pre_bind`] has something to do for a pod that takes its time (`PreBindPreFlight`).
    fn prepares_binding(&self, _pod: &PodInfo) -> bool {
        false
    }

    /// What has to be done before the binding is written.
    fn pre_bind<'a>(&'a self, _request: BindRequest<'a>) -> Option<BoxFuture<'a, Status>> {
        None
    }

    /// The pod is not bound after all, and `unreserve` ran: takes back what [`Plugin::pre_bind`] wrote.
    fn take_back<'a>(&'a self, _request: BindRequest<'a>) -> Option<BoxFuture<'a, ()>> {
        None
    }

    /// Writes the binding. The first plugin that does ends the row.
    fn bind<'a>(&'a self, _request: BindRequest<'a>) -> Option<BoxFuture<'a, Status>> {
        None
    }

    /// The pod is bound.
    fn post_bind(&self, _pod: &PodInfo, _node: &str) {}
}

/// A binding that is to be written.
#[derive(Clone, Copy)]
pub struct BindRequest<'a> {
    /// Asks in the scheduler's name, on account of this attempt.
    pub client: &'a Client,
    /// Speaks in the name of the pod's profile, on account of this attempt.
    pub recorder: &'a EventRecorder,
    /// Which pod.
    pub pod: &'a PodInfo,
    /// To which node.
    pub node: &'a str,
}

impl CycleState {
    /// Of an attempt that sees these nodes.
    pub fn over(nodes: &NodeSnapshot) -> CycleState {
        CycleState { nodes: nodes.clone(), ..CycleState::default() }
    }

    /// Remembers something of `plugin`.
    pub fn write<T: Any + Send + Sync>(&mut self, plugin: &'static str, data: T) {
        self.data.insert(plugin, Box::new(data));
    }

    /// What `plugin` wrote.
    pub fn read<T: Any>(&self, plugin: &str) -> Option<&T> {
        self.data.get(plugin)?.downcast_ref()
    }
}

/// Stretches scores so that the best has [`MAX_NODE_SCORE`]; reversed, the best is who scored least
/// (`DefaultNormalizeScore`).
pub fn default_normalize(scores: &mut [i64], reverse: bool) {
    let most = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        let stretched = if most == 0 { 0 } else { *score * MAX_NODE_SCORE / most };
        *score = if reverse { MAX_NODE_SCORE - stretched } else { stretched };
    }
}
