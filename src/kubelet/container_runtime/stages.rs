//! Stages: what the simulated node does with a container, as data (in the manner of kwok's `Stage`).
//!
//! A container's life is a row of steps: its sandbox is made, its image pulled, it is started, it becomes
//! ready, it runs, it is stopped. At each step the first stage that selects the container says how long the
//! step takes and how it ends. The stages of `manifests/stages` are built in; whatever is added comes before
//! them.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::selector::{StageSelector, StageSubject};
use super::services::{Exit, RuntimeError};
use apimachinery::yaml;
use entropy::Entropy;

golang::text_error! {
    /// What is wrong with stages, or with files of them; for people.
    pub struct BadStages;
}

/// The stages that every cluster has, in the order of their files; priority decides before order.
const BUILT_IN: &[&str] = &[
    include_str!("../../../manifests/stages/default.yaml"),
    include_str!("../../../manifests/stages/command.yaml"),
    include_str!("../../../manifests/stages/job.yaml"),
    include_str!("../../../manifests/stages/image-pull-failure.yaml"),
    include_str!("../../../manifests/stages/crash-loop.yaml"),
    include_str!("../../../manifests/stages/oom-killed.yaml"),
    include_str!("../../../manifests/stages/never-ready.yaml"),
    include_str!("../../../manifests/stages/slow-start.yaml"),
    include_str!("../../../manifests/stages/slow-stop.yaml"),
];

/// A constant that is worked out when the first container asks: every cluster has the same.
static BUILT_IN_STAGES: LazyLock<Vec<Stage>> =
    LazyLock::new(|| read_all(&[]).expect("the built-in stages are read by a test"));

/// The steps of a container's life, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum LifeStep {
    /// CRI `RunPodSandbox`: once per pod, selected as its first container.
    Sandbox,
    /// CRI `PullImage`; not asked when the image is present and the policy does not insist.
    Pull,
    /// CRI `CreateContainer` and `StartContainer`.
    Start,
    /// From started to the first passed readiness (and startup) probe.
    Ready,
    /// From started to the end of the process.
    Run,
    /// From the stop signal to the end of the process; cut off by the grace period.
    Stop,
}

/// How a step ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepEnd {
    /// Well; the next step follows.
    Succeed,
    /// It never ends: a process that runs, a probe that never passes.
    Stay,
    /// As the container's command says (`Run`, `Stop`).
    FollowCommand,
    /// With a failure that the node tries again (`Sandbox`, `Pull`, `Start`).
    Fail(StepFailure),
    /// With the end of the process (`Run`, `Stop`).
    Exit(Exit),
}

/// What the runtime says of a step that failed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepFailure {
    /// The reason of the waiting container, as `ErrImagePull`.
    pub reason: String,
    /// For people; `{image}`, `{reference}` (the image's full name), its `{registry}`, `{repository}` and
    /// `{tag}`, and `{container}` are filled in.
    #[serde(default)]
    pub message: String,
}

/// A time to wait, and how much longer it may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delay {
    /// At least so long.
    #[serde(deserialize_with = "duration")]
    pub duration: Duration,
    /// At most so much longer.
    #[serde(deserialize_with = "duration")]
    pub jitter: Duration,
}

/// One stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// For people.
    pub name: String,
    /// What it governs.
    pub step: LifeStep,
    /// Higher is asked first.
    pub priority: i32,
    /// Which containers.
    pub selector: StageSelector,
    /// How long the step takes.
    pub delay: Delay,
    /// How it ends.
    pub next: StepEnd,
}

/// All stages of a node, the first to be asked first.
#[derive(Clone, Debug)]
pub struct StageSet {
    /// The built-in ones when there are none.
    stages: Option<Arc<[Stage]>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageManifest {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    metadata: ManifestMetadata,
    spec: ContainerStageSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestMetadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContainerStageSpec {
    step: LifeStep,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    selector: StageSelector,
    #[serde(default)]
    delay: Delay,
    next: StepEnd,
}

impl StageSet {
    /// The built-in stages.
    pub fn builtin() -> StageSet {
        StageSet { stages: None }
    }

    /// The built-in stages and those of more YAML texts, which come first among equal priorities.
    pub fn with(texts: &[String]) -> Result<StageSet, BadStages> {
        Ok(StageSet { stages: Some(read_all(texts)?.into()) })
    }

    /// The stage of `step` for `subject`. There is always one: the default stages select everything.
    pub fn stage(&self, step: LifeStep, subject: &StageSubject<'_>) -> &Stage {
        let governs = |stage: &&Stage| stage.step == step && stage.selector.matches(subject);
        let stages = self.stages.as_deref().unwrap_or_else(|| &BUILT_IN_STAGES);
        stages.iter().find(governs).expect("default.yaml has a stage for each step")
    }
}

impl Delay {
    /// How long it is this time.
    pub fn draw(&self, entropy: &Entropy) -> Duration {
        if self.jitter.is_zero() {
            return self.duration;
        }
        let milliseconds = usize::try_from(self.jitter.as_millis()).unwrap_or(usize::MAX);
        self.duration + Duration::from_millis(entropy.below(milliseconds) as u64)
    }
}

impl StepFailure {
    /// What the runtime says of this container.
    pub fn error_for(&self, image: &str, container: &str) -> RuntimeError {
        RuntimeError { reason: self.reason.clone(), message: self.message_for(image, container) }
    }

    /// Its message with names filled in.
    fn message_for(&self, image: &str, container: &str) -> String {
        let reference = machine::images::reference(image);
        let (registry, rest) = reference.split_once('/').unwrap_or_default();
        let (repository, tag) = rest.split_once([':', '@']).unwrap_or((rest, ""));
        self.message
            .replace("{image}", image)
            .replace("{reference}", &reference)
            .replace("{registry}", registry)
            .replace("{repository}", repository)
            .replace("{tag}", tag)
            .replace("{container}", container)
    }
}

/// The stages of `texts`, and the built-in ones behind them.
fn read_all(texts: &[String]) -> Result<Vec<Stage>, String> {
    let mut stages = Vec::new();
    for text in texts.iter().map(String::as_str).chain(BUILT_IN.iter().copied()) {
        stages.extend(parse(text)?);
    }
    stages.sort_by_key(|stage| -stage.priority);
    Ok(stages)
}

/// Reads the stages of one YAML text, which may hold several documents.
fn parse(text: &str) -> Result<Vec<Stage>, String> {
    let documents = yaml::documents(text).map_err(|error| format!("stage: {error}"))?;
    let stages = documents.into_iter().map(|value| {
        let manifest: StageManifest =
            serde_json::from_value(value).map_err(|error| format!("stage: {error}"))?;
        stage(manifest)
    });
    stages.collect()
}

fn stage(manifest: StageManifest) -> Result<Stage, String> {
    let StageManifest { api_version, kind, metadata, spec } = manifest;
    if (api_version.as_str(), kind.as_str()) != ("kubarium.dev/v1alpha1", "Stage") {
        return Err(format!(
            "stage {:?}: no matches for kind {kind:?} in version {api_version:?}",
            metadata.name
        ));
    }
    let fits = match spec.next {
        StepEnd::Succeed => spec.step != LifeStep::Stop,
        StepEnd::Stay => true,
        StepEnd::FollowCommand => matches!(spec.step, LifeStep::Run | LifeStep::Stop),
        StepEnd::Fail(_) => matches!(spec.step, LifeStep::Sandbox | LifeStep::Pull | LifeStep::Start),
        StepEnd::Exit(_) => matches!(spec.step, LifeStep::Run | LifeStep::Stop),
    };
    if !fits {
        return Err(format!("stage {:?}: step {:?} cannot end so", metadata.name, spec.step));
    }
    let ContainerStageSpec { step, priority, selector, delay, next } = spec;
    Ok(Stage { name: metadata.name, step, priority, selector, delay, next })
}

/// Reads Go's form of a duration, as `1m30s` or `250ms`.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = apimachinery::duration::parse(&text);
    parsed.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no duration")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apis::views::pod::Pod;
    use serde_json::json;

    fn chosen(pod: serde_json::Value, step: LifeStep) -> String {
        let metadata = serde_json::from_value(pod["metadata"].clone()).unwrap_or_default();
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let subject = StageSubject::of(&pod, &metadata, &pod.spec.containers[0], 0);
        StageSet::builtin().stage(step, &subject).name.clone()
    }

    #[test]
    fn every_file_of_the_folder_is_built_in() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/stages");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(BUILT_IN.contains(&text.as_str()), "{} is not in BUILT_IN", path.display());
        }
    }

    #[test]
    fn stages_are_chosen_by_what_they_select() {
        let pod = |extra: serde_json::Value| {
            let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}});
            json_patch::merge(&mut pod, &extra);
            pod
        };
        let annotated = |name: &str| pod(json!({"metadata": {"annotations": {"kubarium.dev/stage": name}}}));
        let image = |image: &str, command: &[&str]| {
            pod(json!({"spec": {"containers": [{"name": "a", "image": image, "command": command}]}}))
        };
        let owned = pod(json!({"metadata": {"ownerReferences": [{"kind": "Job"}]}}));
        let hook = pod(json!({"metadata": {"annotations": {"helm.sh/hook": "test"}}}));
        let private = image("gcr.io/authenticated-image-pulling/alpine:3.7", &[]);
        let mut with_secret = private.clone();
        with_secret["spec"]["imagePullSecrets"] = json!([{"name": "registry"}]);
        let cases = [
            (pod(json!({})), LifeStep::Run, "run-forever"),
            (pod(json!({})), LifeStep::Pull, "pull-at-once"),
            (owned.clone(), LifeStep::Run, "job-completes"),
            (owned, LifeStep::Stop, "stop-at-once"),
            (hook, LifeStep::Run, "helm-test-completes"),
            (annotated("crash-loop"), LifeStep::Run, "crash-loop"),
            (annotated("slow-start,crash-loop"), LifeStep::Run, "crash-loop"),
            (annotated("slow-start"), LifeStep::Pull, "slow-start-pull"),
            (image("nginx:does-not-exist", &[]), LifeStep::Pull, "image-not-found"),
            (image("busybox", &["sleep", "5"]), LifeStep::Run, "command-runs"),
            (image("my-app", &["my-server"]), LifeStep::Run, "run-forever"),
            (image("busybox", &["my-server"]), LifeStep::Run, "command-runs"),
            (image("webserver:404", &[]), LifeStep::Pull, "image-not-found"),
            (image("invalid.registry.k8s.io/invalid/alpine:3.1", &[]), LifeStep::Pull, "registry-not-found"),
            (private.clone(), LifeStep::Pull, "image-is-private"),
            (with_secret, LifeStep::Pull, "pull-at-once"),
            (image("localhost:5000/pause:testing", &[]), LifeStep::Pull, "image-of-node-is-private"),
            (image("localhost:5000/pause:3.10", &[]), LifeStep::Pull, "pull-at-once"),
            (image("busybox", &["sh", "-c", "sleep 5"]), LifeStep::Stop, "command-is-killed"),
            (image("busybox", &["sh", "-c", "trap '' TERM; sleep 5"]), LifeStep::Stop, "command-says"),
        ];
        for (pod, step, name) in cases {
            assert_eq!(chosen(pod.clone(), step), name, "{pod}");
        }
    }

    #[test]
    fn the_users_stages_come_before_those_built_in() {
        let stage = "apiVersion: kubarium.dev/v1alpha1\nkind: Stage\nmetadata: {name: mine}\n\
                     spec: {step: Run, selector: {images: [nginx]}, next: stay}\n";
        let stages = StageSet::with(&[stage.to_owned()]).unwrap();
        let pod = json!({"spec": {"containers": [{"name": "a", "image": "nginx"}]}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let metadata = Default::default();
        let subject = StageSubject::of(&pod, &metadata, &pod.spec.containers[0], 0);
        assert_eq!(stages.stage(LifeStep::Run, &subject).name, "mine");
    }

    #[test]
    fn stages_that_make_no_sense_are_refused() {
        let stage = |spec: &str| {
            format!("apiVersion: kubarium.dev/v1alpha1\nkind: Stage\nmetadata: {{name: x}}\nspec: {spec}\n")
        };
        let cases = [
            ("{step: Pull, next: {exit: {code: 1}}}", "cannot end so"),
            ("{step: Fly, next: succeed}", "unknown variant `Fly`"),
            ("{step: Run, next: stay, selektor: {}}", "unknown field `selektor`"),
            ("{step: Run, next: stay, delay: {duration: soon}}", "\"soon\" is no duration"),
        ];
        for (spec, error) in cases {
            let refused = StageSet::with(&[stage(spec)]).unwrap_err();
            assert!(refused.contains(error), "{refused}");
        }
    }
}
