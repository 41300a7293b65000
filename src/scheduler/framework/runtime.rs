//! `Framework`: runs the plugins of a profile, point by point (`framework/runtime.frameworkImpl`).
//! Next: src/scheduler/plugins/default_binder.rs

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asked_count::AskedCount;
use super::cluster_event::{Occurrence, QueueingHint};
use super::fit_error::{Diagnosis, NodeStatuses};
use super::node_info::NodeInfo;
use super::plugin::{
    ActiveQueueKey, BindRequest, CycleState, Handle, NodeSnapshot, Plugin, PostFilterCycle, PostFilterResult,
    PreFilterResult,
};
use super::plugin_numbers::{PluginNumbers, times_this_node};
use super::pod_info::{PodInfo, QueuedPodInfo};
use super::points::{Orders, Point};
use super::status::{Code, Status};
use super::waiting_pods::WaitingPods;
use client_go::client::Client;
use clock::{Clock, FrameName, frame_of};

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

/// The points at which it is counted how often a plugin is asked.
pub const COUNTED: [Point; 4] = [Point::PreFilter, Point::Filter, Point::PreScore, Point::Score];
const PRE_FILTER: usize = 0;
const FILTER: usize = 1;
const PRE_SCORE: usize = 2;
const SCORE: usize = 3;

/// The plugins of a profile, in the order in which they run.
pub struct Framework {
    /// The scheduler name of the pods that it is for.
    pub name: Arc<str>,
    /// Of the nodes that fit so many percent are scored; without, a share that shrinks with their number.
    pub percentage_of_nodes_to_score: Option<i64>,
    plugins: Vec<Weighted>,
    /// Of each plugin.
    names: Vec<Arc<str>>,
    orders: Orders,
    waiting: WaitingPods,
    /// Of each plugin, how often it was asked at each of [`COUNTED`].
    asked: Vec<[AskedCount; COUNTED.len()]>,
    /// None where nobody asks how long they take.
    numbers: Option<Arc<PluginNumbers>>,
}

impl Framework {
    /// Runs these, in this order at every point.
    pub fn new(name: &str, plugins: Vec<Weighted>) -> Framework {
        let mut orders = Orders::default();
        for point in Point::ALL {
            let extends = |at: &usize| plugins[*at].plugin.points().contains(point);
            orders.set(*point, (0..plugins.len()).filter(extends).collect());
        }
        Framework::with_orders(name, plugins, orders)
    }

    /// Runs these as the orders say.
    pub fn with_orders(name: &str, plugins: Vec<Weighted>, orders: Orders) -> Framework {
        let waiting = WaitingPods::default();
        plugins.iter().for_each(|weighted| weighted.plugin.begin(&waiting));
        let names = plugins.iter().map(|weighted| weighted.plugin.name().into()).collect();
        let asked = plugins.iter().map(|_| Default::default()).collect();
        let (name, percentage_of_nodes_to_score, numbers) = (name.into(), None, None);
        Framework { name, percentage_of_nodes_to_score, plugins, names, orders, waiting, asked, numbers }
    }

    /// Its plugins are timed.
    #[must_use]
    pub fn timed_by(self, numbers: &Arc<PluginNumbers>) -> Framework {
        Framework { numbers: Some(numbers.clone()), ..self }
    }

    /// How often each plugin was asked at a point.
    pub fn evaluations(&self) -> impl Iterator<Item = (&str, Point, u64)> {
        let at = move |(index, point): (usize, &'static Point)| {
            let count = move |at: &usize| (&*self.names[*at], *point, self.asked[*at][index].count());
            self.orders.at(*point).iter().map(count)
        };
        COUNTED.iter().enumerate().flat_map(at)
    }

    /// And these of the user's: behind the others, but for points where the first that does something ends
    /// the row.
    #[must_use]
    pub fn with_own(mut self, own: Vec<Weighted>) -> Framework {
        for weighted in own {
            weighted.plugin.begin(&self.waiting);
            for point in weighted.plugin.points() {
                let at = self.plugins.len();
                let order = self.orders.at(*point).iter().copied();
                let order: Vec<usize> = match point {
                    Point::QueueSort | Point::Bind => std::iter::once(at).chain(order).collect(),
                    _ => order.chain([at]).collect(),
                };
                self.orders.set(*point, order);
            }
            self.names.push(weighted.plugin.name().into());
            self.asked.push(Default::default());
            self.plugins.push(weighted);
        }
        self
    }

    /// The pods that wait to be permitted.
    pub fn waiting_pods(&self) -> &WaitingPods {
        &self.waiting
    }

    fn all(&self) -> impl Iterator<Item = &dyn Plugin> {
        self.plugins.iter().map(|weighted| &*weighted.plugin)
    }

    fn at(&self, point: Point) -> impl DoubleEndedIterator<Item = &Weighted> {
        self.orders.at(point).iter().map(|at| &self.plugins[*at])
    }

    fn plugins_at(&self, point: Point) -> impl DoubleEndedIterator<Item = &dyn Plugin> {
        self.at(point).map(|weighted| &*weighted.plugin)
    }

    /// Lets a plugin run, and notes how long that took if the cycle is timed.
    fn timed<T>(
        &self,
        is_timed: bool,
        (point, plugin): (&str, &dyn Plugin),
        run: impl FnOnce() -> T,
        code: impl FnOnce(&T) -> Code,
    ) -> T {
        let Some(numbers) = self.numbers.as_ref().filter(|_| is_timed) else { return run() };
        let begun = numbers.elapsed();
        let said = run();
        numbers.ran(point, plugin.name(), code(&said), begun);
        said
    }

    /// Waits for a plugin, and notes how long that took if the cycle is timed.
    async fn timed_wait(
        &self,
        is_timed: bool,
        (point, plugin): (&str, &str),
        run: impl Future<Output = Status>,
    ) -> Status {
        let Some(numbers) = self.numbers.as_ref().filter(|_| is_timed) else { return run.await };
        let begun = numbers.elapsed();
        let status = run.await;
        numbers.ran(point, plugin, status.code, begun);
        status
    }

    /// The first plugin that holds the pod back, if any.
    pub fn run_pre_enqueue(&self, pod: &PodInfo) -> Option<&'static str> {
        let is_timed = self.numbers.as_ref().is_some_and(|numbers| numbers.times_this_activation());
        let held = |plugin: &&dyn Plugin| {
            let run = || plugin.pre_enqueue(pod);
            !self.timed(is_timed, ("PreEnqueue", *plugin), run, |status| status.code).is_success()
        };
        self.plugins_at(Point::PreEnqueue).find(held).map(|plugin| plugin.name())
    }

    /// Who goes first.
    pub fn queue_key(&self, pod: &QueuedPodInfo) -> ActiveQueueKey {
        self.plugins_at(Point::QueueSort)
            .find_map(|plugin| plugin.queue_key(pod))
            .expect("one plugin sorts the queue")
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
                && self.ask_hint(plugin, pod, occurrence) == QueueingHint::Queue
        };
        QueueingHint::queue_if(self.all().any(worth_it))
    }

    fn ask_hint(&self, plugin: &dyn Plugin, pod: &PodInfo, occurrence: &Occurrence) -> QueueingHint {
        let ask = || plugin.queueing_hint(pod, occurrence);
        match &self.numbers {
            Some(numbers) => numbers.hint(plugin.name(), occurrence.event, ask),
            None => ask(),
        }
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
        snapshot: &NodeSnapshot,
        diagnosis: &mut Diagnosis,
    ) -> Result<PreFilterResult, Status> {
        let (mut left, mut narrowed_by) = (None::<BTreeSet<String>>, Vec::new());
        state.filters = None;
        for at in self.orders.at(Point::PreFilter) {
            let (plugin, is_timed) = (&*self.plugins[*at].plugin, state.is_timed);
            let run = || plugin.pre_filter(state, pod, snapshot);
            let (nodes, status) = self.timed(is_timed, ("PreFilter", plugin), run, |(_, status)| status.code);
            if status.code == Code::Skip {
                state.skip_filter.insert(plugin.name());
            } else {
                self.asked[*at][PRE_FILTER].one_more();
            }
            if !matches!(status.code, Code::Success | Code::Skip) {
                return Err(status.by(plugin.name()));
            }
            if let Some(nodes) = nodes {
                narrowed_by.push(plugin.name());
                left = Some(match left {
                    Some(left) => left.intersection(&nodes).cloned().collect(),
                    None => nodes,
                });
            }
        }
        let has_a_say = |at: &usize| !state.skip_filter.contains(self.plugins[*at].plugin.name());
        state.filters = Some(self.orders.at(Point::Filter).iter().copied().filter(has_a_say).collect());
        if let Some(left) = &left {
            let reason = format!("node(s) didn't satisfy plugin(s) [{}]", narrowed_by.join(" "));
            diagnosis.nodes.absent = Status::unresolvable(reason.clone());
            diagnosis.unschedulable_plugins.extend(narrowed_by);
            if left.is_empty() {
                return Err(Status::unresolvable(reason.replacen("satisfy", "simultaneously satisfy", 1)));
            }
        }
        Ok(left)
    }

    /// The first no, or yes. An error says whose it is.
    pub fn run_filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        // Asked of every node: whose turn it is was worked out before.
        let filters = state.filters.as_deref().unwrap_or(self.orders.at(Point::Filter));
        let is_timed = times_this_node(state, &state.timed_nodes);
        for at in filters {
            let plugin = &*self.plugins[*at].plugin;
            if state.filters.is_none() && state.skip_filter.contains(plugin.name()) {
                continue;
            }
            self.asked[*at][FILTER].one_more();
            let run = || plugin.filter(state, pod, node);
            let status = self.timed(is_timed, ("Filter", plugin), run, |status| status.code);
            if !status.is_success() && !status.is_rejected() {
                let name = plugin.name();
                return Status::error(format!("running {name:?} filter plugin: {status}")).by(name);
            }
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
        snapshot: &NodeSnapshot,
        statuses: &NodeStatuses,
    ) -> (Option<PostFilterResult>, Status) {
        let cycle = PostFilterCycle { framework: self, state, snapshot, statuses };
        let mut result = None;
        let mut reasons = Vec::new();
        for plugin in self.plugins_at(Point::PostFilter) {
            let run = || plugin.post_filter(pod, &cycle);
            let (outcome, status) =
                self.timed(state.is_timed, ("PostFilter", plugin), run, |(_, status)| status.code);
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
        let is_timed = state.is_timed;
        for at in self.orders.at(Point::PreScore) {
            let plugin = &*self.plugins[*at].plugin;
            let run = || plugin.pre_score(state, pod, nodes);
            let status = self.timed(is_timed, ("PreScore", plugin), run, |status| status.code);
            if status.code == Code::Skip {
                state.skip_score.insert(plugin.name());
            } else {
                self.asked[*at][PRE_SCORE].one_more();
            }
        }
        let mut totals = vec![0; nodes.len()];
        let mut by_plugin = Vec::with_capacity(self.orders.at(Point::Score).len());
        for at in self.orders.at(Point::Score) {
            let Weighted { plugin, weight } = &self.plugins[*at];
            if state.skip_score.contains(plugin.name()) {
                continue;
            }
            let (plugin, timed) = (&**plugin, AskedCount::default());
            let score = |node: &Arc<NodeInfo>| {
                self.asked[*at][SCORE].one_more();
                let run = || plugin.score(state, pod, node);
                self.timed(times_this_node(state, &timed), ("Score", plugin), run, |_| Code::Success)
            };
            // Of all nodes at once: each by itself would cost more to look at than to score.
            let score_all = || nodes.iter().map(score).collect();
            let mut scores: Vec<i64> = frame_of(FrameName::Static(plugin.name()), score_all);
            let normalize = || plugin.normalize_scores(&mut scores);
            self.timed(is_timed, ("ScoreExtensionNormalize", plugin), normalize, |()| Code::Success);
            for (total, score) in totals.iter_mut().zip(&mut scores) {
                *score *= weight;
                *total += *score;
            }
            by_plugin.push((self.names[*at].clone(), scores));
        }
        Scores { totals, by_plugin }
    }

    /// The first no, or yes.
    pub fn run_reserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Status {
        let plugins = self.plugins_at(Point::Reserve);
        first_no(plugins.map(|plugin| {
            let run = || plugin.reserve(state, pod, node);
            self.timed(state.is_timed, ("Reserve", plugin), run, |status| status.code).by(plugin.name())
        }))
    }

    /// In the opposite order.
    pub fn run_unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) {
        self.waiting.forget(pod.uid());
        for plugin in self.plugins_at(Point::Reserve).rev() {
            let run = || plugin.unreserve(state, pod, node);
            self.timed(state.is_timed, ("Unreserve", plugin), run, |()| Code::Success);
        }
    }

    /// The first no, or yes; a pod that some let wait is among those that wait from now on.
    pub fn run_permit(&self, state: &CycleState, pod: &PodInfo, node: &str, clock: &Clock) -> Status {
        let mut waits = Vec::new();
        for plugin in self.plugins_at(Point::Permit) {
            let run = || plugin.permit(state, pod, node);
            let status = self.timed(state.is_timed, ("Permit", plugin), run, |status| status.code);
            match status.code {
                Code::Wait => waits.push((plugin.name(), plugin.permit_timeout())),
                _ if status.is_success() => {}
                _ => return status.by(plugin.name()),
            }
        }
        self.waiting.add(pod.uid(), &waits, clock);
        Status::success()
    }

    /// Waits until every plugin that let the pod wait allows it (`WaitOnPermit`).
    pub async fn wait_on_permit(&self, pod: &PodInfo, clock: &Clock) -> Status {
        self.waiting.wait(pod.uid(), clock).await
    }

    /// What has to be done before the binding, plugin by plugin (`RunPreBindPlugins`).
    pub async fn run_pre_bind(&self, request: BindRequest<'_>, is_timed: bool) -> Status {
        for plugin in self.plugins_at(Point::PreBind) {
            let Some(pre_bind) = plugin.pre_bind(request) else { continue };
            let status = self.timed_wait(is_timed, ("PreBind", plugin.name()), pre_bind).await;
            if !status.is_success() {
                return status.by(plugin.name());
            }
        }
        Status::success()
    }

    /// Whether something is waited for before the binding.
    pub fn waits_before_binding(&self, state: &CycleState, pod: &PodInfo) -> bool {
        self.plugins_at(Point::PreBind).any(|plugin| plugin.waits_before_binding(state, pod))
    }

    /// Whether a plugin has something to do before the binding that takes its time.
    pub fn prepares_binding(&self, pod: &PodInfo) -> bool {
        self.plugins_at(Point::PreBind).any(|plugin| plugin.prepares_binding(pod))
    }

    /// What was written before a binding that did not come about is taken back.
    pub async fn run_take_back(&self, request: BindRequest<'_>) {
        for plugin in self.plugins_at(Point::PreBind).rev() {
            if let Some(take_back) = plugin.take_back(request) {
                take_back.await;
            }
        }
    }

    /// Writes what PostFilter plugins decided to.
    pub async fn write_after_post_filter(&self, client: &Client, state: &CycleState) -> Status {
        for plugin in self.plugins_at(Point::PostFilter) {
            let Some(write) = plugin.write_after_post_filter(client, state) else { continue };
            let status = write.await;
            if !status.is_success() {
                return status.by(plugin.name());
            }
        }
        Status::success()
    }

    /// Bind; the first plugin that does ends the row.
    pub async fn run_bind(&self, request: BindRequest<'_>, is_timed: bool) -> Status {
        let mut plugins = self.plugins_at(Point::Bind);
        let Some((name, bind)) = plugins.find_map(|plugin| Some((plugin.name(), plugin.bind(request)?)))
        else {
            return Status::error("no bind plugin bound the pod");
        };
        self.timed_wait(is_timed, ("Bind", name), bind).await.by(name)
    }

    /// Tells the plugins that the pod is bound (`RunPostBindPlugins`).
    pub fn run_post_bind(&self, pod: &PodInfo, node: &str, is_timed: bool) {
        for plugin in self.plugins_at(Point::PostBind) {
            let run = || plugin.post_bind(pod, node);
            self.timed(is_timed, ("PostBind", plugin), run, |()| Code::Success);
        }
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
        snapshot: &NodeSnapshot,
        diagnosis: &mut Diagnosis,
    ) -> Result<PreFilterResult, Status> {
        Framework::run_pre_filter(self, state, pod, snapshot, diagnosis)
    }

    fn run_filter(&self, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Status {
        Framework::run_filter(self, state, pod, node)
    }
}
