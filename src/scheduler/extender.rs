//! Extenders: programs that are asked over HTTP beside the plugins (`pkg/scheduler/extender.go`,
//! `kube-scheduler/extender/v1`).
//!
//! Each question has a bound in time, and what is answered is held against what was asked: nodes that nobody
//! asked about are an error, scores are brought into their range. An ignorable extender that fails is left
//! out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::config::Extender;
use super::framework::fit_error::Diagnosis;
use super::framework::node_info::NodeInfo;
use super::framework::plugin::{MAX_NODE_SCORE, NodeSnapshot, PostFilterResult};
use super::framework::pod_info::PodInfo;
use super::framework::preemption_candidate::{PreemptionCandidate, importance};
use super::framework::status::Status;
use apimachinery::duration;

/// How long an answer may take unless the configuration says so (`DefaultExtenderTimeout`).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// What an extender's scores go up to (`MaxExtenderPriority`).
const MAX_EXTENDER_PRIORITY: i64 = 10;
/// Whose no it is when an extender says one.
const EXTENDER: &str = "SchedulerExtender";

/// Sends a tree to one URL and reads the answer, within a time.
pub type Post = Arc<dyn Fn(Value, Duration) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;
/// Makes a [`Post`] for an extender and a URL.
pub type Dial = Arc<dyn Fn(&Extender, &str) -> Result<Post, String> + Send + Sync>;

/// Why an extender could not be asked, or what was wrong with its answer.
#[derive(Debug)]
pub(super) struct ExtenderError(pub(super) String);

/// All extenders, in the order of the configuration.
pub(super) struct Extenders {
    all: Vec<HttpExtender>,
}

struct HttpExtender {
    config: Extender,
    timeout: Duration,
    /// By verb; the error says why there is no way to it.
    posts: BTreeMap<String, Result<Post, String>>,
}

impl Extenders {
    pub(super) fn new(extenders: &[Extender], dial: Option<Dial>) -> Extenders {
        let all = extenders.iter().map(|config| HttpExtender::new(config, dial.as_ref())).collect();
        Extenders { all }
    }

    /// Those that have a verb and whose business the pod is.
    fn asked<'a>(
        &'a self,
        pod: &'a PodInfo,
        verb: fn(&Extender) -> &String,
    ) -> impl Iterator<Item = &'a HttpExtender> {
        self.all.iter().filter(move |it| !verb(&it.config).is_empty() && it.is_interested(pod))
    }

    /// The nodes that all of them will have (`findNodesThatPassExtenders`).
    pub(super) async fn filter(
        &self,
        pod: &PodInfo,
        mut feasible: Vec<Arc<NodeInfo>>,
        diagnosis: &mut Diagnosis,
    ) -> Result<Vec<Arc<NodeInfo>>, ExtenderError> {
        for extender in self.asked(pod, |config| &config.filter_verb) {
            if feasible.is_empty() {
                break;
            }
            match extender.filter(pod, &feasible).await {
                Ok(answer) => feasible = answer.apply(feasible, diagnosis),
                Err(error) if extender.config.ignorable => {
                    tracing::info!(extender = %extender.config.url_prefix, err = %error.0, "Skipping extender as it returned error and has ignorable flag set");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(feasible)
    }

    /// Adds their scores; one that fails adds nothing, for the pod can be placed without.
    pub(super) async fn prioritize(&self, pod: &PodInfo, nodes: &[Arc<NodeInfo>], scores: &mut [i64]) {
        for extender in self.asked(pod, |config| &config.prioritize_verb) {
            let args = extender.args(pod, nodes);
            match extender.ask(&extender.config.prioritize_verb, args).await {
                Ok(answer) => add_scores(&answer, extender.config.weight, nodes, scores),
                Err(error) => {
                    tracing::info!(extender = %extender.config.url_prefix, err = %error.0, "Failed to run extender's priority function. No score given by this extender.");
                }
            }
        }
    }

    /// Asks the one that binds; nothing when none does.
    pub(super) async fn bind(&self, pod: &PodInfo, node: &str) -> Option<Status> {
        let extender = self.asked(pod, |config| &config.bind_verb).next()?;
        let metadata = &pod.object.metadata;
        let args = json!({"PodName": metadata.name, "PodNamespace": metadata.namespace,
            "PodUID": metadata.uid, "Node": node});
        Some(match extender.ask(&extender.config.bind_verb, args).await {
            Ok(answer) => match field(&answer, "Error").as_str().filter(|error| !error.is_empty()) {
                Some(error) => Status::error(error.to_owned()).by(EXTENDER),
                None => Status::success(),
            },
            Err(error) => Status::error(error.0).by(EXTENDER),
        })
    }

    /// Where room is made of all that can be had, if all of them will have it; nothing changes where none has
    /// a say (`callExtenders`, `SelectCandidate`).
    pub(super) async fn choose_victims(
        &self,
        pod: &PodInfo,
        found: PostFilterResult,
        snapshot: &NodeSnapshot,
    ) -> Result<PostFilterResult, ExtenderError> {
        if self.asked(pod, |config| &config.preempt_verb).next().is_none() {
            return Ok(found);
        }
        let mut candidates = found.candidates;
        if let Some(node) = found.nominated_node.filter(|_| candidates.is_empty()) {
            candidates.push(PreemptionCandidate { node, victims: found.victims, violations: 0 });
        }
        for extender in self.asked(pod, |config| &config.preempt_verb) {
            if candidates.is_empty() {
                break;
            }
            match extender.process_preemption(pod, &candidates, snapshot).await {
                Ok(left) => candidates = left,
                Err(error) if extender.config.ignorable => {
                    tracing::info!(extender = %extender.config.url_prefix, err = %error.0, "Skipped extender as it returned error and has ignorable flag set");
                }
                Err(error) => return Err(error),
            }
        }
        let best = candidates.into_iter().min_by_key(PreemptionCandidate::cost);
        best.map(PostFilterResult::at).ok_or_else(|| ExtenderError("no candidate node for preemption".into()))
    }
}

impl HttpExtender {
    fn new(config: &Extender, dial: Option<&Dial>) -> HttpExtender {
        let verbs = [&config.filter_verb, &config.prioritize_verb, &config.bind_verb, &config.preempt_verb];
        let post = |verb: &String| {
            let url = format!("{}/{verb}", config.url_prefix.trim_end_matches('/'));
            let dial = dial.ok_or_else(|| "this scheduler has no way to the outside".to_owned());
            (verb.clone(), dial.and_then(|dial| dial(config, &url)))
        };
        let timeout = config.http_timeout.as_deref().and_then(|text| duration::parse_flag(text).ok());
        HttpExtender {
            posts: verbs.into_iter().filter(|verb| !verb.is_empty()).map(post).collect(),
            timeout: timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(DEFAULT_TIMEOUT),
            config: config.clone(),
        }
    }

    /// A pod is its business if it asks for a resource that the extender manages.
    fn is_interested(&self, pod: &PodInfo) -> bool {
        let managed = &self.config.managed_resources;
        managed.is_empty() || managed.iter().any(|resource| pod.requests.scalar.contains_key(&resource.name))
    }

    async fn ask(&self, verb: &str, args: Value) -> Result<Value, ExtenderError> {
        let post = match self.posts.get(verb) {
            Some(Ok(post)) => post,
            Some(Err(why)) => return Err(ExtenderError(why.clone())),
            None => return Err(ExtenderError(format!("{verb:?} is not a verb of the extender"))),
        };
        post(args, self.timeout).await.map_err(ExtenderError)
    }

    /// `ExtenderArgs`: the nodes, or their names if it knows them itself.
    fn args(&self, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Value {
        let mut args = json!({"Pod": pod.object.to_value(), "Nodes": null, "NodeNames": null});
        if self.config.node_cache_capable {
            args["NodeNames"] = nodes.iter().map(|node| node.name.to_string()).collect();
        } else {
            let items: Vec<Value> =
                nodes.iter().filter_map(|node| Some(node.object.as_ref()?.to_value())).collect();
            args["Nodes"] = json!({"metadata": {}, "items": items});
        }
        args
    }

    async fn filter(&self, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> Result<FilterAnswer, ExtenderError> {
        let answer = self.ask(&self.config.filter_verb, self.args(pod, nodes)).await?;
        if let Some(error) = field(&answer, "Error").as_str().filter(|error| !error.is_empty()) {
            return Err(ExtenderError(error.to_owned()));
        }
        let asked: BTreeSet<&str> = nodes.iter().map(|node| &*node.name).collect();
        let fitting = self.fitting(&answer);
        if let Some(liar) = fitting.iter().find(|name| !asked.contains(name.as_str())) {
            let prefix = &self.config.url_prefix;
            return Err(ExtenderError(format!(
                "extender {prefix:?} claims a filtered node {liar:?} which is not found in the input node list"
            )));
        }
        Ok(FilterAnswer {
            fitting,
            failed: reasons(field(&answer, "FailedNodes")),
            hopeless: reasons(field(&answer, "FailedAndUnresolvableNodes")),
        })
    }

    fn fitting(&self, answer: &Value) -> BTreeSet<String> {
        let names = field(answer, "NodeNames").as_array();
        if let Some(names) = names.filter(|_| self.config.node_cache_capable) {
            return names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        let items = field(field(answer, "Nodes"), "items").as_array().into_iter().flatten();
        items.filter_map(|node| node.pointer("/metadata/name")?.as_str()).map(str::to_owned).collect()
    }

    /// The nodes where it will have room made, and by whose going (`ProcessPreemption`).
    async fn process_preemption(
        &self,
        pod: &PodInfo,
        candidates: &[PreemptionCandidate],
        snapshot: &NodeSnapshot,
    ) -> Result<Vec<PreemptionCandidate>, ExtenderError> {
        let knows_pods = self.config.node_cache_capable;
        let victim = |victim: &Arc<PodInfo>| {
            if knows_pods { json!({"UID": victim.uid()}) } else { victim.object.to_value() }
        };
        let on_node = |candidate: &PreemptionCandidate| {
            let pods: Vec<Value> = candidate.victims.iter().map(victim).collect();
            (candidate.node.to_string(), json!({"Pods": pods, "NumPDBViolations": candidate.violations}))
        };
        let victims: Map<String, Value> = candidates.iter().map(on_node).collect();
        let mut args = json!({"Pod": pod.object.to_value(), "NodeNameToVictims": null,
            "NodeNameToMetaVictims": null});
        args[if knows_pods { "NodeNameToMetaVictims" } else { "NodeNameToVictims" }] = victims.into();
        let answer = self.ask(&self.config.preempt_verb, args).await?;
        let mut left = Vec::new();
        for (node, victims) in field(&answer, "NodeNameToMetaVictims").as_object().into_iter().flatten() {
            let candidate = self.candidate(node, victims, snapshot)?;
            if !candidate.victims.is_empty() {
                left.push(candidate);
            } else if !self.config.ignorable {
                return Err(ExtenderError(format!("expected at least one victim pod on node {node:?}")));
            }
        }
        Ok(left)
    }

    /// `convertPodUIDToPod`
    fn candidate(
        &self,
        name: &str,
        victims: &Value,
        snapshot: &NodeSnapshot,
    ) -> Result<PreemptionCandidate, ExtenderError> {
        let node = snapshot.iter().find(|node| *node.name == *name);
        let node = node.ok_or_else(|| ExtenderError(format!("nodeinfo not found for node name {name:?}")))?;
        let find = |victim: &Value| {
            let uid = field(victim, "UID").as_str().unwrap_or_default();
            let found = node.pods.iter().find(|pod| pod.uid() == uid).cloned();
            found.ok_or_else(|| {
                let url = &self.config.url_prefix;
                ExtenderError(format!(
                    "extender: {url} claims to preempt pod (UID: {uid}) on node: {name}, but the pod is not \
                     found on that node"
                ))
            })
        };
        let pods = field(victims, "Pods").as_array().into_iter().flatten();
        let mut pods: Vec<Arc<PodInfo>> = pods.map(find).collect::<Result<_, _>>()?;
        pods.sort_by_key(|victim| importance(victim));
        let violations = field(victims, "NumPDBViolations").as_u64().unwrap_or(0) as usize;
        Ok(PreemptionCandidate { node: node.name.clone(), victims: pods, violations })
    }
}

/// `ExtenderFilterResult`
struct FilterAnswer {
    fitting: BTreeSet<String>,
    failed: BTreeMap<String, String>,
    hopeless: BTreeMap<String, String>,
}

impl FilterAnswer {
    /// The nodes that are left; of the others it is noted what was said.
    fn apply(self, nodes: Vec<Arc<NodeInfo>>, diagnosis: &mut Diagnosis) -> Vec<Arc<NodeInfo>> {
        let (left, gone): (Vec<_>, Vec<_>) =
            nodes.into_iter().partition(|node| self.fitting.contains(&*node.name));
        for node in gone {
            let status = match (self.hopeless.get(&*node.name), self.failed.get(&*node.name)) {
                (Some(reason), _) => Status::unresolvable(reason.clone()),
                (None, Some(reason)) => Status::unschedulable(reason.clone()),
                (None, None) => Status::unschedulable("node(s) were rejected by a scheduler extender"),
            };
            diagnosis.nodes.explicit.insert(node.name.clone(), status.by(EXTENDER));
        }
        diagnosis.unschedulable_plugins.insert(EXTENDER);
        left
    }
}

/// A field by its name in whatever case, as Go reads it.
fn field<'a>(tree: &'a Value, name: &str) -> &'a Value {
    let fields: Option<&Map<String, Value>> = tree.as_object();
    let found = fields.and_then(|fields| fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
    found.map_or(&Value::Null, |(_, value)| value)
}

fn reasons(tree: &Value) -> BTreeMap<String, String> {
    let fields = tree.as_object().into_iter().flatten();
    fields.map(|(node, why)| (node.clone(), why.as_str().unwrap_or_default().to_owned())).collect()
}

/// A `HostPriorityList`; a node that was not asked about is nobody's.
fn add_scores(answer: &Value, weight: i64, nodes: &[Arc<NodeInfo>], scores: &mut [i64]) {
    for entry in answer.as_array().into_iter().flatten() {
        let host = field(entry, "Host").as_str().unwrap_or_default();
        let score = field(entry, "Score").as_i64().unwrap_or(0).clamp(0, MAX_EXTENDER_PRIORITY);
        if let Some(at) = nodes.iter().position(|node| *node.name == *host) {
            let weighted =
                score.saturating_mul(weight).saturating_mul(MAX_NODE_SCORE / MAX_EXTENDER_PRIORITY);
            scores[at] = scores[at].saturating_add(weighted);
        }
    }
}
