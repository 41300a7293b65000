//! Chaos by annotation: how the containers of a pod fail, with parameters.
//!
//! | annotation of the pod | says |
//! | --- | --- |
//! | `kubarium.dev/chaos-run` | how its processes end: `code=3, reason=Tired, message=no more, after=5s` |
//! | `kubarium.dev/chaos-pull`, `chaos-start` | how the step fails: `reason=ErrImagePull, message=no` |
//! | `kubarium.dev/chaos-readiness`, `-liveness`, `-startup` | what that probe is answered over time |
//!
//! A probe is answered `pass, fail at 30s, pass at 40s`, or `flap 30s 10s`; times count from the container's
//! start. Of a step, `every=3` is each third run of a container, `percent=20` so many by chance, and
//! `jitter=2s` at most so much later. With `.CONTAINER` behind the annotation's name it is of that container
//! alone. What is said here goes before all stages; a pod without annotations costs one look.

use std::collections::BTreeMap;
use std::time::Duration;

use super::forecasts::{ProbeAnswer, ProbeForecast};
use super::services::{ContainerConfig, Exit, ProbedContainer};
use super::stages::{LifeStep, StepEnd, StepFailure};
use apimachinery::duration;
use apis::views::pod::Container;
use apis::views::probe::Probe;
use clock::after;
use entropy::Entropy;

const PREFIX: &str = "kubarium.dev/chaos-";
const STEPS: [(&str, LifeStep); 3] =
    [("run", LifeStep::Run), ("pull", LifeStep::Pull), ("start", LifeStep::Start)];
const PROBES: [&str; 3] = ["readiness", "liveness", "startup"];
/// A probe is known so many changes ahead at most; of one that flaps, the last of them stays.
const MAX_CHANGES: usize = 256;
/// The words of a failure that says none.
const MESSAGE: &str = "chaos: the annotation says so";

/// What an annotation says of a step.
#[derive(Debug, PartialEq)]
struct ChaosOfStep {
    code: i32,
    reason: String,
    message: String,
    delay: Duration,
    jitter: Duration,
    every: i64,
    percent: usize,
}

/// How long a step takes and how it ends, where an annotation says it of this run.
pub(super) fn step(
    step: LifeStep,
    config: &ContainerConfig<'_>,
    entropy: &Entropy,
) -> Option<(Duration, StepEnd)> {
    let (name, _) = STEPS.iter().find(|(_, of)| *of == step)?;
    let text = said(&config.pod.metadata.annotations, name, config.container)?;
    let chaos = ChaosOfStep::read(text).ok()?;
    if (config.attempt + 1) % chaos.every != 0 || entropy.below(100) >= chaos.percent {
        return None;
    }
    let jitter = entropy.below(usize::try_from(chaos.jitter.as_millis()).unwrap_or(usize::MAX));
    let delay = chaos.delay + Duration::from_millis(jitter as u64);
    let ChaosOfStep { code, reason, message, .. } = chaos;
    Some(match step {
        LifeStep::Run => (delay, StepEnd::Exit(Exit { code, reason, message })),
        _ => (delay, StepEnd::Fail(failure(step, reason, message))),
    })
}

fn failure(step: LifeStep, reason: String, message: String) -> StepFailure {
    let usual = if step == LifeStep::Pull { "ErrImagePull" } else { "RunContainerError" };
    let or = |text: String, usual: &str| if text.is_empty() { usual.to_owned() } else { text };
    StepFailure { reason: or(reason, usual), message: or(message, MESSAGE) }
}

/// What a probe will be answered, where an annotation says it.
pub(super) fn forecast(probed: &ProbedContainer<'_>, probe: &Probe) -> Option<ProbeForecast> {
    let container = probed.config.container;
    let is_it = |of: &Option<Box<Probe>>| of.as_deref().is_some_and(|of| std::ptr::eq(of, probe));
    let own = [&container.readiness_probe, &container.liveness_probe, &container.startup_probe];
    let at = own.iter().position(|of| is_it(of))?;
    let text = said(&probed.config.pod.metadata.annotations, PROBES[at], container)?;
    let changes = changes(text).ok()?.into_iter();
    let answers = changes.map(|(time, passes)| {
        let answer = if passes { ProbeAnswer::Success } else { ProbeAnswer::Failure(MESSAGE.into()) };
        (after(probed.started_at, time), answer)
    });
    Some(ProbeForecast::Played(answers.collect()))
}

/// What is wrong with what a pod says of chaos, each in a sentence.
pub(super) fn problems(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let wrong = |(name, text): (&String, &String)| {
        let rest = name.strip_prefix(PREFIX)?;
        let what = rest.split_once('.').map_or(rest, |(what, _)| what);
        let problem = if STEPS.iter().any(|(name, _)| *name == what) {
            ChaosOfStep::read(text).err()
        } else if PROBES.contains(&what) {
            changes(text).err()
        } else {
            Some(format!(
                "it is not known; {PREFIX} may be followed by run, pull, start, {}",
                PROBES.join(", ")
            ))
        };
        problem.map(|why| format!("{name}: {why}"))
    };
    annotations.iter().filter_map(wrong).collect()
}

/// Of this container before of all.
fn said<'a>(annotations: &'a BTreeMap<String, String>, what: &str, of: &Container) -> Option<&'a str> {
    // Most pods have none.
    if annotations.is_empty() {
        return None;
    }
    let own = annotations.get(&format!("{PREFIX}{what}.{}", of.name));
    own.or_else(|| annotations.get(&format!("{PREFIX}{what}"))).map(String::as_str)
}

impl ChaosOfStep {
    fn read(text: &str) -> Result<ChaosOfStep, String> {
        let mut chaos = ChaosOfStep {
            code: 1,
            reason: String::new(),
            message: String::new(),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            every: 1,
            percent: 100,
        };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} must be NAME=VALUE"))?;
            let value = value.trim();
            let wrong = |what: &str| format!("{part:?}: it must be {what}");
            match name.trim() {
                "code" => chaos.code = number(value, 0, 255).ok_or_else(|| wrong("from 0 to 255"))? as i32,
                "reason" => chaos.reason = value.to_owned(),
                "message" => chaos.message = value.to_owned(),
                "after" => chaos.delay = duration::parse(value).ok_or_else(|| wrong("a time, as 5s"))?,
                "jitter" => chaos.jitter = duration::parse(value).ok_or_else(|| wrong("a time, as 5s"))?,
                "every" => chaos.every = number(value, 1, 1_000_000).ok_or_else(|| wrong("1 or more"))?,
                "percent" => {
                    chaos.percent = number(value, 0, 100).ok_or_else(|| wrong("from 0 to 100"))? as usize;
                }
                other => {
                    let known = "code, reason, message, after, jitter, every, percent";
                    return Err(format!("{other:?} is none of {known}"));
                }
            }
        }
        Ok(chaos)
    }
}

fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

/// From which time on a probe passes or fails.
fn changes(text: &str) -> Result<Vec<(Duration, bool)>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let ["flap", passes, fails] = words[..] {
        let time = |text: &str| {
            let time = duration::parse(text).filter(|time| !time.is_zero());
            time.ok_or_else(|| format!("{text:?} is no time, as 30s"))
        };
        return Ok(flaps(time(passes)?, time(fails)?));
    }
    let mut changes: Vec<(Duration, bool)> = Vec::new();
    for part in text.split(',') {
        let words: Vec<&str> = part.split_whitespace().collect();
        let (word, at) = match words[..] {
            [word] if changes.is_empty() => (word, Some(Duration::ZERO)),
            [word, "at", at] if !changes.is_empty() => (word, duration::parse(at)),
            _ => return Err(format!("{part:?} must be pass or fail, and behind the first: at TIME")),
        };
        let at = at.filter(|at| changes.last().is_none_or(|(before, _)| before < at));
        let at = at.ok_or_else(|| format!("{part:?} must be at a time, later than the one before"))?;
        let passes = match word {
            "pass" => true,
            "fail" => false,
            _ => return Err(format!("{word:?} must be pass or fail")),
        };
        changes.push((at, passes));
    }
    if changes.len() > MAX_CHANGES {
        return Err(format!("more than {MAX_CHANGES} changes"));
    }
    Ok(changes)
}

fn flaps(passes: Duration, fails: Duration) -> Vec<(Duration, bool)> {
    let mut at = Duration::ZERO;
    let change = |number: usize| {
        let is_well = number.is_multiple_of(2);
        let change = (at, is_well);
        at = at.saturating_add(if is_well { passes } else { fails });
        change
    };
    (0..MAX_CHANGES).map(change).collect()
}

#[cfg(test)]
mod tests {
    use apimachinery::object::ObjectMeta;
    use apis::views::pod::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn pod(annotations: Value) -> Pod {
        let containers = json!([{"name": "web"}, {"name": "side"}]);
        serde_json::from_value(
            json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}}),
        )
        .unwrap()
    }

    fn at(pod: &Pod, of: usize, step_of: LifeStep, attempt: i64) -> Option<(Duration, StepEnd)> {
        let metadata = ObjectMeta::default();
        let config =
            ContainerConfig { pod, metadata: &metadata, container: &pod.spec.containers[of], attempt };
        step(step_of, &config, &Entropy::seeded(1))
    }

    #[test]
    fn steps_end_as_annotations_say() {
        let text = "code=3, reason=Tired, message=no more, after=5s, every=2";
        let pod = pod(json!({"kubarium.dev/chaos-run": text, "kubarium.dev/chaos-pull.side": "percent=0",
            "kubarium.dev/chaos-pull": "message=gone"}));
        let exit = Exit { code: 3, reason: "Tired".into(), message: "no more".into() };
        assert_eq!(at(&pod, 0, LifeStep::Run, 0), None);
        assert_eq!(at(&pod, 0, LifeStep::Run, 1), Some((Duration::from_secs(5), StepEnd::Exit(exit))));
        let failed = StepFailure { reason: "ErrImagePull".into(), message: "gone".into() };
        assert_eq!(at(&pod, 0, LifeStep::Pull, 0), Some((Duration::ZERO, StepEnd::Fail(failed))));
        assert_eq!((at(&pod, 1, LifeStep::Pull, 0), at(&pod, 0, LifeStep::Ready, 0)), (None, None));
    }

    #[test]
    fn so_many_percent_are_drawn() {
        let entropy = Entropy::seeded(3);
        let pod = pod(json!({"kubarium.dev/chaos-run": "percent=25"}));
        let metadata = ObjectMeta::default();
        let container = &pod.spec.containers[0];
        let config = ContainerConfig { pod: &pod, metadata: &metadata, container, attempt: 0 };
        let ended = (0..400).filter(|_| step(LifeStep::Run, &config, &entropy).is_some()).count();
        assert!((60..140).contains(&ended), "{ended}");
    }

    #[test]
    fn probes_change_at_times() {
        let seconds = |text: &str| -> Vec<(u64, bool)> {
            changes(text).unwrap().into_iter().map(|(at, passes)| (at.as_secs(), passes)).collect()
        };
        assert_eq!(seconds("pass, fail at 30s, pass at 40s"), [(0, true), (30, false), (40, true)]);
        let flaps = seconds("flap 30s 10s");
        assert_eq!(flaps[..4], [(0, true), (30, false), (40, true), (70, false)]);
        assert_eq!(flaps.len(), MAX_CHANGES);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("run", "code=300", "from 0 to 255"),
            ("run", "nonsense", "must be NAME=VALUE"),
            ("run", "cod=3", "is none of code, reason"),
            ("pull", "every=0", "1 or more"),
            ("readiness", "pass, fail", "behind the first: at TIME"),
            ("readiness", "pass, fail at 5s, pass at 5s", "later than the one before"),
            ("readiness", "flap 0s 1s", "is no time"),
            ("stop", "", "may be followed by run, pull, start, readiness"),
        ];
        for (what, text, said) in cases {
            let annotations = BTreeMap::from([(format!("{PREFIX}{what}"), text.to_owned())]);
            let problems = problems(&annotations);
            assert!(problems[0].contains(said), "{what} {text}: {problems:?}");
        }
    }
}
