//! Tables of what plugins say and score, in `testdata/*.yaml`: the cases of upstream's own tests, in our
//! form, and further ones.
//!
//! Nodes and pods are lines. `a cpu:4 memory:8Gi zone=1 ~key=value:NoSchedule @image#20` is a node with
//! resources, labels, taints and images (of 20 MiB); `web@a cpu:1 app=web prio:5 port:TCP/80` is a pod on it.
//! What a line cannot say stands below `spec`. A case says what each node says (`ok` or the reasons), or what
//! it scores.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::config::{KubeSchedulerConfiguration, PluginConfig};
use super::fixtures::object;
use super::framework::images::Images;
use super::framework::node_info::NodeInfo;
use super::framework::plugin::{CycleState, NodeSnapshot, Plugin};
use super::framework::pod_info::PodInfo;
use super::framework::preempting::Preempting;
use super::framework::status::Code;
use super::plugins::{PluginHandle, claims_made, make};
use apimachinery::yaml;
use apis::core::pod::PODS;
use apis::kind::Kind;
use client_go::indexer::Indexer;
use client_go::lister::Lister;
use clock::Clock;
use entropy::Entropy;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginTable {
    plugin: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    objects: Vec<Value>,
    #[serde(default)]
    nodes: Vec<TableLine>,
    cases: Vec<TableCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableCase {
    name: String,
    #[serde(default)]
    args: Option<Value>,
    #[serde(default)]
    objects: Vec<Value>,
    #[serde(default)]
    nodes: Option<Vec<TableLine>>,
    #[serde(default)]
    pods: Vec<TableLine>,
    pod: TableLine,
    /// What Filter says, by node; `*` is what PreFilter says of all.
    #[serde(default)]
    says: BTreeMap<String, String>,
    /// What Score gives after it is normalized; nothing at all when PreScore skips.
    #[serde(default)]
    scores: Option<BTreeMap<String, i64>>,
    /// The only nodes that fit, when not all do that are scored.
    #[serde(default)]
    feasible: Option<Vec<String>>,
}

/// A line, or a line and what more there is.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum TableLine {
    Short(String),
    Long {
        line: String,
        #[serde(default)]
        spec: Value,
        #[serde(default)]
        metadata: Value,
        #[serde(default)]
        status: Value,
    },
}

impl TableLine {
    fn words(&self) -> (&str, Vec<&str>) {
        let (TableLine::Short(line) | TableLine::Long { line, .. }) = self;
        let mut words = line.split_whitespace();
        (words.next().unwrap_or("pod"), words.collect())
    }

    fn merge_into(&self, tree: &mut Value) {
        if let TableLine::Long { spec, metadata, status, .. } = self {
            for (key, more) in [("spec", spec), ("metadata", metadata), ("status", status)] {
                if !more.is_null() {
                    json_patch::merge(&mut tree[key], more);
                }
            }
        }
    }

    fn node(&self) -> Value {
        let (name, words) = self.words();
        let mut tree = json!({"metadata": {"name": name, "uid": name, "labels": {}},
            "spec": {"taints": []}, "status": {"allocatable": {"pods": "110"}, "images": []}});
        for word in words {
            if let Some(taint) = word.strip_prefix('~') {
                let (pair, effect) = taint.rsplit_once(':').unwrap();
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let taint = json!({"key": key, "value": value, "effect": effect});
                tree["spec"]["taints"].as_array_mut().unwrap().push(taint);
            } else if let Some(image) = word.strip_prefix('@') {
                let (names, size) = image.rsplit_once('#').unwrap();
                let image =
                    json!({"names": [names], "sizeBytes": size.parse::<i64>().unwrap() * 1024 * 1024});
                tree["status"]["images"].as_array_mut().unwrap().push(image);
            } else if let Some((key, value)) = word.split_once('=') {
                tree["metadata"]["labels"][key] = value.into();
            } else if let Some((key, value)) = word.split_once(':') {
                tree["status"]["allocatable"][key] = value.into();
            }
        }
        self.merge_into(&mut tree);
        tree
    }

    fn pod(&self) -> Arc<PodInfo> {
        let (name, words) = self.words();
        let (name, node) = name.split_once('@').unwrap_or((name, ""));
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let mut tree = json!({"metadata": {"name": name, "namespace": namespace, "uid": name, "labels": {}},
            "spec": {"nodeName": node, "containers": []}});
        let mut container = json!({"name": "a", "resources": {"requests": {}}, "ports": []});
        for word in words {
            if let Some((key, value)) = word.split_once('=') {
                tree["metadata"]["labels"][key] = value.into();
            } else if let Some(image) = word.strip_prefix('@') {
                let image = json!({"name": image, "image": image});
                tree["spec"]["containers"].as_array_mut().unwrap().push(image);
            } else {
                set_word(&mut tree, &mut container, word);
            }
        }
        tree["spec"]["containers"].as_array_mut().unwrap().insert(0, container);
        if tree["spec"]["containers"].as_array().unwrap().len() > 1 {
            tree["spec"]["containers"].as_array_mut().unwrap().remove(0);
        }
        self.merge_into(&mut tree);
        Arc::new(PodInfo::new(object(tree)))
    }
}

fn set_word(tree: &mut Value, container: &mut Value, word: &str) {
    let (key, value) = word.split_once(':').unwrap_or((word, ""));
    match key {
        "prio" => tree["spec"]["priority"] = value.parse::<i64>().unwrap().into(),
        "port" => {
            let parts: Vec<&str> = value.split('/').collect();
            let port = json!({"protocol": parts[0], "hostPort": parts[1].parse::<u16>().unwrap(),
                "hostIP": parts.get(2).unwrap_or(&"")});
            container["ports"].as_array_mut().unwrap().push(port);
        }
        "claim" => {
            let volume = json!({"name": value, "persistentVolumeClaim": {"claimName": value}});
            match tree["spec"]["volumes"].as_array_mut() {
                Some(volumes) => volumes.push(volume),
                None => tree["spec"]["volumes"] = json!([volume]),
            }
        }
        "deleting" => tree["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into(),
        _ => container["resources"]["requests"][key] = value.into(),
    }
}

/// What a lister of each kind knows.
fn indexers(objects: &[Value]) -> BTreeMap<String, Arc<Indexer>> {
    let mut indexers: BTreeMap<String, Arc<Indexer>> = BTreeMap::new();
    for tree in objects {
        let kind = tree["kind"].as_str().unwrap().to_owned();
        let object = object(tree.clone());
        let indexer = indexers.entry(kind).or_insert_with(|| Arc::new(Indexer::new()));
        indexer.update(object);
    }
    indexers
}

fn plugin_of(table: &PluginTable, case: &TableCase) -> Box<dyn Plugin> {
    let mut config = KubeSchedulerConfiguration::default();
    let profile = &mut config.profiles[0];
    let args = case.args.clone().unwrap_or_else(|| table.args.clone());
    if !args.is_null() {
        profile.plugin_config.push(PluginConfig { name: table.plugin.clone(), args });
    }
    let objects: Vec<Value> = table.objects.iter().chain(&case.objects).cloned().collect();
    let indexers = indexers(&objects);
    let lister = |kind: &Arc<Kind>| {
        Lister::new(indexers.get(&*kind.kind).cloned().unwrap_or_else(|| Arc::new(Indexer::new())))
    };
    let clock = Clock::stepped(apimachinery::time::Time::UNIX_EPOCH);
    let (entropy, claims_made) = (Entropy::seeded(7), Arc::new(claims_made::family()));
    let preempting = &Preempting::new(lister(&PODS));
    let (clock, entropy, claims_made) = (&clock, &entropy, &claims_made);
    let handle = PluginHandle { lister: &lister, clock, entropy, claims_made, preempting };
    make(&table.plugin, profile, &handle).unwrap().expect("the plugin is built in")
}

fn snapshot_of(table: &PluginTable, case: &TableCase) -> NodeSnapshot {
    let mut images = Images::default();
    let lines = case.nodes.as_ref().unwrap_or(&table.nodes);
    let nodes = lines.iter().map(|line| {
        let object = object(line.node());
        let mut info = NodeInfo::new(object.metadata.name.as_str().into());
        info.set_node(object);
        info.images = images.of_node(&info.node, &info.images.clone());
        let (name, pods) = (info.name.clone(), case.pods.iter().map(TableLine::pod));
        for pod in pods.filter(|pod| *pod.node_name() == *name) {
            info.add_pod(pod);
        }
        Arc::new(info)
    });
    nodes.collect()
}

fn says(
    plugin: &dyn Plugin,
    case: &TableCase,
    snapshot: &NodeSnapshot,
    pod: &PodInfo,
) -> BTreeMap<String, String> {
    let mut state = CycleState::over(snapshot);
    let (allowed, status) = plugin.pre_filter(&mut state, pod, snapshot);
    if !status.is_success() {
        return [("*".to_owned(), status.message())].into();
    }
    let mut said = BTreeMap::new();
    for node in snapshot.iter().filter(|node| case.says.contains_key(&*node.name)) {
        let is_allowed = allowed.as_ref().is_none_or(|names| names.contains(&*node.name));
        let status = match (status.code, is_allowed) {
            (Code::Skip, _) => "ok".to_owned(),
            (_, false) => "not allowed".to_owned(),
            _ => match plugin.filter(&state, pod, node) {
                status if status.is_success() => "ok".to_owned(),
                status => status.message(),
            },
        };
        said.insert(node.name.to_string(), status);
    }
    said
}

fn scores(
    plugin: &dyn Plugin,
    case: &TableCase,
    snapshot: &NodeSnapshot,
    pod: &PodInfo,
) -> BTreeMap<String, i64> {
    let fits = |node: &&Arc<NodeInfo>| {
        case.feasible.as_ref().is_none_or(|names| names.iter().any(|name| **name == *node.name))
    };
    let nodes: Vec<Arc<NodeInfo>> = snapshot.iter().filter(fits).cloned().collect();
    let mut state = CycleState::over(snapshot);
    if plugin.pre_score(&mut state, pod, &nodes).code == Code::Skip {
        return BTreeMap::new();
    }
    let mut scores: Vec<i64> = nodes.iter().map(|node| plugin.score(&state, pod, node)).collect();
    plugin.normalize_scores(&mut scores);
    nodes.iter().map(|node| node.name.to_string()).zip(scores).collect()
}

/// How many cases there are, and those that come out otherwise.
fn run(text: &str) -> (usize, Vec<String>) {
    let table: PluginTable = yaml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
    let mut faults = Vec::new();
    for case in &table.cases {
        let plugin = plugin_of(&table, case);
        let snapshot = snapshot_of(&table, case);
        let pod = case.pod.pod();
        assert!(!case.says.is_empty() || case.scores.is_some(), "{} says nothing", case.name);
        let said = says(&*plugin, case, &snapshot, &pod);
        if !case.says.is_empty() && said != case.says {
            faults.push(format!("{}: {said:?} instead of {:?}", case.name, case.says));
        }
        let Some(expected) = &case.scores else { continue };
        let scored = scores(&*plugin, case, &snapshot, &pod);
        if scored != *expected {
            faults.push(format!("{}: {scored:?} instead of {expected:?}", case.name));
        }
    }
    (table.cases.len(), faults)
}

macro_rules! tables {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            let (cases, faults) = run(include_str!(concat!("testdata/", stringify!($name), ".yaml")));
            assert!(cases > 0 && faults.is_empty(), "{}", faults.join("\n"));
        })*
    };
}

tables! {
    allowed_topologies
    balanced_allocation
    fit
    image_locality
    inter_pod_affinity
    least_allocated
    most_allocated
    node_affinity
    node_declared_features
    node_ports
    node_rules
    node_volume_limits
    pod_topology_spread
    requested_to_capacity_ratio
    storage_capacity
    taint_toleration
    volume_binding
    volume_restrictions
    volume_zone
}
