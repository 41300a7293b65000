//! `Framework`: runs the plugins of a profile, point by point (`framework/runtime.frameworkImpl`).
//! Next: src/scheduler/plugins/default_binder.rs

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cluster_event::{Occurrence, QueueingHint};
use super::fit_error::{Diagnosis, NodeStatuses};
use super::node_info::NodeInfo;
use super::plugin::{
    BindRequest, CycleState, Handle, Plugin, PostFilterCycle, PostFilterResult, PreFilterResult, QueueKey,
    Snapshot,
};
use super::pod_info::{PodInfo, QueuedPodInfo};
use super::status::{Code, Status};

/// What the Score plugins gave, in the order of the nodes.
pub struct Scores {
    /// The sum of all.
    pub totals: Vec<i64>,
    /// What each plugin gave, times its weight.
    pub by_plugin: Vec<(Arc<str>, Vec<i64>)>,
}

/// A plugin and how much its scores count.
pub struct Weighted {
    /// The plugin.
    pub plugin: Box<dyn Plugin>,
    /// Its scores are multiplied with this.
    pub weight: i64,
}

/// The plugins of a profile, in the order in which they run at every point.
pub struct Framework {
    plugins: Vec<Weighted>,
    /// Of each plugin.
    names: Vec<Arc<str>>,
}

impl Framework {
    /// Runs these.
    pub fn new(plugins: Vec<Weighted>) -> Framework {
        let names = plugins.iter().map(|weighted| weighted.plugin.name().into()).collect();
        Framework { plugins, names }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Plugin> {
        self.plugins.iter().map(|weighted| &*weighted.plugin)
    }

    /// The first plugin that holds the pod back, if any.
    pub fn run_pre_enqueue(&self, pod: &PodInfo) -> Option<&'static str> {
        self.all().find(|plugin| !plugin.pre_enqueue(pod).is_success()).map(|plugin| plugin.name())
    }

    /// Who goes first.
    pub fn queue_key(&self, pod: &QueuedPodInfo) -> QueueKey {
        self.all().find_map(|plugin| plugin.queue_key(pod)).expect("one plugin sorts the queue")
    }

    /// Whether an event is worth another try of a pod that `rejected_by` rejected.
    pub fn hint(
        &self,
        pod: &PodInfo,
        rejected_by: &BTreeSet<&'static str>,
        occurrence: &Occurrence,
    ) -> QueueingHint {
        let worth_it = |plugin: &dyn Plugin| {
            rejected_by.contains(plugin.name())
                && plugin.events_to_register().contains(&occurrence.event)
                && plugin.queueing_hint(pod, occurrence) == QueueingHint::Queue
        };
        QueueingHint::queue_if(self.all().any(worth_it))
    }

    /// The plugins that want to hear of an event.
    pub fn listeners(&self, event: super::cluster_event::ClusterEvent) -> BTreeSet<&'static str> {
        let listens = |plugin: &&dyn Plugin| plugin.events_to_register().contains(&event);
        self.all().filter(listens).map(|plugin| plugin.name()).collect()
    }

    /// The nodes that are left, or the no of the first plugin that says one. `diagnosis` learns why.
    pub fn run_pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        snapshot: &Snapshot,
        diagnosis: &mut Diagnosis,
    ) -> Result<PreFilterResult, Status> {
        let (mut left, mut narrowed_by) = (None::<BTreeSet<String>>, Vec::new());
        for plugin in self.all() {
            let (nodes, status) = plugin.pre_filter(state, pod, snapshot);
            match status.code {
                Code::Success => {}
                Code::Skip => drop(state.skip_filter.insert(plugin.name())),
                _ => return Err(status.by(plugin.name())),
            }
            if let Some(nodes) = nodes {
                narrowed_by.push(plugin.name());
                left = Some(match left {
                    Some(left) => left.intersection(&nodes).cloned().collect(),
                    None => nodes,
                });
            }
        }
        if let Some(left) = &left {
            let reason = format!("node(s) didn't satisfy plugin(s) [{}]", narrowed_by.join(" "));
            diagnosis.nodes.absent = Status::unresolvable(&reason);
            diagnosis.unschedulable_plugins.extend(narrowed_by);
            if left.is_empty() {
                return Err(Status::unresolvable(reason.replacen("satisfy", "simultaneously satisfy", 1)));
            }
        }
        Ok(left)
    }

    /// The first no, or yes.
    pub fn run_filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        for plugin in self.all().filter(|plugin| !state.skip_filter.contains(plugin.name())) {
            let status = plugin.filter(state, pod, node);
            if !status.is_success() {
                return status.by(plugin.name());
            }
        }
        Status::success()
    }

    /// Where room was made, if any; and what to tell.
    pub fn run_post_filter(
        &self,
        pod: &PodInfo,
        state: &CycleState,
        snapshot: &Snapshot,
        statuses: &NodeStatuses,
    ) -> (Option<PostFilterResult>, Status) {
        let cycle = PostFilterCycle { framework: self, state, snapshot, statuses };
        let mut result = None;
        let mut reasons = Vec::new();
        for plugin in self.all() {
            let (outcome, status) = plugin.post_filter(pod, &cycle);
            match status.code {
                Code::Skip => continue,
                Code::Unschedulable => {}
                _ => return (outcome, status.by(plugin.name())),
            }
            result = outcome.or(result);
            reasons.extend(status.reasons);
        }
        (result, Status { code: Code::Unschedulable, reasons, plugin: "" })
    }

    /// The weighted scores of each node, in the order of `nodes`.
    pub fn run_score(&self, state: &mut CycleState, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Scores {
        let mut totals = vec![0; nodes.len()];
        let mut by_plugin = Vec::with_capacity(self.plugins.len());
        for (Weighted { plugin, weight }, name) in self.plugins.iter().zip(&self.names) {
            if plugin.pre_score(state, pod, nodes).code == Code::Skip {
                state.skip_score.insert(plugin.name());
                continue;
            }
            let mut scores: Vec<i64> = nodes.iter().map(|node| plugin.score(state, pod, node)).collect();
            plugin.normalize_scores(&mut scores);
            for (total, score) in totals.iter_mut().zip(&mut scores) {
                *score *= weight;
                *total += *score;
            }
            by_plugin.push((name.clone(), scores));
        }
        Scores { totals, by_plugin }
    }

    /// The first no, or yes.
    pub fn run_reserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Status {
        first_no(self.all().map(|plugin| plugin.reserve(state, pod, node).by(plugin.name())))
    }

    /// In the opposite order.
    pub fn run_unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) {
        for Weighted { plugin, .. } in self.plugins.iter().rev() {
            plugin.unreserve(state, pod, node);
        }
    }

    /// The first no, or yes.
    pub fn run_permit(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Status {
        first_no(self.all().map(|plugin| plugin.permit(state, pod, node).by(plugin.name())))
    }

    /// PreBind, Bind and PostBind.
    pub async fn run_bind(&self, request: BindRequest<'_>) -> Status {
        for plugin in self.all() {
            let Some(pre_bind) = plugin.pre_bind(request) else { continue };
            let status = pre_bind.await;
            if !status.is_success() {
                return status.by(plugin.name());
            }
        }
        let Some((name, bind)) = self.all().find_map(|plugin| Some((plugin.name(), plugin.bind(request)?)))
        else {
            return Status::error("no bind plugin bound the pod");
        };
        let status = bind.await;
        if status.is_success() {
            self.all().for_each(|plugin| plugin.post_bind(request.pod, request.node));
        }
        status.by(name)
    }
}

fn first_no(mut statuses: impl Iterator<Item = Status>) -> Status {
    statuses.find(|status| !status.is_success()).unwrap_or_default()
}

impl Handle for Framework {
    fn run_pre_filter(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        snapshot: &Snapshot,
        diagnosis: &mut Diagnosis,
    ) -> Result<PreFilterResult, Status> {
        Framework::run_pre_filter(self, state, pod, snapshot, diagnosis)
    }

    fn run_filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        Framework::run_filter(self, state, pod, node)
    }
}
