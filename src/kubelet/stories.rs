//! Golden stories: a pod in YAML, and what its status and its events are from moment to moment, with
//! symbolic times.
//!
//! `tests/golden/stages/NAME.yaml` holds a pod, then optionally `{deleteAt: 5s, until: 60s}`, then what
//! comes out. With `KUBARIUM_UPDATE_GOLDEN=1` the last part is written anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::backoff;
use super::container_runtime::pod_addresses::PodAddresses;
use super::container_runtime::simulated::SimulatedRuntime;
use super::container_runtime::stages::StageSet;
use super::credential_provider::ImageAccess;
use super::dependencies::NodeRuntime;
use super::device_plugins::DevicePlugins;
use super::kuberuntime::context::Happening;
use super::node_config::Boots;
use super::pod_workers::{PodWorker, WorkerState};
use super::volume_manager::claimed_files::ClaimedFiles;
use super::volume_manager::host_files::HostFiles;
use super::volume_manager::in_use::VolumesInUse;
use super::volume_manager::sources::Sources;
use apimachinery::duration;
use apimachinery::object::Object;
use apimachinery::time::{self, Time};
use clock::Clock;
use entropy::Entropy;
use network::Network;

/// More steps than any story has: one that does not end is cut here.
const MAX_STEPS: usize = 40;

pub(crate) fn node() -> NodeRuntime {
    let addresses = PodAddresses::new(&["10.244.1.0/24"]).unwrap();
    let entropy = Entropy::seeded(1);
    let runtime = SimulatedRuntime::new(StageSet::builtin(), addresses, &["10.0.0.1".into()], entropy);
    NodeRuntime {
        runtime: Arc::new(runtime),
        host_ips: vec!["10.0.0.1".into()],
        cluster_dns: "10.96.0.10".into(),
        allocatable: BTreeMap::new(),
        memory_capacity: 32 << 30,
        host_files: HostFiles::default(),
        claimed_files: ClaimedFiles::default(),
        volumes: VolumesInUse::default(),
        boots: Boots::default(),
        network: Network::nobody(Clock::stepped(Time::UNIX_EPOCH), Entropy::seeded(1)),
        images: ImageAccess::default(),
        longest_restart: backoff::MAX,
        devices: DevicePlugins::default(),
    }
}

pub(crate) fn object(pod: &Value) -> Arc<Object> {
    Arc::new(Object::from_value(pod, vec![]).unwrap())
}

/// Times become `T+5s`, container ids `containerd://ID`.
fn symbolic(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("containerd://") => "containerd://ID".into(),
        Value::String(text) => match time::parse(&text) {
            Some(time) => format!("T+{}s", time.timestamp()).into(),
            None => text.into(),
        },
        Value::Array(items) => items.into_iter().map(symbolic).collect(),
        Value::Object(members) => {
            let keep = |name: &str| name != "user" && name != "lastProbeTime";
            let members = members.into_iter().filter(|(name, _)| keep(name));
            Value::Object(members.map(|(name, value)| (name, symbolic(value))).collect())
        }
        other => other,
    }
}

fn tell(mut pod: Value, delete_at: Option<Duration>, until: Duration) -> Vec<Value> {
    let (node, mut now) = (node(), Time::UNIX_EPOCH);
    let deleted_at = delete_at.map(|after| Time::UNIX_EPOCH + after);
    let mut worker = PodWorker::new(object(&pod), &node, now);
    let (mut story, mut last) = (Vec::new(), Value::Null);
    for _ in 0..MAX_STEPS {
        if deleted_at.is_some_and(|at| at <= now) && !worker.object.is_deleting() {
            pod["metadata"]["deletionTimestamp"] = time::rfc3339(now).into();
            worker.update(object(&pod));
        }
        let mut happenings = Vec::new();
        worker.sync(&node, now, &mut happenings);
        if worker.take_fetch(now).is_some() {
            worker.provide(Sources::new(), &node, now);
            worker.sync(&node, now, &mut happenings);
        }
        let event = |happening| match happening {
            Happening::Event(event) => {
                Some(format!("{} {} {}", event.event_type, event.reason, event.message))
            }
            _ => None,
        };
        let events: Vec<String> = happenings.into_iter().filter_map(event).collect();
        let status = symbolic(worker.status(&["10.0.0.1"], now));
        let at = format!("T+{}", duration::format((now - Time::UNIX_EPOCH).to_std().unwrap()));
        if status != last {
            story.push(json!({"at": at, "events": events, "status": status.clone()}));
            last = status;
        } else if !events.is_empty() {
            story.push(json!({"at": at, "events": events}));
        }
        let waits = deleted_at.filter(|at| *at > now && worker.state() == WorkerState::Sync);
        let Some(next) = worker.due.iter().chain(&waits).min() else { break };
        if *next > Time::UNIX_EPOCH + until {
            break;
        }
        now = *next;
    }
    story
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut documents = text.split("\n---\n");
    let (given, settings) = (documents.next().unwrap(), documents.next().unwrap_or("{}"));
    let value = |text: &str| apimachinery::yaml::from_str::<Value>(text).unwrap();
    let times = value(settings);
    let duration = |name: &str| times[name].as_str().and_then(duration::parse);
    let until = duration("until").unwrap_or(Duration::from_secs(600));
    let story = serde_yaml::to_string(&tell(value(given), duration("deleteAt"), until)).unwrap();
    let told = format!("{given}\n---\n{settings}\n---\n{story}");
    if told == text {
        return Ok(());
    }
    if std::env::var_os("KUBARIUM_UPDATE_GOLDEN").is_some() {
        std::fs::write(path, told).unwrap();
        return Ok(());
    }
    Err(format!("{} is told as:\n{story}", path.display()))
}

#[test]
fn stories_are_told_as_written() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/stages");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 5, "the stories are there");
    let differ: Vec<String> = paths.iter().filter_map(|path| check(path).err()).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
