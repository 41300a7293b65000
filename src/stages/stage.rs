//! A Stage that was read: which objects it is for, how probable and how late it is, and what it does (kwok's
//! `pkg/utils/lifecycle`).

use std::time::Duration;

use serde_json::Value;

use super::cel_functions::CelHost;
use super::error::StageError;
use super::expression::ValueSource;
use super::manifest::{
    PatchAs, ResourceRef, StageDelay, StageEvent, StageFinalizers, StagePatch, StageSpec, StageStep,
};
use super::selector::ObjectSelector;
use super::template::Template;
use apimachinery::options::PatchType;

/// A stage does so many things at most; one with more is refused.
const MAX_STEPS: usize = 64;
/// No delay is longer: what says more waits so long.
const MAX_DELAY: Duration = Duration::from_secs(366 * 24 * 3600);

/// A stage.
#[derive(Debug)]
pub struct ObjectStage {
    /// Its object's name.
    pub name: String,
    /// Of which kind of objects.
    pub resource: ResourceRef,
    /// What it does, in order.
    pub steps: Vec<ObjectStep>,
    /// What it has made of the object is looked at again at once.
    pub is_immediate: bool,
    selector: ObjectSelector,
    weight: i64,
    weight_from: Option<ValueSource>,
    delay: Option<PlayDelay>,
}

/// One of the things that a stage does.
#[derive(Debug)]
pub enum ObjectStep {
    /// Tells people.
    Event(StageEvent),
    /// Changes finalizers.
    Finalizers(StageFinalizers),
    /// Deletes the object.
    Delete,
    /// Changes the object.
    Patch(StageChange),
    /// Makes or changes another object.
    Apply(StageChange),
}

/// What is patched or applied.
#[derive(Debug)]
pub struct StageChange {
    /// As `status`; empty for the object itself.
    pub subresource: String,
    /// The field that the template is the value of; empty for the whole.
    pub root: String,
    /// The YAML of it.
    pub template: Template,
    /// None: as is usual for the kind.
    pub patch_type: Option<PatchType>,
    /// As whom.
    pub impersonation: Option<PatchAs>,
}

#[derive(Debug)]
struct PlayDelay {
    duration: Duration,
    duration_from: Option<ValueSource>,
    jitter: Option<Duration>,
    jitter_from: Option<ValueSource>,
}

impl ObjectStage {
    /// Reads a Stage; none where it has no selector, and so is for no objects.
    ///
    /// # Errors
    /// Which field is wrong, and why.
    pub fn read(name: &str, spec: &Value) -> Result<Option<ObjectStage>, StageError> {
        let mut spec: StageSpec = serde_json::from_value(spec.clone()).map_err(|error| error.to_string())?;
        let steps = spec.all_steps();
        let StageSpec { mut resource_ref, selector, weight, weight_from, delay, .. } = spec;
        let Some(selector) = selector else { return Ok(None) };
        if resource_ref.kind.is_empty() {
            return Err("resourceRef.kind: Required value".into());
        }
        if resource_ref.api_group.is_empty() {
            resource_ref.api_group = "v1".into();
        }
        Ok(Some(ObjectStage {
            name: name.to_owned(),
            resource: resource_ref,
            steps: read_steps(steps)?,
            is_immediate: spec.immediate_next_stage,
            selector: ObjectSelector::read(selector)?,
            weight,
            weight_from: ValueSource::read(weight_from.as_ref(), "weightFrom")?,
            delay: delay.map(|delay| PlayDelay::read(&delay)).transpose()?,
        }))
    }

    /// Whether it is for an object.
    ///
    /// # Errors
    /// What went wrong in an expression.
    pub fn matches(&self, tree: &Value, host: &CelHost) -> Result<bool, StageError> {
        self.selector.matches(tree, host)
    }

    /// How probable it is; none where it should be said by the object, and what it says is no number.
    ///
    /// # Errors
    /// What went wrong in an expression.
    pub fn weight(&self, tree: &Value, host: &CelHost) -> Result<Option<i64>, StageError> {
        match &self.weight_from {
            Some(from) => Ok(from.number(tree, host)?.or(Some(self.weight))),
            None => Ok(Some(self.weight)),
        }
    }

    /// Between which times it is played after it matched; none for at once.
    ///
    /// # Errors
    /// What went wrong in an expression.
    pub fn delays(&self, tree: &Value, host: &CelHost) -> Result<Option<(Duration, Duration)>, StageError> {
        let Some(delay) = &self.delay else { return Ok(None) };
        let said = |from: &Option<ValueSource>| match from {
            Some(from) => from.duration(tree, host),
            None => Ok(None),
        };
        let duration = said(&delay.duration_from)?.unwrap_or(delay.duration).min(MAX_DELAY);
        let jitter = said(&delay.jitter_from)?.or(delay.jitter).map(|jitter| jitter.min(MAX_DELAY));
        Ok(Some(match jitter {
            Some(jitter) if jitter <= duration => (jitter, jitter),
            Some(jitter) => (duration, jitter),
            None => (duration, duration),
        }))
    }

    /// After which time it is played this time.
    ///
    /// # Errors
    /// What went wrong in an expression.
    pub fn delay(&self, tree: &Value, host: &CelHost) -> Result<Duration, StageError> {
        let Some((least, most)) = self.delays(tree, host)? else { return Ok(Duration::ZERO) };
        let range = usize::try_from((most - least).as_nanos()).unwrap_or(usize::MAX);
        Ok(least + Duration::from_nanos(if range == 0 { 0 } else { host.entropy.below(range) as u64 }))
    }
}

impl PlayDelay {
    fn read(delay: &StageDelay) -> Result<PlayDelay, StageError> {
        let milliseconds = |number: i64| Duration::from_millis(number.max(0).unsigned_abs());
        Ok(PlayDelay {
            duration: delay.duration_milliseconds.map(milliseconds).unwrap_or_default(),
            duration_from: ValueSource::read(delay.duration_from.as_ref(), "delay.durationFrom")?,
            jitter: delay.jitter_duration_milliseconds.map(milliseconds),
            jitter_from: ValueSource::read(delay.jitter_duration_from.as_ref(), "delay.jitterDurationFrom")?,
        })
    }
}

fn read_steps(steps: Vec<StageStep>) -> Result<Vec<ObjectStep>, StageError> {
    if steps.len() > MAX_STEPS {
        return Err(format!("steps: more than {MAX_STEPS}").into());
    }
    let mut read = Vec::new();
    for (at, step) in steps.into_iter().enumerate() {
        let StageStep { event, finalizers, delete, patch, apply } = step;
        read.extend(event.map(ObjectStep::Event));
        read.extend(finalizers.map(ObjectStep::Finalizers));
        if delete {
            read.push(ObjectStep::Delete);
            continue;
        }
        let change = |change: StagePatch, what: &str, types: &[PatchType]| {
            read_change(change, types).map_err(|why| why.at(format!("steps[{at}].{what}.")))
        };
        if let Some(patch) = patch {
            read.push(ObjectStep::Patch(change(patch, "patch", PATCHES)?));
        }
        if let Some(apply) = apply {
            read.push(ObjectStep::Apply(change(apply, "apply", APPLIES)?));
        }
    }
    Ok(read)
}

const PATCHES: &[PatchType] = &[PatchType::Json, PatchType::Merge, PatchType::StrategicMerge];
const APPLIES: &[PatchType] = &[PatchType::Apply, PatchType::Merge, PatchType::StrategicMerge];

fn read_change(change: StagePatch, types: &[PatchType]) -> Result<StageChange, StageError> {
    let patch_type = match change.patch_type.as_deref().unwrap_or_default() {
        "" => None,
        text => {
            let named = types.iter().find(|known| type_name(**known) == text);
            let names: Vec<&str> = types.iter().map(|known| type_name(*known)).collect();
            Some(*named.ok_or_else(|| format!("type: {text:?} must be one of {}", names.join(", ")))?)
        }
    };
    let StagePatch { subresource, root, template, impersonation, .. } = change;
    let template = Template::parse(template.trim()).map_err(|why| format!("template: {why}"))?;
    Ok(StageChange { subresource, root, template, patch_type, impersonation })
}

fn type_name(patch_type: PatchType) -> &'static str {
    match patch_type {
        PatchType::Json => "json",
        PatchType::Merge => "merge",
        PatchType::StrategicMerge => "strategic",
        PatchType::Apply => "apply",
    }
}
