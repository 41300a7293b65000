//! A Stage as it is written (kwok's `pkg/apis/v1alpha1/stage_types.go`).

use std::collections::BTreeMap;

use serde::Deserialize;

/// The spec of a Stage.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StageSpec {
    /// Of which kind of objects.
    pub resource_ref: ResourceRef,
    /// Of which of them; of none where there is no selector.
    pub selector: Option<StageMatch>,
    /// How probable it is among those that match.
    pub weight: i64,
    /// What the object says of that, which goes first.
    pub weight_from: Option<ExpressionFrom>,
    /// How long after it matched it is played.
    pub delay: Option<StageDelay>,
    /// What it does; the older form.
    pub next: Option<StageNext>,
    /// What it does, in order.
    pub steps: Vec<StageStep>,
    /// What it has made of the object is looked at again without waiting for the watch.
    pub immediate_next_stage: bool,
}

/// Of which kind of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRef {
    /// As `v1` (the default) or `apps/v1`.
    pub api_group: String,
    /// As `Pod`.
    pub kind: String,
}

/// All of it must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StageMatch {
    /// Labels that it has.
    pub match_labels: BTreeMap<String, String>,
    /// Annotations that it has.
    pub match_annotations: BTreeMap<String, String>,
    /// What is found in it.
    pub match_expressions: Vec<MatchExpression>,
}

/// One of `cel`, `jq`, and `key`, `operator` and `values`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MatchExpression {
    /// Is to be true; the object is `self`.
    pub cel: Option<ExpressionText>,
    /// A query, and what it is to find.
    pub jq: Option<JqSelector>,
    /// The older form of `jq`.
    #[serde(flatten)]
    pub plain: JqSelector,
}

/// A query, and what it is to find.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct JqSelector {
    /// The query.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`
    pub operator: String,
    /// What `In` and `NotIn` compare with.
    pub values: Vec<String>,
}

/// An expression.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExpressionText {
    /// Its text.
    pub expression: String,
}

/// Where a number or a time comes from: `cel`, `jq`, or `expressionFrom`, the older form of `jq`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExpressionFrom {
    /// The object is `self`.
    pub cel: Option<ExpressionText>,
    /// A query.
    pub jq: Option<ExpressionText>,
    /// A query.
    pub expression_from: String,
}

/// How long after it matched a stage is played.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StageDelay {
    /// At least so long.
    pub duration_milliseconds: Option<i64>,
    /// What the object says of that, which goes first.
    pub duration_from: Option<ExpressionFrom>,
    /// At most so long.
    pub jitter_duration_milliseconds: Option<i64>,
    /// What the object says of that, which goes first.
    pub jitter_duration_from: Option<ExpressionFrom>,
}

/// What a stage does, in the older form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StageNext {
    /// Tells people.
    pub event: Option<StageEvent>,
    /// Changes finalizers.
    pub finalizers: Option<StageFinalizers>,
    /// Deletes the object.
    pub delete: bool,
    /// Changes the object.
    pub patches: Vec<StagePatch>,
    /// Changes its status; only where there are no patches.
    pub status_template: String,
    /// Where the status is written.
    pub status_subresource: Option<String>,
    /// As whom it is written.
    pub status_patch_as: Option<PatchAs>,
}

/// One of the things that a stage does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StageStep {
    /// Tells people.
    pub event: Option<StageEvent>,
    /// Changes finalizers.
    pub finalizers: Option<StageFinalizers>,
    /// Deletes the object.
    pub delete: bool,
    /// Changes the object.
    pub patch: Option<StagePatch>,
    /// Makes or changes another object.
    pub apply: Option<StagePatch>,
}

/// An Event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StageEvent {
    /// `Normal` or `Warning`
    #[serde(rename = "type")]
    pub event_type: String,
    /// For machines.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Changes of the finalizers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StageFinalizers {
    /// These are added.
    pub add: Vec<Finalizer>,
    /// These are taken away.
    pub remove: Vec<Finalizer>,
    /// All are taken away.
    pub empty: bool,
}

/// A finalizer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Finalizer {
    /// Its name.
    pub value: String,
}

/// A patch (of the object), or an apply (of any).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StagePatch {
    /// As `status`.
    pub subresource: String,
    /// The field that the template is the value of.
    pub root: String,
    /// A Go template of YAML.
    pub template: String,
    /// `json`, `merge`, `strategic`; `apply` of an apply.
    #[serde(rename = "type")]
    pub patch_type: Option<String>,
    /// As whom.
    pub impersonation: Option<PatchAs>,
}

/// As whom something is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PatchAs {
    /// A user.
    pub username: String,
}

impl StageSpec {
    /// The steps, whichever form they are written in.
    pub fn all_steps(&mut self) -> Vec<StageStep> {
        let steps = std::mem::take(&mut self.steps);
        match self.next.take().filter(|_| steps.is_empty()) {
            Some(next) => next.into_steps(),
            None => steps,
        }
    }
}

impl StageNext {
    fn into_steps(self) -> Vec<StageStep> {
        let mut patches = self.patches;
        if patches.is_empty() && !self.status_template.is_empty() {
            patches.push(StagePatch {
                subresource: self.status_subresource.unwrap_or_else(|| "status".into()),
                root: "status".into(),
                template: self.status_template,
                patch_type: None,
                impersonation: self.status_patch_as,
            });
        }
        let event = self.event.map(|event| StageStep { event: Some(event), ..StageStep::default() });
        let finalizers =
            self.finalizers.map(|all| StageStep { finalizers: Some(all), ..StageStep::default() });
        let patches =
            patches.into_iter().map(|patch| StageStep { patch: Some(patch), ..StageStep::default() });
        let delete = self.delete.then(|| StageStep { delete: true, ..StageStep::default() });
        event.into_iter().chain(finalizers).chain(patches).chain(delete).collect()
    }
}
